// One multi handle, many fibers.
//
//  C1 All calls on the multi handle, and on easy handles that are in it, are made under `lock`, which nobody holds while
//     suspended: libcurl allows one thread at a time, and its calls do not block (names are resolved by threads of
//     libcurl's own). Each call begins and ends on one thread; between calls it may be another.
//  C2 libcurl says by a callback which sockets it waits for, and they are put into an epoll set of the client's. It also
//     says by when it wants to be called. The driver, a fiber, waits for the epoll set (which is a descriptor that can be
//     waited for itself) and that moment, and makes the calls.
//  C3 A caller adds its transfer; libcurl then asks for a moment at once, which the driver learns by an eventfd in the
//     same set, and adding begins the transfer there.
//  C4 A transfer that is over leaves the multi handle under `lock`, before its caller is woken. A caller that is
//     cancelled takes its own out, under `lock`, unless it is over already. So the handle and the buffers on the
//     caller's stack are never used after `perform`.
#include <ramie/curl.hpp>
#include <ramie/fiber.hpp>
#include <ramie/net.hpp>

#include <curl/curl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <mutex>
#include <system_error>

namespace ramie::curl {

namespace {

using clock = std::chrono::steady_clock;

struct global {
  global() noexcept { curl_global_init(CURL_GLOBAL_DEFAULT); }
};

/// A descriptor that is closed with it.
class owned_fd {
 public:
  owned_fd(int fd, const char* what) : fd_{fd} {
    if (fd < 0) throw transfer_error{std::string{what} + ": " + std::system_category().message(errno), 0};
  }
  owned_fd(const owned_fd&) = delete;
  owned_fd& operator=(const owned_fd&) = delete;
  ~owned_fd() { ::close(fd_); }
  [[nodiscard]] int get() const noexcept { return fd_; }

