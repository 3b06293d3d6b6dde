// Connections that this side opens: to an address, and to a name that has several.
//
// Of several addresses the connection that is there first wins, as in RFC 8305, section 5 ("Happy Eyeballs"): they are
// tried in the given order, the next one when another one fails, or after `attempt_delay`; what is under way goes on.
// The families take turns (section 4), so that a broken one costs one pause.
#include <ramie/net/stream.hpp>

#include <ramie/base/error.hpp>
#include <ramie/channel/select.hpp>
#include <ramie/net/resolve.hpp>
#include <ramie/net/select.hpp>
#include <ramie/poll/io_error.hpp>
#include <ramie/poll/system.hpp>
#include <ramie/task/io_wait.hpp>
#include <ramie/task/ready_point.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ramie::net {

namespace {

using namespace detail;

constexpr const char* connecting = ramie::detail::io_reason.connect;
constexpr auto attempt_delay = std::chrono::milliseconds{250};  // RFC 8305, section 8

/// A connection that is made, or failed, at once or later. The handle owns the socket, so one that is given up closes
/// it.
struct attempt {
  handle h;
  system::result code = 0;  // -EINPROGRESS: later
};

/// Of any family. Throws std::bad_alloc, and what set_options throws.
attempt try_to_begin(const endpoint& to, const tcp_options& options) {
  const system::result fd = system::socket(to.family(), SOCK_STREAM, 0);
  if (fd < 0) return {{}, fd};
  attempt made{handle::owning(static_cast<int>(fd), endings::last)};
  set_options(made.h.fd(), to, options);
  if (to.family() != AF_UNIX) made.h.get()->short_reads.store(false, std::memory_order_relaxed);
  made.code = system::connect(made.h.fd(), to.data(), to.size());
  // After EINTR the kernel continues it. (A local socket whose backlog is full says EAGAIN, and no event follows.)
  if (made.code == -EINTR) made.code = -EINPROGRESS;
  if (made.code == -EINPROGRESS) {
    static_cast<void>(made.h.get()->out.lock());
    made.h.get()->out.unlock(descriptor::not_ready);  // a new record is marked writable
  }
  return made;
}

/// How one ended that was to end later: the error is of the connection, or of the call itself.
system::result outcome(const handle& h) {
  const system::result failed = system::get_option(h.fd(), SOL_SOCKET, SO_ERROR);
  return failed > 0 ? -failed : failed;
}

handle connected(const endpoint& to, const tcp_options& options, const std::source_location& where) {
  ramie::detail::ready_point();
  const std::string what = "connect to " + to.to_string();
  attempt made = try_to_begin(to, options);
  if (made.code == -EINPROGRESS) {
    const use during{made.h.get(), connecting};
    await_ready(*made.h, direction::out, connecting, where);
    set_ready(*made.h, direction::out);  // there is room now
    made.code = outcome(made.h);
  }
  system::check(what.c_str(), made.code);
  return std::move(made.h);
}

/// The order in which they are tried: that of `given`, but for the families, which take turns.
std::vector<endpoint> in_turns(std::span<const endpoint> given) {
  std::vector<endpoint> all{given.begin(), given.end()};
  for (std::size_t i = 1; i < all.size(); ++i) {
    const auto at = all.begin() + static_cast<std::ptrdiff_t>(i);
    const int last = std::prev(at)->family();
    const auto other = std::find_if(at, all.end(), [last](const endpoint& e) { return e.family() != last; });
    if (other == all.end()) break;
    std::rotate(at, other, std::next(other));
  }
  return all;
}

using readiness = ready_case<io_waitable, ramie::detail::do_nothing>;

/// For the select over all that are under way: of several that are there the earlier one wins.
struct attempt_cases {
  using in_order = void;
  std::vector<readiness> all;
  ramie::detail::waitable_case& operator[](std::size_t i) { return all[i]; }
};

/// Waits for one of them, until `deadline` if there is one. no_case: it has passed, and none is there.
std::size_t first_of(const std::vector<attempt>& under_way, const std::chrono::steady_clock::time_point* deadline,
                     const std::source_location& where) {
  attempt_cases cases;
  cases.all.reserve(under_way.size());
  for (const attempt& one : under_way) cases.all.emplace_back(ramie::detail::do_nothing{}, one.h.get(), direction::out);
  const std::size_t i = ramie::detail::select_one(cases, cases.all.size(), true, deadline, where);
  // It may have been told late that its time is over.
  return i != ramie::detail::no_case ? i : ramie::detail::select_one(cases, cases.all.size(), false, nullptr, where);
}

/// `name`: for errors.
handle connected_to_one(std::span<const endpoint> to, const std::string& name, const tcp_options& options,
                        const std::source_location& where) {
  const std::vector<endpoint> all = in_turns(to);
  std::vector<attempt> under_way;
  system::result failure = 0;  // the last one
  std::chrono::steady_clock::time_point next_at;
  for (std::size_t next = 0;;) {
    const bool is_last = next == all.size();
    if (!under_way.empty()) {
      if (const std::size_t i = first_of(under_way, is_last ? nullptr : &next_at, where); i != ramie::detail::no_case) {
        const system::result code = outcome(under_way[i].h);
        if (code == 0) return std::move(under_way[i].h);
        failure = code;
        under_way.erase(under_way.begin() + static_cast<std::ptrdiff_t>(i));
        next_at = {};
        continue;
      }
    }
    if (is_last) {
      std::string what = "connect to " + name;
      if (all.size() != 1) what += " at " + std::to_string(all.size()) + " addresses; the last failure";
      system::fail(what, failure);
    }
    attempt made = try_to_begin(all[next++], options);
    if (made.code == 0) return std::move(made.h);
    if (made.code == -EINPROGRESS) {
      under_way.push_back(std::move(made));
      next_at = std::chrono::steady_clock::now() + attempt_delay;
    } else {
      failure = made.code;
      next_at = {};
    }
  }
}

/// Throws invalid_argument.
int checked(std::int64_t value, const char* name, std::int64_t least, std::int64_t most) {
  if (value < least || value > most)
    throw invalid_argument{"ramie: tcp_options: " + std::string{name} + " is " + std::to_string(value) +
                           "; it must be " + std::to_string(least) + " to " + std::to_string(most)};
  return static_cast<int>(value);
}

}  // namespace

