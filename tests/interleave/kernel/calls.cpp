// The calls of poll/system.hpp, by the simulated kernel.
#include "../engine.hpp"
#include "../plain_memory.hpp"
#include "files.hpp"
#include "kernel.hpp"

#include <ramie/poll/system.hpp>

#include <netinet/in.h>
#include <poll.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ramie::interleave {

namespace {

/// An unconnected socket of TCP or local; a listener takes its place at its number.
struct kernel {
  kernel_settings is;
  std::array<std::pair<int, int>, static_cast<std::size_t>(kernel_call::count)> failing{};  // calls until then, errno
  std::array<int, static_cast<std::size_t>(kernel_call::count)> made{};
  std::vector<std::shared_ptr<pipe_core>> fifos;
  std::map<std::string, listening_socket*> listeners;
  int next_port = 50'000;
  int futile = 0;
  std::vector<std::shared_ptr<file>> numbers;  // last: files tell others when they end

  [[nodiscard]] std::shared_ptr<file> at(int fd) const {
    return fd >= 0 && static_cast<std::size_t>(fd) < numbers.size() ? numbers[static_cast<std::size_t>(fd)] : nullptr;
  }
  [[nodiscard]] bool is_full() const { return count() >= is.descriptors_most; }
  [[nodiscard]] int count() const {
    return static_cast<int>(std::count_if(numbers.begin(), numbers.end(), [](const auto& f) { return f != nullptr; }));
  }
  /// One of its numbers is given up: the last one of a listener frees the address.
  void close(const file& f) {
    const auto* const l = dynamic_cast<const listening_socket*>(&f);
    if (l == nullptr || std::count_if(numbers.begin(), numbers.end(), [&](const auto& n) { return n.get() == l; }) > 1)
      return;
    listeners.erase(l->name);
  }
  int put(std::shared_ptr<file> f) {
    const auto free = std::find(numbers.begin(), numbers.end(), nullptr);
    const auto fd = static_cast<int>(free - numbers.begin());
    if (free == numbers.end()) numbers.push_back(std::move(f));
    else *free = std::move(f);
    return fd;
  }
};
kernel* now = nullptr;

/// In the trace a file is what has its lock.
void note(const char* what, const file* of, result r) noexcept {
  active->note(what, of == nullptr ? nullptr : &of->lock, static_cast<std::uint64_t>(r), nullptr);
}

/// A call of this kind that shall fail: minus the errno, or 0.
result failure_of(kernel_call c) noexcept {
  const auto i = static_cast<std::size_t>(c);
  ++now->made[i];
  auto& [left, code] = now->failing[i];
  if (left == 0) return 0;
  --left;
  return left == 0 ? -code : 0;
}

/// A call by number (K1): `f(file)` while nothing else happens. `what` is for the trace.
template <class F>
result call(const char* what, int fd, F f) noexcept {
  const unwatched here;
  if (active == nullptr || now == nullptr) return -ENOSYS;
  active->point();
  const std::shared_ptr<file> found = now->at(fd);
  if (found == nullptr)
    active->fail(std::string{what} + " of the number " + std::to_string(fd) + ", which is not open");
  pass_through(found->lock);
  const result r = f(*found);
  if (r == -EBADF) active->fail(std::string{what} + " of a wrong number");
  if (r == -EAGAIN) ++now->futile;
  note(what, found.get(), r);
  return r;
}

template <class F>
result call(const char* what, int fd, kernel_call c, F f) noexcept {
  return call(what, fd, [&](file& of) {
    if (const result failed = failure_of(c); failed != 0) return failed;
    if (now->is.interrupts && active->wakes_spuriously()) return result{-EINTR};
    return static_cast<result>(f(of));
  });
}

/// One that makes files.
template <class F>
result make(const char* what, kernel_call c, int how_many, F f) noexcept {
  const unwatched here;
  if (active == nullptr || now == nullptr) return -ENOSYS;
  active->point();
  active->drain(active->self());
  result r = failure_of(c);
  if (r == 0) r = now->count() + how_many > now->is.descriptors_most ? -EMFILE : static_cast<result>(f());
  note(what, nullptr, r);
  return r;
}

template <class T, class F>
result as(file& f, F then) {
  T* const it = dynamic_cast<T*>(&f);
  return it == nullptr ? -ENOTSOCK : static_cast<result>(then(*it));
}

std::size_t shortened(std::size_t size, std::uint32_t one_in) {
  if (!now->is.short_counts || size < 2 || active->below(one_in) != 0) return size;
  return 1 + active->below(static_cast<std::uint32_t>(size - 1));
}

/// The kernel's own accesses to the caller's memory count as the caller's.
void note_copy(const void* at, result n, bool writes) noexcept {
  if (n > 0 && watched_run)
    note_access(reinterpret_cast<std::uintptr_t>(at), static_cast<std::size_t>(n), {writes, false}, nullptr);
}

result read_into(file& f, char* to, std::size_t size) {
  const result n = f.read(to, f.reads_short() ? shortened(size, 2) : size);
  note_copy(to, n, true);
  return n;
}

result write_from(file& f, const char* from, std::size_t size) {
  const result n = f.write(from, shortened(size, 4));
  note_copy(from, n, false);
  return n;
}

result write_parts(file& f, const iovec* parts, std::size_t n) {
  result done = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (parts[i].iov_len == 0) continue;
    const result r = write_from(f, static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
    if (r < 0) return done != 0 ? done : r;
    done += r;
    if (r != static_cast<result>(parts[i].iov_len)) break;
  }
  return done;
}

/// An address as text: a family and a port, or a path.
std::string name_of(const sockaddr* at, socklen_t size) {
  if (at->sa_family == AF_INET)
    return "tcp " + std::to_string(ntohs(reinterpret_cast<const sockaddr_in*>(at)->sin_port));
  if (at->sa_family == AF_INET6)
    return "tcp " + std::to_string(ntohs(reinterpret_cast<const sockaddr_in6*>(at)->sin6_port));
  const auto* local = reinterpret_cast<const sockaddr_un*>(at);
  return "local " + std::string{local->sun_path, size - offsetof(sockaddr_un, sun_path)};
}

void put_name(const std::string& name, sockaddr_storage& at, socklen_t& size) {
  at = {};
  if (name.rfind("local ", 0) == 0 || name.empty()) {
    auto& local = reinterpret_cast<sockaddr_un&>(at);
    local.sun_family = AF_UNIX;
    const std::size_t n = name.empty() ? 0 : name.size() - 6;
    std::memcpy(local.sun_path, name.data() + name.size() - n, n);
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + n);
    return;
  }
  auto& ip = reinterpret_cast<sockaddr_in&>(at);
  ip.sin_family = AF_INET;
  ip.sin_port = htons(static_cast<std::uint16_t>(std::stoi(name.substr(4))));
  ip.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  size = sizeof ip;
}

}  // namespace