 private:
  int fd_;
};

/// One call of `perform`, on its caller's stack.
struct transfer {
  explicit transfer(const request& r) : wanted{r} {}
  const request& wanted;
  response result;
  std::exception_ptr failure;  // of the request's functions
  std::array<char, CURL_ERROR_SIZE> message{};
  CURLcode code = CURLE_OK;
  bool too_long = false;
  bool over = false;  // the client's lock
  event done;
};

std::size_t take_body(char* data, std::size_t, std::size_t n, void* to) noexcept {
  auto& t = *static_cast<transfer*>(to);
  try {
    if (t.wanted.sink) {
      t.wanted.sink({data, n});
      return n;
    }
    if (t.result.body.size() + n > t.wanted.body_most) {
      t.too_long = true;
      return 0;
    }
    t.result.body.append(data, n);
    return n;
  } catch (...) {
    t.failure = std::current_exception();
    return 0;
  }
}

std::size_t take_header(char* data, std::size_t, std::size_t n, void* to) noexcept {
  auto& t = *static_cast<transfer*>(to);
  try {
    std::string_view line{data, n};
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
    const std::size_t colon = line.find(':');
    if (line.starts_with("HTTP/")) t.result.headers.clear();  // the next response, after a redirection or a 100
    if (colon == std::string_view::npos || line.starts_with("HTTP/")) return n;
    std::string name{line.substr(0, colon)};
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    std::string_view value = line.substr(colon + 1);
    while (value.starts_with(' ') || value.starts_with('\t')) value.remove_prefix(1);
    t.result.headers.emplace_back(std::move(name), value);
    return n;
  } catch (...) {
    t.failure = std::current_exception();
    return 0;
  }
}

struct clean_up {
  void operator()(CURL* easy) const noexcept { curl_easy_cleanup(easy); }
  void operator()(curl_slist* list) const noexcept { curl_slist_free_all(list); }
};
using easy_handle = std::unique_ptr<CURL, clean_up>;
using header_list = std::unique_ptr<curl_slist, clean_up>;

template <class T>
void set(CURL* easy, CURLoption option, T value) {
  if (const CURLcode code = curl_easy_setopt(easy, option, value); code != CURLE_OK)
    throw transfer_error{curl_easy_strerror(code), code};
}

easy_handle prepare(transfer& t, header_list& headers) {
  easy_handle easy{curl_easy_init()};
  if (!easy) throw std::bad_alloc{};
  const request& r = t.wanted;
  set(easy.get(), CURLOPT_URL, r.url.c_str());
  set(easy.get(), CURLOPT_NOSIGNAL, 1L);
  set(easy.get(), CURLOPT_PRIVATE, &t);
  set(easy.get(), CURLOPT_ERRORBUFFER, t.message.data());
  set(easy.get(), CURLOPT_WRITEFUNCTION, &take_body);
  set(easy.get(), CURLOPT_WRITEDATA, &t);
  set(easy.get(), CURLOPT_HEADERFUNCTION, &take_header);
  set(easy.get(), CURLOPT_HEADERDATA, &t);
  set(easy.get(), CURLOPT_FOLLOWLOCATION, r.follow_redirects ? 1L : 0L);
  if (r.body) {
    set(easy.get(), CURLOPT_POST, 1L);
    set(easy.get(), CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(r.body->size()));
    set(easy.get(), CURLOPT_POSTFIELDS, r.body->data());
  }
  if (r.method == "HEAD") set(easy.get(), CURLOPT_NOBODY, 1L);
  else if (!r.method.empty()) set(easy.get(), CURLOPT_CUSTOMREQUEST, r.method.c_str());
  for (const std::string& line : r.headers) {
    curl_slist* longer = curl_slist_append(headers.get(), line.c_str());
    if (longer == nullptr) throw std::bad_alloc{};
    static_cast<void>(headers.release());  // NOLINT(bugprone-unused-return-value): it is in `longer`
    headers.reset(longer);
  }
  if (headers) set(easy.get(), CURLOPT_HTTPHEADER, headers.get());
  if (r.configure) r.configure(easy.get());
  return easy;
}

}  // namespace

struct client::state {
  explicit state(const client_options& o)
      : events{::epoll_create1(EPOLL_CLOEXEC), "epoll_create1"},
        wake_up{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd"} {
    static const global once;
    epoll_event e{.events = EPOLLIN, .data = {.fd = wake_up.get()}};
    if (::epoll_ctl(events.get(), EPOLL_CTL_ADD, wake_up.get(), &e) != 0) throw std::bad_alloc{};
    multi.reset(curl_multi_init());
    if (!multi) throw std::bad_alloc{};
    curl_multi_setopt(multi.get(), CURLMOPT_SOCKETFUNCTION, &watch);
    curl_multi_setopt(multi.get(), CURLMOPT_SOCKETDATA, this);
    curl_multi_setopt(multi.get(), CURLMOPT_TIMERFUNCTION, &call_at);
    curl_multi_setopt(multi.get(), CURLMOPT_TIMERDATA, this);
    curl_multi_setopt(multi.get(), CURLMOPT_MAX_TOTAL_CONNECTIONS, o.connections_most);
    curl_multi_setopt(multi.get(), CURLMOPT_MAX_HOST_CONNECTIONS, o.connections_most_to_host);
  }

  // C2. Under `lock`, for both are called by calls on the multi handle.
  static int watch(CURL*, curl_socket_t fd, int what, void* self, void*) noexcept {
    auto& s = *static_cast<state*>(self);
    epoll_event e{.events = 0, .data = {.fd = fd}};
    if (what == CURL_POLL_REMOVE) {
      ::epoll_ctl(s.events.get(), EPOLL_CTL_DEL, fd, &e);
      return 0;
    }
    if (what != CURL_POLL_OUT) e.events |= EPOLLIN;
    if (what != CURL_POLL_IN) e.events |= EPOLLOUT;
    if (::epoll_ctl(s.events.get(), EPOLL_CTL_MOD, fd, &e) == 0) return 0;
    return ::epoll_ctl(s.events.get(), EPOLL_CTL_ADD, fd, &e) == 0 ? 0 : -1;
  }
  static int call_at(CURLM*, long in_ms, void* self) noexcept {
    auto& s = *static_cast<state*>(self);
    s.next_call = in_ms < 0 ? clock::time_point::max() : clock::now() + std::chrono::milliseconds{in_ms};
    s.wake();
    return 0;
  }
  void wake() const noexcept {
    const std::uint64_t one = 1;
    static_cast<void>(::write(wake_up.get(), &one, sizeof one));  // fails if it is far from having been seen
  }

