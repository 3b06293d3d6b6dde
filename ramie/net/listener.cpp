#include <ramie/net/listener.hpp>

#include <ramie/base/error.hpp>
#include <ramie/fiber/this_fiber.hpp>
#include <ramie/poll/poller.hpp>
#include <ramie/poll/retry.hpp>
#include <ramie/poll/system.hpp>
#include <ramie/task/io_wait.hpp>

#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace ramie::net {

namespace {

using namespace detail;
using namespace std::chrono_literals;

constexpr const char* accepting = ramie::detail::io_reason.accept;
constexpr std::chrono::milliseconds pause_least{1}, pause_most{100};

/// Is it for lack of descriptors or memory?
bool is_shortage(system::result code) noexcept {
  return code == -EMFILE || code == -ENFILE || code == -ENOBUFS || code == -ENOMEM;
}

/// Is it a failure of one connection, or of the network behind it (accept(2)), rather than of the listener?
bool concerns_one_connection(system::result code) noexcept {
  switch (-code) {
    case ECONNABORTED:
    case EPERM:
    case EPROTO:
    case ENOPROTOOPT:
    case ENETDOWN:
    case ENETUNREACH:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENONET:
    case EOPNOTSUPP:
    case ETIMEDOUT: return true;
    default: return false;
  }
}

handle taken(system::result fd, const sockaddr_storage& from) {
  handle h = handle::owning(static_cast<int>(fd), endings::last);
  if (from.ss_family != AF_UNIX) h.get()->short_reads.store(false, std::memory_order_relaxed);
  return h;
}

handle listening(endpoint at, const tcp_options& options) {
  const std::string what = "listen at " + at.to_string();
  const auto check = [&](system::result code) {
    if (code < 0) system::fail(what, code);
    return static_cast<int>(code);
  };
  const int fd = check(socket_to_bind(at, SOCK_STREAM));
  handle h = handle::owning(fd, endings::last);
  if (at.family() != AF_UNIX) check(system::set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1));
  set_options(fd, at, options);
  if (options.reuse_port) check(system::set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1));
  if (at.family() == AF_INET6) check(system::set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0));
  check(system::bind(fd, at.data(), at.size()));
  check(system::listen(fd, options.backlog));
  return h;
}

/// A local socket's file without a listener was left by a process that was killed.
void remove_stale(const endpoint& at) {
  const std::string path = at.address();
  struct stat what{};
  if (path.front() == '@' || ::lstat(path.c_str(), &what) != 0 || !S_ISSOCK(what.st_mode)) return;
  // Of another type, so that a live listener gets no connection by this: it is EPROTOTYPE then.
  const raw_fd fd{static_cast<int>(system::socket(AF_UNIX, SOCK_DGRAM, 0))};
  if (fd.get() >= 0 && system::connect(fd.get(), at.data(), at.size()) == -ECONNREFUSED) ::unlink(path.c_str());
}

[[noreturn]] void fail_accepting(descriptor& d, system::result code) {
  if (is_closing(d)) throw io_error{accepting, io_errc::closed};
  system::fail(accepting, code);
}

}  // namespace

listener::listener(endpoint at, const tcp_options& options) : handle_{listening(at, options)} {}

listener::listener(int fd, const char* what, bool is_local) {
  constexpr int multipath = 262;  // IPPROTO_MPTCP, of Linux 5.6
  const auto option = [fd](int name) { return system::get_option(fd, SOL_SOCKET, name); };
  const system::result protocol = option(SO_PROTOCOL);
  const bool fits = is_local ? option(SO_DOMAIN) == AF_UNIX && option(SO_TYPE) == SOCK_STREAM
                             : protocol == IPPROTO_TCP || protocol == multipath;
  if (!fits || option(SO_ACCEPTCONN) != 1)
    throw invalid_argument{"ramie: " + std::string{what} + ": adopt: descriptor " + std::to_string(fd) + " is not a " +
                           (is_local ? "local" : "TCP") + " socket that listens"};
  system::check("adopt", system::set_nonblocking(fd));
  handle_ = handle{fd, endings::last};
}