void begin_kernel(const kernel_settings& s) {
  const unwatched here;
  engine* const run = std::exchange(active, nullptr);  // what the run before has left ends without a step
  delete std::exchange(now, nullptr);
  active = run;
  forget_kernel_locks();
  now = new kernel;
  now->is = s;
}
void fail_call(kernel_call c, int nth, int code) {
  const unwatched here;
  now->failing[static_cast<std::size_t>(c)] = {nth, code};
}
int calls_made(kernel_call c) noexcept { return now->made[static_cast<std::size_t>(c)]; }
int futile_calls() noexcept { return now->futile; }
int open_numbers() noexcept { return now->count(); }

kernel_fifo::kernel_fifo() {
  const unwatched here;
  which_ = now->fifos.size();
  now->fifos.push_back(std::make_shared<pipe_core>(now->is.room));
}
namespace {
int open_fifo(std::size_t which, bool writes) {
  return static_cast<int>(make("open a FIFO", kernel_call::pipe, 1, [&] {
    const std::shared_ptr<pipe_core>& core = now->fifos[which];
    pass_through(core->lock);
    const int fd = now->put(std::make_shared<pipe_end>(core, writes));
    if (writes && core->writers.size() == 1)
      for (pipe_end* reader : core->readers) reader->changed();  // there is nothing to see
    return fd;
  }));
}
}  // namespace
int kernel_fifo::open_to_read() { return open_fifo(which_, false); }
int kernel_fifo::open_to_write() { return open_fifo(which_, true); }

}  // namespace ramie::interleave