  /// The driver's fiber.
  void drive() {
    for (;;) {
      clock::time_point until;
      {
        const std::lock_guard guard{lock};
        until = next_call;
      }
      bool late = false;
      try {
        with_deadline(until, [&] { net::wait_readable(events.get()); });
      } catch (const timeout_error&) {
        late = true;
      }
      std::vector<transfer*> ended;
      {
        const std::lock_guard guard{lock};
        if (late) {
          next_call = clock::time_point::max();  // unless the call sets another
          call(CURL_SOCKET_TIMEOUT, 0);
        }
        call_for_events();
        take_ended(ended);
      }
      for (transfer* t : ended) t->done.set();  // C4: the last access
    }
  }

 private:
  void call(curl_socket_t fd, int how) {
    int running = 0;
    curl_multi_socket_action(multi.get(), fd, how, &running);
  }
  void call_for_events() {
    std::array<epoll_event, 64> some;
    const int n = ::epoll_wait(events.get(), some.data(), static_cast<int>(some.size()), 0);
    for (int i = 0; i < n; ++i) {
      const epoll_event& e = some[static_cast<std::size_t>(i)];
      if (e.data.fd == wake_up.get()) {
        std::uint64_t count = 0;
        static_cast<void>(::read(wake_up.get(), &count, sizeof count));
        continue;
      }
      int how = 0;
      if ((e.events & EPOLLIN) != 0) how |= CURL_CSELECT_IN;
      if ((e.events & EPOLLOUT) != 0) how |= CURL_CSELECT_OUT;
      if ((e.events & (EPOLLERR | EPOLLHUP)) != 0) how |= CURL_CSELECT_ERR;
      call(e.data.fd, how);
    }
  }
  void take_ended(std::vector<transfer*>& ended) {
    int left = 0;
    while (CURLMsg* m = curl_multi_info_read(multi.get(), &left)) {
      if (m->msg != CURLMSG_DONE) continue;
      CURL* const easy = m->easy_handle;
      void* which = nullptr;
      curl_easy_getinfo(easy, CURLINFO_PRIVATE, &which);
      auto* const t = static_cast<transfer*>(which);
      t->code = m->data.result;
      t->over = true;
      curl_multi_remove_handle(multi.get(), easy);
      ended.push_back(t);
    }
  }

 public:
  std::mutex lock;  // C1
  owned_fd events, wake_up;
  struct clean_up_multi {
    void operator()(CURLM* m) const noexcept { curl_multi_cleanup(m); }
  };
  std::unique_ptr<CURLM, clean_up_multi> multi;  // before the descriptors go, for it calls `watch`
  clock::time_point next_call = clock::time_point::max();
  join_handle<void> driver;
};

client::client(const client_options& options) : state_{std::make_unique<state>(options)} {
  // libcurl and OpenSSL run on its stack. A guess: several times what they are known to use.
  state_->driver = without_scoped_values([&] {
    return spawn({.name = "curl", .stack_size = std::size_t{256} << 10}, [s = state_.get()] { s->drive(); });
  });
}

client::~client() {
  state_->driver.request_stop();
  shield([&] {
    try {
      state_->driver.join();
    } catch (const cancelled&) {
    }
  });
}

response client::perform(const request& r) {
  state& s = *state_;
  transfer t{r};
  header_list headers;
  const easy_handle easy = prepare(t, headers);
  {
    const std::lock_guard guard{s.lock};
    if (const CURLMcode code = curl_multi_add_handle(s.multi.get(), easy.get()); code != CURLM_OK)
      throw transfer_error{curl_multi_strerror(code), 0};
  }
  try {
    t.done.wait();
  } catch (...) {
    bool over = false;
    {
      const std::lock_guard guard{s.lock};
      over = t.over;
      if (!over) curl_multi_remove_handle(s.multi.get(), easy.get());
    }
    if (over) shield([&] { t.done.wait(); });  // C4: about to be set
    throw;
  }
  if (t.failure) std::rethrow_exception(t.failure);
  if (t.too_long)
    throw transfer_error{"the body is longer than body_most, " + std::to_string(r.body_most) + " bytes", t.code};
  if (t.code != CURLE_OK)
    throw transfer_error{t.message[0] != '\0' ? t.message.data() : curl_easy_strerror(t.code), t.code};
  curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &t.result.status);
  return std::move(t.result);
}

std::optional<std::string> response::header(std::string_view name) const {
  for (const auto& [n, value] : headers)
    if (n == name) return value;
  return std::nullopt;
}

}  // namespace ramie::curl
