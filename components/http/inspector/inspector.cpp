// The server of an inspector. It has one worker; a look at the runtimes takes a while and does not suspend.
//
// What it costs: after a look that took t of processor time, the next begins 100 t later at the earliest. Who asks
// earlier for the same gets the last one again.
#include <ramie/http/inspector.hpp>

#include "inspector/inspected.hpp"
#include "wire/text.hpp"

#include <ramie/http/server.hpp>
#include <ramie/ramie.hpp>

#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

namespace ramie::http {

extern const char inspector_page[];

namespace {

using clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t token_least = 16;    // too long to be tried out
constexpr std::size_t listed_most = 2000;  // fibers and actors that a request may ask for
constexpr int looks_share = 100;           // of a processor: 1 %
constexpr int trace_seconds_most = 60;

std::chrono::nanoseconds processor_time() noexcept {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::chrono::seconds{t.tv_sec} + std::chrono::nanoseconds{t.tv_nsec};
}

bool is_loopback(const net::endpoint& at) {
  const std::string address = at.address();
  return address.starts_with("127.") || address == "::1" || at.family() == AF_UNIX;
}

void check(const inspector_options& o) {
  if (!o.token.empty()) {
    const bool plain = std::all_of(o.token.begin(), o.token.end(), [](char c) {
      return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z') ||
             std::string_view{"-._~"}.find(c) != std::string_view::npos;
    });
    if (o.token.size() < token_least || !plain)
      throw invalid_argument{"ramie: inspector: the token has " + std::to_string(o.token.size()) +
                             " characters; it must have at least " + std::to_string(token_least) +
                             ", of letters, digits and -._~"};
  } else if (!is_loopback(o.at)) {
    throw invalid_argument{"ramie: inspector: " + o.at.to_string() +
                           " can be reached by others; give a token, or an address of the loopback"};
  }
}

/// In a time that says nothing of where they differ.
bool same_secret(std::string_view a, std::string_view b) noexcept {
  unsigned differs = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i)
    differs |= static_cast<unsigned char>(a[i] ^ b[b.empty() ? 0 : i % b.size()]);
  return differs == 0;
}

/// A page of another site, whose name was made to lead here, must not read what this one serves ("DNS rebinding").
bool names_this_machine(std::string_view authority) {
  if (authority.starts_with('[')) return authority == "[::1]" || authority.starts_with("[::1]:");
  const std::string_view host = authority.substr(0, authority.rfind(':'));
  return host == "localhost" ||
         (host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string_view::npos);
}

int number_in(const request& rq, std::string_view name, int otherwise, int most) {
  const std::optional<std::string> text = rq.query(name);
  if (!text) return otherwise;
  const std::optional<std::uint64_t> n = parse_number(*text);
  if (!n || *n > static_cast<std::uint64_t>(most))
    throw status_error{400, std::string{name} + " has to be a number from 0 to " + std::to_string(most)};
  return static_cast<int>(*n);
}

std::uintptr_t id_in(const request& rq, std::string_view name) {
  const std::optional<std::string> text = rq.query(name);
  if (!text || text->empty()) return 0;
  std::uintptr_t id = 0;
  const char* const first = text->data() + (text->starts_with("0x") ? 2 : 0);
  const char* const last = text->data() + text->size();
  if (const auto [end, code] = std::from_chars(first, last, id, 16); code != std::errc{} || end != last)
    throw status_error{400, std::string{name} + " has to be an id, as 0x7f15f0000c50"};
  return id;
}

}  // namespace

struct inspector::core {
  core(const runtime* of, const inspector_options& options);
  core(const core&) = delete;
  core& operator=(const core&) = delete;
  ~core() { own->shutdown(); }  // cancels who serves

  void add_routes();
  void admit(const request& rq, bool changes = false) const;
  void send_state(request& rq, response& rs);
  void send_metrics(response& rs) const;
  void send_dump(request& rq, response& rs);
  void send_trace(request& rq, response& rs);
  [[nodiscard]] std::string look(const snapshot_options& options);

  const runtime* const only;
  const std::string token;
  const std::string path = [] {
    std::array<char, 1024> text;
    const ssize_t n = ::readlink("/proc/self/exe", text.data(), text.size());
    return std::string{text.data(), n > 0 ? static_cast<std::size_t>(n) : 0};
  }();
  const clock::time_point began = clock::now();
  net::tcp_listener listener;
  server site;
  std::unique_ptr<runtime> own;

  // The last look, and who may look next.
  mutex lock;
  snapshot_options asked;
  std::string seen;
  clock::time_point seen_at, next_at;
};

namespace {

server_limits limits() {
  server_limits l;
  l.connections_most = 64;  // a few viewers
  l.body_most = 1024;
  return l;
}

}  // namespace

inspector::core::core(const runtime* of, const inspector_options& options)
    : only{of}, token{options.token}, listener{(check(options), options.at)}, site{limits()} {
  add_routes();
  const not_inspected while_it_is_made;
  runtime_options mine;
  mine.workers = 1;
  mine.name = "inspector";
  own = std::make_unique<runtime>(mine);
  own->spawn([this] { site.serve(listener); }).detach();
}

inspector::inspector(runtime& of, const inspector_options& options) : core_{std::make_unique<core>(&of, options)} {}
inspector::inspector(std::unique_ptr<core> c) noexcept : core_{std::move(c)} {}
inspector::~inspector() = default;

std::unique_ptr<inspector> inspector::of_all(const inspector_options& options) {
  return std::unique_ptr<inspector>{new inspector{std::make_unique<core>(nullptr, options)}};
}

net::endpoint inspector::at() const { return core_->listener.local(); }

