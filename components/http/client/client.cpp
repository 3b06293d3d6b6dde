// The client: what of a request is sent where, which redirects are followed, and what is sent once more.
//
//  C3 A kept connection may have been closed by the server meanwhile. If it ends before the first byte of the response, a
//     request that may be repeated is sent once more on a new connection; any other fails. What the server surely has not
//     looked at (HTTP/2 says that) is sent once more in any case. That is apart from retries (C4): the server has not failed.
//  C4 With `retries_most`, what failed in a way that may pass is sent again after a pause, as long as the host's budget
//     lasts: without one, all clients of a server that is overloaded would send it several times what it cannot do once.
#include "client/pool.hpp"
#include "client/unpack.hpp"
#include "wire/text.hpp"

#include <ramie/runtime.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <random>

namespace ramie::http {

namespace {

outgoing judged(const client_request& what) {
  if (!is_token(what.method)) throw invalid_argument{"ramie: http: client: \"" + what.method + "\" is no method"};
  outgoing all{.method = what.method, .body = what.body};
  for (const auto& [name, value] : what.headers) {
    if (!is_token(name) || !is_field_value(value))
      throw invalid_argument{"ramie: http: client: a header's name or value that HTTP does not allow"};
    for (const char* own : {"host", "content-length", "transfer-encoding", "connection", "keep-alive",
                            "proxy-connection", "te", "expect", "upgrade"})
      if (same_name(name, own))
        throw invalid_argument{std::string{"ramie: http: client: header "} + own + " is the client's own"};
    all.fields.emplace_back(lowered(name), value);
  }
  return all;
}

bool is_secret(std::string_view name) noexcept {
  return name == "authorization" || name == "cookie" || name == "proxy-authorization";
}

/// So that its connection is kept.
void skip_body(transfer& t) {
  constexpr std::size_t most = 64 * 1024;  // more is not worth a connection; a guess
  std::array<std::byte, 4096> part;
  std::size_t skipped = 0;
  try {
    while (const std::size_t n = t.read(part))
      if ((skipped += n) > most) return;
  } catch (const net::io_error&) {
    // The connection is not kept.
  }
}

std::int64_t now_s() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

struct client_response::state {
  std::string from;
  std::unique_ptr<transfer> by;
  std::uint64_t read = 0, body_most = 0;
};

client_response::client_response(std::unique_ptr<state> made) noexcept : state_{std::move(made)} {}
client_response::client_response(client_response&&) noexcept = default;
client_response& client_response::operator=(client_response&&) noexcept = default;
client_response::~client_response() = default;

int client_response::status() const noexcept { return state_->by->status; }
std::span<const header_field> client_response::headers() const noexcept { return state_->by->fields; }
const std::string& client_response::url() const noexcept { return state_->from; }

std::size_t client_response::read_some(std::span<std::byte> into) {
  const std::size_t n = state_->by->read(into);
  state_->read += n;
  if (state_->read > state_->body_most) throw net::io_error{"HTTP body", net::io_errc::too_long};
  return n;
}

std::string client_response::body(std::size_t most) {
  std::string all;
  std::array<std::byte, 8192> part;
  while (const std::size_t n = read_some(part)) {
    if (n > most - all.size()) throw net::io_error{"HTTP body", net::io_errc::too_long};
    all.append(reinterpret_cast<const char*>(part.data()), n);
  }
  return all;
}

void client_response::skip() { skip_body(*state_->by); }

// ---- the client ----------------------------------------------------------------------------------------------------

client::client(const client_options& options, std::optional<tls::client_context> context) {
  if (options.header_most < 512)
    throw invalid_argument{"ramie: http: client_options: header_most is " + std::to_string(options.header_most) +
                           "; it has to be at least 512"};
  if (options.retries_most < 0)
    throw invalid_argument{"ramie: http: client_options: retries_most is " + std::to_string(options.retries_most) +
                           "; it has to be at least 0"};
  pool_ = std::make_shared<client_pool>(options, std::move(context));
}

namespace {

/// C3. `connected` says whether anything may have been sent.
std::unique_ptr<transfer> send_once(const std::shared_ptr<client_pool>& pool, const url& to, outgoing what,
                                    bool& connected) {
  const proxy* by = pool->proxy_for(to);
  what.to = &to;
  what.absolute = by != nullptr && to.scheme == "http" && !by->is_socks();
  if (what.absolute && !by->authorization.empty()) what.fields.emplace_back("proxy-authorization", by->authorization);
  for (bool again = false;; again = true) {
    connected = false;
    client_pool::link l = pool->get(to, by, again);
    connected = true;
    try {
      if (l.shared != nullptr) return start_2(std::move(l.shared), what);
      return start_1(pool, client_pool::key_of(to, by), std::move(l.w), what);
    } catch (const not_begun& e) {
      connected = !e.surely;
      if (again || (!e.surely && !(l.is_kept && is_idempotent(what.method)))) throw;
    }
  }
}

/// C4.
std::unique_ptr<transfer> send_to(const std::shared_ptr<client_pool>& pool, const url& to, const outgoing& what) {
  const client_options& o = pool->options;
  const std::string host = client_pool::key_of(to, nullptr);
  const bool idempotent = is_idempotent(what.method);
  const auto pause_of = [&](int retry, std::optional<std::string_view> retry_after) {
    return pause_before(retry, std::random_device{}(), retry_after, now_s(), o.response_time);
  };
  if (o.retries_most > 0) pool->budget.note_request(host);
  for (int retry = 1;; ++retry) {
    std::optional<std::chrono::nanoseconds> pause;
    bool connected = false;
    try {
      std::unique_ptr<transfer> t = send_once(pool, to, what, connected);
      if (retry > o.retries_most || !idempotent || !is_passing(t->status)) return t;
      pause = pause_of(retry, find_header(t->fields, "retry-after"));
      if (!pause || !pool->budget.take(host)) return t;
      skip_body(*t);
    } catch (const net::io_error& e) {
      const bool may_be_repeated = is_passing(e.code()) && (idempotent || !connected);
      if (retry > o.retries_most || !may_be_repeated || !pool->budget.take(host)) throw;
      pause = pause_of(retry, std::nullopt);
    }
    this_fiber::sleep_for(*pause);
  }
}

void add_cookies(std::vector<std::pair<std::string, std::string>>& fields, const std::string& kept) {
  if (kept.empty()) return;
  for (auto& [name, value] : fields)
    if (name == "cookie") {
      value += "; " + kept;
      return;
    }
  fields.emplace_back("cookie", kept);
}

}  // namespace

client_response client::request(std::string_view text, const client_request& what) {
  const outgoing all = judged(what);
  const struct url first = parse_url(text);
  // A request that names a coding or a range gets the body as the server sends it.
  const bool asks_packed =
      pool_->options.unpack && std::none_of(all.fields.begin(), all.fields.end(), [](const auto& f) {
        return f.first == "accept-encoding" || f.first == "range";
      });
  struct url to = first;
  for (int redirects = 0;; ++redirects) {
    if (to.scheme != "http" && to.scheme != "https")
      throw invalid_argument{"ramie: http: client: the scheme of \"" + std::string{text} +
                             "\" has to be http or https"};
    outgoing now = all;
    if (asks_packed) now.fields.emplace_back("accept-encoding", "gzip");
    if (client_pool::key_of(to, nullptr) != client_pool::key_of(first, nullptr))
      std::erase_if(now.fields, [](const auto& f) { return is_secret(f.first); });
    if (pool_->options.cookies) add_cookies(now.fields, pool_->cookies.header_for(to, now_s()));
    auto s = std::make_unique<client_response::state>();
    s->from = to.scheme + "://" + to.authority() + to.target;
    s->body_most = pool_->options.body_most;
    s->by = send_to(pool_, to, now);
    if (pool_->options.cookies)
      for (const header_field& f : s->by->fields)
        if (same_name(f.name, "set-cookie")) pool_->cookies.take(to, f.value, now_s());
    if (asks_packed && what.method != "HEAD" && s->by->status != 204 && s->by->status != 304 &&
        is_packed(s->by->fields))
      s->by = unpacked(std::move(s->by), s->body_most);
    client_response r{std::move(s)};
    const bool redirect =
        r.status() == 301 || r.status() == 302 || r.status() == 303 || r.status() == 307 || r.status() == 308;
    const auto location = r.header("location");
    if (!redirect || !location || (what.method != "GET" && what.method != "HEAD")) return r;
    if (redirects >= pool_->options.redirects_most) refuse_response("too many redirects");
    const bool was_secure = to.scheme == "https";
    const std::string next = resolved(to, *location);
    try {
      to = parse_url(next);
    } catch (const invalid_argument&) {
      refuse_response("a redirect to what is no URL");
    }
    if (was_secure && to.scheme != "https") refuse_response("a redirect from https to http");
    r.skip();  // so that the connection is kept
  }
}

}  // namespace ramie::http