void listener::close() noexcept {
  if (handle_.get() == nullptr) return;
  const possible_use during{*handle_};
  handle_.close();
  // Those that wait in accept give the number back later. So that the address is free now, it becomes that of another
  // file.
  const raw_fd other{during ? static_cast<int>(system::socket(AF_UNIX, SOCK_STREAM, 0)) : -1};
  if (other.get() < 0) return;
  if (poller* p = handle_.get()->registered.load(std::memory_order_acquire); p != nullptr) p->remove(*handle_);  // N5
  system::replace(handle_.fd(), other.get());
}

endpoint listener::local() const {
  const use during{handle_.get(), "getsockname"};
  sockaddr_storage at{};
  socklen_t size = 0;
  system::check("getsockname", system::local_name(during.fd(), at, size));
  if (is_closing(*handle_)) throw io_error{"getsockname", io_errc::closed};  // it may be another file's by now
  return endpoint::of(reinterpret_cast<const sockaddr*>(&at), size);
}

handle listener::accept_one(const std::source_location& where) {
  const use during{handle_.get(), accepting};
  for (std::chrono::milliseconds pause = pause_least;; pause = std::min(2 * pause, pause_most)) {
    sockaddr_storage from;
    socklen_t size = 0;
    // In a shortage the queue counts as drained until the pause is over, or cut off: otherwise all callers of accept
    // would try, and fail, in turn.
    const system::result fd = retry_reading(
        *handle_, accepting, where, [&](int own) { return system::accept(own, from, size); }, is_shortage);
    if (fd >= 0) return taken(fd, from);
    if (is_shortage(fd)) {
      pauses_.fetch_add(1, std::memory_order_relaxed);
      taken_edge edge{*handle_, direction::in, !RAMIE_PLANT(accept_pause_drops_edge)};
      this_fiber::sleep_for(pause, where);
      edge.set(true);
    } else if (!concerns_one_connection(fd)) {
      fail_accepting(*handle_, fd);
    }
  }
}

bool listener::accept_now(int own, handle& into) {
  for (;;) {
    sockaddr_storage from;
    socklen_t size = 0;
    const system::result fd = system::accept(own, from, size);
    if (fd == -EAGAIN) return false;
    if (fd >= 0) into = taken(fd, from);
    if (fd >= 0 || is_shortage(fd)) return true;
    if (fd != -EINTR && !concerns_one_connection(fd)) fail_accepting(*handle_, fd);
  }
}

namespace {
template <class Listener>
auto accept_unless_closed_by(Listener& l, const std::source_location& where)
    -> std::optional<decltype(l.accept(where))> {
  try {
    return l.accept(where);
  } catch (const io_error& e) {
    if (e.code() != io_errc::closed) throw;
  }
  return std::nullopt;
}
}  // namespace

tcp_stream tcp_listener::accept(std::source_location where) { return made_of(accept_one(where)); }

std::optional<tcp_stream> tcp_listener::accept_unless_closed(std::source_location where) {
  return accept_unless_closed_by(*this, where);
}

tcp_stream tcp_listener::made_of(handle h) const {
  tcp_stream s;
  s.handle_ = std::move(h);
  if (no_delay_) system::set_option(s.native_handle(), IPPROTO_TCP, TCP_NODELAY, 1);
  return s;
}