std::string inspector::url() const {
  return "http://" + at().to_string() + "/" + (core_->token.empty() ? "" : "#" + core_->token);
}

// ---- requests ------------------------------------------------------------------------------------------------------

void inspector::core::admit(const request& rq, bool changes) const {
  if (token.empty()) {
    if (!names_this_machine(rq.authority())) throw status_error{403, "ask for 127.0.0.1 or localhost"};
    // A page of another site may send a POST, though not read the answer.
    const std::optional<std::string_view> origin = rq.header("origin");
    if (changes && origin && *origin != "http://" + std::string{rq.authority()})
      throw status_error{403, "this is for the page itself"};
    return;
  }
  constexpr std::string_view scheme = "Bearer ";
  const std::string_view given = rq.header("authorization").value_or("");
  if (!given.starts_with(scheme) || !same_secret(given.substr(scheme.size()), token))
    throw status_error{401,
                       "the token is missing or wrong: open the page by its whole address, with what is behind '#'"};
}

void inspector::core::add_routes() {
  site.get("/", [](request&, response& rs) {
    rs.header("content-type", "text/html; charset=utf-8");
    rs.header("cache-control", "no-store");
    rs.header("content-security-policy",
              "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; "
              "img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'");
    rs.header("x-content-type-options", "nosniff");
    rs.send(inspector_page);
  });
  site.get("/api/state", [this](request& rq, response& rs) { send_state(rq, rs); });
  site.get("/metrics", [this](request& rq, response& rs) {
    admit(rq);
    send_metrics(rs);
  });
  site.post("/api/dump", [this](request& rq, response& rs) { send_dump(rq, rs); });
  site.post("/api/trace", [this](request& rq, response& rs) { send_trace(rq, rs); });
}

std::string inspector::core::look(const snapshot_options& options) {
  std::string text;
  for_each_inspected(only, [&](runtime& r) { (text += text.empty() ? "" : ",") += to_json(snapshot(r, options)); });
  return "\"runtimes\":[" + text + "],\"tables\":" + to_json(status_tables());
}

void inspector::core::send_state(request& rq, response& rs) {
  admit(rq);
  snapshot_options options;
  options.fibers = static_cast<std::size_t>(number_in(rq, "fibers", 200, listed_most));
  options.actors = static_cast<std::size_t>(number_in(rq, "actors", 200, listed_most));
  options.follow = id_in(rq, "follow");
  std::string text;
  {
    const std::lock_guard guard{lock};
    const bool same = seen_at != clock::time_point{} && asked.fibers == options.fibers &&
                      asked.actors == options.actors && asked.follow == options.follow;
    if (!same) this_fiber::sleep_until(next_at);
    if (!same || clock::now() >= next_at) {
      const std::chrono::nanoseconds before = processor_time();
      seen = look(options);
      asked = options;
      seen_at = clock::now();
      next_at = seen_at + (processor_time() - before) * looks_share;
    }
    const auto ms = [](clock::duration d) {
      return std::to_string(std::max<std::int64_t>(std::chrono::duration_cast<milliseconds>(d).count(), 0));
    };
    const auto now = clock::now();
    text = "{\"program\":";
    add_json(text, path);
    text += ",\"pid\":" + std::to_string(::getpid()) + ",\"time_ms\":" + ms(seen_at - began) +
            ",\"age_ms\":" + ms(now - seen_at) + ",\"next_ms\":" + ms(next_at - now) + "," + seen + "}";
  }
  rs.header("cache-control", "no-store");
  rs.send_json(text);
}

void inspector::core::send_metrics(response& rs) const {
  std::vector<runtime_statistics> all;
  for_each_inspected(only, [&](runtime& r) { all.push_back(r.statistics()); });
  rs.header("content-type", "text/plain; version=0.0.4; charset=utf-8");
  rs.send(to_prometheus(all) + to_prometheus(status_tables()));
}

/// Of the whole process.
void inspector::core::send_dump(request& rq, response& rs) {
  admit(rq, true);
  const int file = ::memfd_create("ramie dump", MFD_CLOEXEC);
  if (file < 0) throw status_error{503, "no memory for a dump"};
  const bool done = dump(file, {.demangle = true});
  std::string text(static_cast<std::size_t>(std::max<off_t>(::lseek(file, 0, SEEK_CUR), 0)), '\0');
  const ssize_t n = ::pread(file, text.data(), text.size(), 0);
  ::close(file);
  if (!done || n < 0) throw status_error{409, "another dump is under way"};
  rs.send(text);
}

void inspector::core::send_trace(request& rq, response& rs) {
  admit(rq, true);
  const int seconds = number_in(rq, "seconds", 2, trace_seconds_most);
  const std::string name = rq.query("runtime").value_or("");
  const auto with_chosen = [&](auto use) {
    bool found = false;
    for_each_inspected(only, [&](runtime& r) {
      if (!std::exchange(found, found || name.empty() || r.options().name == name) && found) use(r);
    });
    if (!found) throw status_error{404, "there is no such runtime"};
  };
  bool recording = false;
  with_chosen([&](runtime& r) { recording = r.record({.every_fiber = true}); });
  if (!recording) throw status_error{409, "a recording is under way"};
  const auto stop = [&] { with_chosen([](runtime& r) { r.stop_recording(); }); };
  try {
    this_fiber::sleep_for(std::chrono::seconds{seconds});
  } catch (const cancelled&) {
    stop();
    throw;
  }
  stop();
  std::string text;
  with_chosen([&](runtime& r) { text = r.trace(); });
  rs.header("content-disposition", "attachment; filename=\"ramie-trace.json\"");
  rs.send_json(text);
}

}  // namespace ramie::http
