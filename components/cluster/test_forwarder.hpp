// For tests: a TCP forwarder, by which a connection can be cut as a network cuts it: nobody is told, one way or both
// ways, and what was under way comes when it is mended.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <list>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace cluster_tests {

class forwarder {
 public:
  enum class way : std::uint8_t { to_server = 1, to_client = 2, both = 3 };

  /// From a free port of loopback, port(), to `target` there. Clients whose connection the target does not take are
  /// turned away.
  explicit forwarder(std::uint16_t target) : target_{target} {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    sockaddr_in at = loopback(0);
    socklen_t size = sizeof(at);
    if (::bind(listener_, reinterpret_cast<const sockaddr*>(&at), size) != 0 || ::listen(listener_, 64) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &size) != 0)
      throw std::runtime_error{"forwarder: cannot listen"};
    port_ = ntohs(at.sin_port);
    thread_ = std::thread{[this] { forward(); }};
  }
  forwarder(const forwarder&) = delete;
  forwarder& operator=(const forwarder&) = delete;
  ~forwarder() {
    over_ = true;
    wake();
    thread_.join();
    ::close(listener_);
    ::close(wake_);
  }
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  /// Where it forwards to from the next connection on.
  void aim(std::uint16_t target) { target_ = target; }
  /// Nothing more passes that way; new connections are taken, and carry nothing that way either.
  void cut(way which) {
    cut_ = static_cast<std::uint8_t>(which);
    wake();
  }
  void mend() {
    cut_ = 0;
    wake();
  }
  /// Ends the connections that there are.
  void break_connections() {
    broken_ = true;
    wake();
  }

 private:
  struct pair {
    int end[2];              // client, server
    std::string pending[2];  // read at this end, for the other one
  };

  static sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons(port);
    return at;
  }
  void wake() const {
    const std::uint64_t one = 1;
    static_cast<void>(::write(wake_, &one, sizeof(one)));
  }
  /// What is read at this end stays there.
  [[nodiscard]] bool is_cut(int end) const { return (cut_ & (end == 0 ? 1 : 2)) != 0; }

  void take() {
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (client < 0) return;
    const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in at = loopback(target_);
    if (::connect(server, reinterpret_cast<const sockaddr*>(&at), sizeof(at)) != 0) {
      ::close(server);
      ::close(client);
      return;
    }
    ::fcntl(server, F_SETFL, O_NONBLOCK);
    const int yes = 1;
    for (const int fd : {client, server}) ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    pairs_.push_back({{client, server}, {}});
  }

  /// False: the connection is over.
  bool move(pair& p, int from) const {
    std::string& pending = p.pending[from];
    if (is_cut(from)) return true;
    if (pending.empty()) {
      char bytes[65536];
      const ssize_t n = ::recv(p.end[from], bytes, sizeof(bytes), 0);
      if (n == 0) return false;
      if (n < 0) return errno == EAGAIN || errno == EINTR;
      pending.assign(bytes, static_cast<std::size_t>(n));
    }
    const ssize_t n = ::send(p.end[1 - from], pending.data(), pending.size(), MSG_NOSIGNAL);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    pending.erase(0, static_cast<std::size_t>(n));
    return true;
  }

  static void close(const pair& p) {
    for (const int fd : p.end) ::close(fd);
  }

  void forward() {
    while (!over_) {
      std::vector<pollfd> wanted{{wake_, POLLIN, 0}, {listener_, POLLIN, 0}};
      for (const pair& p : pairs_)
        for (int end = 0; end < 2; ++end) {
          short events = 0;
          if (!is_cut(end) && p.pending[end].empty()) events |= POLLIN;
          if (!is_cut(1 - end) && !p.pending[1 - end].empty()) events |= POLLOUT;
          // One that is cut does not notice an end, either.
          wanted.push_back({events == 0 ? -1 : p.end[end], events, 0});
        }
      ::poll(wanted.data(), wanted.size(), -1);
      std::uint64_t count = 0;
      static_cast<void>(::read(wake_, &count, sizeof(count)));
      const bool all = broken_.exchange(false);
      pairs_.remove_if([&](pair& p) {
        const bool ends = all || !move(p, 0) || !move(p, 1);
        if (ends) close(p);
        return ends;
      });
      if ((wanted[1].revents & POLLIN) != 0) take();
    }
    for (const pair& p : pairs_) close(p);
  }

  std::atomic<std::uint16_t> target_;
  std::uint16_t port_ = 0;
  int listener_ = -1, wake_ = -1;
  std::atomic<std::uint8_t> cut_{0};
  std::atomic<bool> broken_{false}, over_{false};
  std::list<pair> pairs_;  // the thread's
  std::thread thread_;
};

}  // namespace cluster_tests