namespace ramie::net::detail::system {

using namespace interleave;

result socket(int family, int type, int /*protocol*/) noexcept {
  return make("socket", kernel_call::socket, 1, [&]() -> result {
    if (type != SOCK_STREAM) return -EPROTONOSUPPORT;
    return now->put(std::make_shared<socket_file>(family != AF_UNIX, now->is.room));
  });
}
result socket_pair(int type, int (&both)[2]) noexcept {
  return make("socketpair", kernel_call::socket, 2, [&]() -> result {
    if (type != SOCK_STREAM) return -EPROTONOSUPPORT;
    auto a = std::make_shared<socket_file>(false, now->is.room), b = std::make_shared<socket_file>(false, now->is.room);
    socket_file::join(*a, *b);
    both[0] = now->put(std::move(a));
    both[1] = now->put(std::move(b));
    return 0;
  });
}
result pipe(int (&both)[2]) noexcept {
  return make("pipe", kernel_call::pipe, 2, [&] {
    const auto core = std::make_shared<pipe_core>(now->is.room);
    both[0] = now->put(std::make_shared<pipe_end>(core, false));
    both[1] = now->put(std::make_shared<pipe_end>(core, true));
    return 0;
  });
}
result bind(int fd, const sockaddr* at, socklen_t size) noexcept {
  return call("bind", fd, [&](file& f) {
    if (const result failed = failure_of(kernel_call::bind); failed != 0) return failed;
    return as<socket_file>(f, [&](socket_file& s) -> result {
      std::string name = name_of(at, size);
      if (name == "tcp 0") name = "tcp " + std::to_string(now->next_port++);
      if (now->listeners.contains(name)) return -EADDRINUSE;
      s.name = std::move(name);
      s.bound = true;
      return 0;
    });
  });
}
result listen(int fd, int backlog) noexcept {
  return call("listen", fd, [&](file& f) {
    if (const result failed = failure_of(kernel_call::listen); failed != 0) return failed;
    return as<socket_file>(f, [&](socket_file& s) -> result {
      if (!s.bound || now->listeners.contains(s.name)) return -EADDRINUSE;
      auto made = std::make_shared<listening_socket>(s.is_tcp, s.name, static_cast<std::size_t>(std::max(backlog, 1)),
                                                     now->is.room);
      now->listeners[s.name] = made.get();
      now->numbers[static_cast<std::size_t>(fd)] = std::move(made);
      return 0;
    });
  });
}
result connect(int fd, const sockaddr* to, socklen_t size) noexcept {
  return call("connect", fd, [&](file& f) {
    if (const result failed = failure_of(kernel_call::connect); failed != 0) return failed;
    return as<socket_file>(f, [&](socket_file& s) -> result {
      const auto at = now->listeners.find(name_of(to, size));
      if (at == now->listeners.end()) {
        if (!s.is_tcp) return -ECONNREFUSED;
        s.refuse(ECONNREFUSED);
        return -EINPROGRESS;
      }
      pass_through(at->second->lock);
      return at->second->connect(s);
    });
  });
}
result accept(int fd, sockaddr_storage& from, socklen_t& size) noexcept {
  return call("accept", fd, kernel_call::accept, [&](file& f) {
    return as<listening_socket>(f, [&](listening_socket& l) -> result {
      if (now->is_full()) return -EMFILE;  // K5
      if (l.empty()) return -EAGAIN;
      auto s = l.take();
      put_name(s->is_tcp ? s->peer_name.empty() ? "tcp 1" : s->peer_name : s->peer_name, from, size);
      return now->put(std::move(s));
    });
  });
}
result shutdown(int fd, int how) noexcept {
  return call("shutdown", fd, [&](file& f) {
    return as<socket_file>(f, [&](socket_file& s) { return s.shut(how != SHUT_WR, how != SHUT_RD); });
  });
}
result receive(int fd, void* to, std::size_t size) noexcept {
  return call("receive", fd, kernel_call::read, [&](file& f) { return read_into(f, static_cast<char*>(to), size); });
}
result send(int fd, const void* from, std::size_t size) noexcept {
  return call("send", fd, kernel_call::write,
              [&](file& f) { return write_from(f, static_cast<const char*>(from), size); });
}
result receive_message(int /*fd*/, msghdr& /*m*/, int /*flags*/) noexcept { return -ENOSYS; }
result send_message(int fd, const msghdr& m) noexcept {
  return call("send", fd, kernel_call::write, [&](file& f) { return write_parts(f, m.msg_iov, m.msg_iovlen); });
}
result read(int fd, void* to, std::size_t size) noexcept {
  return call("read", fd, kernel_call::read, [&](file& f) { return read_into(f, static_cast<char*>(to), size); });
}
result write(int fd, const iovec* parts, int n) noexcept {
  return call("write", fd, kernel_call::write,
              [&](file& f) { return write_parts(f, parts, static_cast<std::size_t>(n)); });
}
result send_file(int /*to*/, int /*from*/, off_t& /*at*/, std::size_t /*size*/) noexcept { return -ENOSYS; }
result set_option(int fd, int /*level*/, int /*name*/, int /*value*/) noexcept {
  return call("setsockopt", fd, [](file&) { return 0; });
}
result get_option(int fd, int /*level*/, int name) noexcept {
  return call("getsockopt", fd, [&](file& f) {
    return as<socket_file>(f, [&](socket_file& s) -> result {
      if (name == SO_ERROR) return s.take_error();
      return name == SO_PROTOCOL && s.is_tcp ? result{IPPROTO_TCP} : 0;
    });
  });
}
result local_name(int fd, sockaddr_storage& at, socklen_t& size) noexcept {
  return call("getsockname", fd, [&](file& f) -> result {
    if (const auto* l = dynamic_cast<listening_socket*>(&f)) put_name(l->name, at, size);
    else if (const auto* s = dynamic_cast<socket_file*>(&f)) put_name(s->name, at, size);
    else return -ENOTSOCK;
    return 0;
  });
}
result peer_name(int fd, sockaddr_storage& at, socklen_t& size) noexcept {
  return call("getpeername", fd, [&](file& f) {
    return as<socket_file>(f, [&](socket_file& s) -> result {
      put_name(s.peer_name, at, size);
      return 0;
    });
  });
}
result open_again(int /*fd*/) noexcept { return -ENOSYS; }
result duplicate(int fd) noexcept {
  return call("dup", fd, [&](file&) -> result { return now->is_full() ? -EMFILE : now->put(now->at(fd)); });
}
result replace(int fd, int by) noexcept {
  return call("dup2", by, [&](file&) -> result {
    const std::shared_ptr<file> gone = now->at(fd);
    if (gone != nullptr) now->close(*gone);
    if (now->numbers.size() <= static_cast<std::size_t>(fd)) now->numbers.resize(static_cast<std::size_t>(fd) + 1);
    now->numbers[static_cast<std::size_t>(fd)] = now->at(by);
    return fd;
  });
}
result set_nonblocking(int fd) noexcept {
  return call("fcntl", fd, [](file&) { return 0; });
}
result watch() noexcept { return -ENOSYS; }
result watch_add(int /*fd*/, const char* /*path*/, std::uint32_t /*events*/) noexcept { return -ENOSYS; }
result watch_remove(int /*fd*/, int /*number*/) noexcept { return -ENOSYS; }
bool is_ready(int fd, short events) noexcept {
  // The bits of poll and of epoll are the same.
  return call("poll", fd, [&](file& f) -> result {
           return (f.mask() & (static_cast<std::uint32_t>(events) | EPOLLERR | EPOLLHUP)) != 0 ? 0 : -EAGAIN;
         }) != -EAGAIN;
}
void close(int fd) noexcept {
  call("close", fd, [&](file& f) {
    now->close(f);
    now->numbers[static_cast<std::size_t>(fd)] = nullptr;
    return 0;
  });
}

result new_set() noexcept {
  return make("epoll_create", kernel_call::new_set, 1, [] { return now->put(std::make_shared<set_file>()); });
}
result new_event() noexcept {
  return make("eventfd", kernel_call::new_event, 1, [] { return now->put(std::make_shared<event_file>()); });
}
result set_add(int set, int fd, std::uint32_t events, std::uint64_t tag) noexcept {
  return call("epoll_ctl, add", set, [&](file& s) {
    if (const result failed = failure_of(kernel_call::set_add); failed != 0) return failed;
    const std::shared_ptr<file> f = now->at(fd);
    if (f == nullptr) return result{-EBADF};
    pass_through(f->lock);
    return as<set_file>(s, [&](set_file& e) { return e.set.add(*f, events, tag); });
  });
}
result set_remove(int set, int fd) noexcept {
  return call("epoll_ctl, delete", set, [&](file& s) {
    const std::shared_ptr<file> f = now->at(fd);
    if (f == nullptr) return result{-EBADF};
    return as<set_file>(s, [&](set_file& e) { return e.set.remove(*f); });
  });
}
result set_wait(int set, epoll_event* into, int most, std::int64_t timeout_ns) noexcept {
  if (active == nullptr) return -ENOSYS;
  const std::int64_t deadline_ns = timeout_ns < 0 ? never_ns : active->now_ns() + timeout_ns;
  for (;;) {
    const void* on = nullptr;
    const result n = call("epoll_wait", set, [&](file& s) {
      return as<set_file>(s, [&](set_file& e) -> result {
        on = &e.set;
        return e.set.take(into, active->below(4) == 0 ? 1 : most);
      });
    });
    const unwatched here;
    if (n != 0 || active->now_ns() >= deadline_ns) return n;
    if (active->wakes_spuriously()) return -EINTR;
    active->block(on, deadline_ns);
  }
}
result raise(int event) noexcept {
  const char one = 1;
  return call("write an event", event, [&](file& f) { return f.write(&one, 1); });
}

}  // namespace ramie::net::detail::system