void detail::set_options(int fd, const endpoint& at, const tcp_options& o) {
  if (at.family() != AF_INET && at.family() != AF_INET6) return;
  const auto set = [fd](int level, int name, int value, const char* what) {
    system::check(what, system::set_option(fd, level, name, value));
  };
  constexpr std::int64_t int_most = std::numeric_limits<int>::max();
  if (o.no_delay) set(IPPROTO_TCP, TCP_NODELAY, 1, "setsockopt(TCP_NODELAY)");
  if (o.keep_alive) {
    constexpr int seconds_most = 32'767, tries_most = 127;  // the kernel's
    const keep_alive_times& times = *o.keep_alive;
    set(SOL_SOCKET, SO_KEEPALIVE, 1, "setsockopt(SO_KEEPALIVE)");
    set(IPPROTO_TCP, TCP_KEEPIDLE, checked(times.after.count(), "keep_alive.after", 1, seconds_most),
        "setsockopt(TCP_KEEPIDLE)");
    set(IPPROTO_TCP, TCP_KEEPINTVL, checked(times.every.count(), "keep_alive.every", 1, seconds_most),
        "setsockopt(TCP_KEEPINTVL)");
    set(IPPROTO_TCP, TCP_KEEPCNT, checked(times.tries, "keep_alive.tries", 1, tries_most), "setsockopt(TCP_KEEPCNT)");
  }
  if (const int most = checked(o.unacknowledged_most.count(), "unacknowledged_most", 0, int_most); most != 0)
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, most, "setsockopt(TCP_USER_TIMEOUT)");
  if (const int size = checked(o.receive_buffer, "receive_buffer", 0, int_most); size != 0)
    set(SOL_SOCKET, SO_RCVBUF, size, "setsockopt(SO_RCVBUF)");
  if (const int size = checked(o.send_buffer, "send_buffer", 0, int_most); size != 0)
    set(SOL_SOCKET, SO_SNDBUF, size, "setsockopt(SO_SNDBUF)");
}

tcp_stream tcp_stream::connect(const endpoint& to, const tcp_options& options, std::source_location where) {
  tcp_stream made;
  made.handle_ = connected(to, options, where);
  return made;
}

tcp_stream tcp_stream::connect(std::span<const endpoint> to, const tcp_options& options, std::source_location where) {
  if (to.empty()) throw invalid_argument{"ramie: connect: there is no address"};
  tcp_stream made;
  made.handle_ = connected_to_one(to, to.front().to_string(), options, where);
  return made;
}

tcp_stream tcp_stream::connect_by_name(std::string_view host, std::string_view service, const tcp_options& options,
                                       const std::source_location& where) {
  const std::vector<endpoint> all = resolve(host, service, where);
  tcp_stream made;
  made.handle_ =
      connected_to_one(all, "\"" + std::string{host} + "\", service \"" + std::string{service} + "\"", options, where);
  return made;
}

unix_stream unix_stream::connect(const endpoint& to, std::source_location where) {
  unix_stream made;
  made.handle_ = connected(to, {.no_delay = false}, where);
  return made;
}

}  // namespace ramie::net