/// The right to look at a name and to take it: a lock of its folder.
class unix_listener::name_lock {
 public:
  explicit name_lock(const endpoint& at) {
    const std::string path = at.family() == AF_UNIX ? at.address() : std::string{};
    if (path.empty())
      throw invalid_argument{"ramie: unix_listener: " + at.to_string() + " is not the address of a local socket"};
    if (path.front() == '@') return;
    fd_ = raw_fd{::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    // A listener has it for an instant; a program of another kind may have it for its own ends.
    for (int tries = 0; fd_.get() >= 0 && ::flock(fd_.get(), LOCK_EX | LOCK_NB) != 0 && tries < 1000; ++tries) {
      if (errno != EWOULDBLOCK && errno != EINTR) break;
      ramie::detail::os_sleep(1'000'000);
    }
  }
  name_lock(const name_lock&) = delete;
  name_lock& operator=(const name_lock&) = delete;
  ~name_lock() {
    if (fd_.get() >= 0) ::flock(fd_.get(), LOCK_UN);  // a child of fork may have the descriptor, too
  }

 private:
  raw_fd fd_;
};

unix_listener::unix_listener(const endpoint& at, int backlog) : unix_listener{at, backlog, name_lock{at}} {}

unix_listener::unix_listener(const endpoint& at, int backlog, const name_lock& /*held*/)
    : listener{(remove_stale(at), at), {.backlog = backlog}}, at_{at} {
  const std::string path = at.address();
  struct stat made{};
  if (path.front() == '@' || ::lstat(path.c_str(), &made) != 0) return;
  device_ = made.st_dev;
  inode_ = made.st_ino;
  has_file_ = true;
}

unix_listener::unix_listener(unix_listener&& other) noexcept
    : listener{std::move(other)},  // NOLINTBEGIN(bugprone-use-after-move): only that base has been moved
      at_{other.at_},
      device_{other.device_},
      inode_{other.inode_},
      has_file_{std::exchange(other.has_file_, false)} {}  // NOLINTEND(bugprone-use-after-move)

unix_listener& unix_listener::operator=(unix_listener&& other) noexcept {
  if (this == &other) return *this;
  remove_file();
  listener::operator=(std::move(other));
  // NOLINTBEGIN(bugprone-use-after-move): only that base has been moved
  at_ = other.at_;
  device_ = other.device_;
  inode_ = other.inode_;
  // NOLINTEND(bugprone-use-after-move)
  has_file_ = std::exchange(other.has_file_, false);
  return *this;
}

void unix_listener::close() noexcept {
  remove_file();
  listener::close();
}

void unix_listener::leave_file() noexcept {
  const std::lock_guard guard{files_};
  has_file_ = false;
}

void unix_listener::remove_file() noexcept {
  // A second closer waits here, and then closes it.
  const std::lock_guard guard{files_};
  if (!std::exchange(has_file_, false) || handle_.get() == nullptr) return;
  const possible_use during{*handle_};
  if (!during) return;
  // Nobody replaces a file that is listened at: so, before the end of that, it is still the same one after this look.
  const char* const path = reinterpret_cast<const sockaddr_un*>(at_.data())->sun_path;
  struct stat there{};
  if (::lstat(path, &there) == 0 && there.st_dev == device_ && there.st_ino == inode_) ::unlink(path);
}

unix_stream unix_listener::accept(std::source_location where) { return made_of(accept_one(where)); }

std::optional<unix_stream> unix_listener::accept_unless_closed(std::source_location where) {
  return accept_unless_closed_by(*this, where);
}

unix_stream unix_listener::made_of(handle h) {
  unix_stream s;
  s.handle_ = std::move(h);
  return s;
}

// ---- sockets that were given ----------------------------------------------------------------------------------------

namespace {

/// Taken out of the environment. None: it is not there.
std::optional<std::string> take_variable(const char* name) {
  const char* const text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  std::string value{text};
  ::unsetenv(name);  // NOLINT(concurrency-mt-unsafe): the caller sees to it
  return value;
}

int number_in(const char* name, const std::string& text, int most) {
  int n = -1;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (code != std::errc{} || end != text.data() + text.size() || n < 0 || n > most)
    throw invalid_argument{"ramie: given_sockets: " + std::string{name} + "=" + text + "; a number of 0 to " +
                           std::to_string(most)};
  return n;
}

}  // namespace

std::vector<given_socket> given_sockets() {
  constexpr int first = 3;
  const std::optional<std::string> process = take_variable("LISTEN_PID"), count = take_variable("LISTEN_FDS"),
                                   names = take_variable("LISTEN_FDNAMES");
  std::vector<given_socket> all;
  if (!process || !count || number_in("LISTEN_PID", *process, INT_MAX) != ::getpid()) return all;
  const int n = number_in("LISTEN_FDS", *count, INT_MAX - first);
  for (int i = 0; i < n; ++i) {
    const int fd = first + i;
    const system::result code = ::fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 ? 0 : -errno;
    if (code != 0) system::fail("given_sockets: descriptor " + std::to_string(fd) + " of LISTEN_FDS=" + *count, code);
    all.push_back({fd, "unknown"});
  }
  if (n == 0 || !names) return all;
  std::size_t i = 0;
  for (std::size_t from = 0, to = 0; to != std::string::npos; from = to + 1, ++i) {
    to = names->find(':', from);
    if (i < all.size()) all[i].name = names->substr(from, to - from);
  }
  if (i != all.size())
    throw invalid_argument{"ramie: given_sockets: LISTEN_FDNAMES=" + *names + " has " + std::to_string(i) +
                           " names; LISTEN_FDS=" + *count};
  return all;
}

}  // namespace ramie::net
