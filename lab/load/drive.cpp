#include <lab/load/drive.hpp>

#include <lab/harness/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <system_error>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

namespace ramie::lab {
namespace {

using clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

[[noreturn]] void fail(const char* call) {
  throw lab_error{fmt::format("{}: {}", call, std::generic_category().message(errno))};
}

void allow_descriptors(rlim_t wanted) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = wanted;
  limit.rlim_max = std::max(limit.rlim_max, wanted);
  if (setrlimit(RLIMIT_NOFILE, &limit) == 0) return;
  throw lab_error{fmt::format("{} descriptors are needed, and the system's limit (ulimit -n) is lower", wanted)};
}

/// One connection. It owns its descriptor.
struct connection {
  int fd = -1;
  std::uint64_t number = 0;  // of its requests so far
  int sent = 0;              // bytes of the present message
  int received = 0;
  bool busy = false;
  clock::time_point since;             // when the present request was due
  std::deque<clock::time_point> late;  // requests that were due while it was busy; open loop only

  connection() = default;
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;
  ~connection() {
    if (fd >= 0) close(fd);
  }
};

int connect_to(std::uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) fail("socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int on = 1;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int why = errno;
    close(fd);
    errno = why;
    fail("connect");
  }
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

}  // namespace

struct load_driver::state {
  load_options options;
  int epoll = -1;
  std::vector<connection> connections;
  std::vector<char> message;  // of the connection at hand
  std::vector<char> answer;
  load_outcome outcome;
  clock::time_point end;
  int busy = 0;

  ~state() {
    if (epoll >= 0) close(epoll);
  }

  /// The bytes of a request: a pattern of the connection's number and the request's, so that a mixed-up answer shows.
  void write_message(std::size_t index, std::uint64_t number) {
    std::uint64_t word = (index * 0x9E3779B97F4A7C15U) ^ (number * 0xD6E8FEB86659FD93U);
    for (std::size_t i = 0; i < message.size(); i += sizeof word) {
      std::memcpy(message.data() + i, &word, std::min(sizeof word, message.size() - i));
      word = word * 6364136223846793005U + 1442695040888963407U;
    }
  }

  void begin(std::size_t index, clock::time_point due) {
    connection& c = connections[index];
    c.since = due;
    ++c.number;
    c.sent = c.received = 0;
    c.busy = true;
    ++busy;
    write_message(index, c.number);
    send_more(c);
  }

  /// `message` holds what `c` sends.
  void send_more(connection& c) {
    while (c.sent < options.size) {
      const ssize_t n = send(c.fd, message.data() + c.sent, static_cast<std::size_t>(options.size - c.sent),
                             MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return;
      if (n < 0) fail("send");
      c.sent += static_cast<int>(n);
    }
  }

  /// Takes what has come. True if that completes the answer.
  bool receive(std::size_t index) {
    connection& c = connections[index];
    if (!c.busy) return false;
    write_message(index, c.number);
    send_more(c);
    while (c.received < options.size) {
      const auto room = static_cast<std::size_t>(options.size - c.received);
      const ssize_t n = recv(c.fd, answer.data(), room, MSG_DONTWAIT);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return false;
      if (n < 0) fail("recv");
      if (n == 0) throw lab_error{"the server closed a connection"};
      if (std::memcmp(answer.data(), message.data() + c.received, static_cast<std::size_t>(n)) != 0)
        throw lab_error{"the server answered with other bytes than it was sent"};
      c.received += static_cast<int>(n);
      if (static_cast<std::size_t>(n) < room) return false;  // drained
    }
    c.busy = false;
    --busy;
    return true;
  }

  /// An answer is complete at `now`: what the connection does next.
  void go_on(std::size_t index, clock::time_point now) {
    connection& c = connections[index];
    outcome.times.add(nanoseconds{now - c.since}.count());
    ++outcome.requests;
    if (options.rate == 0) {
      if (now < end) begin(index, now);
    } else if (!c.late.empty()) {
      const clock::time_point due = c.late.front();
      c.late.pop_front();
      begin(index, due);
    }
  }

  void wait(nanoseconds most) {
    std::array<epoll_event, 256> events{};
    const nanoseconds left = std::max(most, nanoseconds{0});
    const timespec timeout{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
    const int n = epoll_pwait2(epoll, events.data(), static_cast<int>(events.size()), &timeout, nullptr);
    if (n < 0 && errno != EINTR) fail("epoll_pwait2");
    for (int i = 0; i < n; ++i) {
      const auto index = static_cast<std::size_t>(events[static_cast<std::size_t>(i)].data.u64);
      if (receive(index)) go_on(index, clock::now());
    }
  }
};

load_driver::load_driver(const load_options& options) : state_{std::make_unique<state>()} {
  state& s = *state_;
  s.options = options;
  s.message.resize(static_cast<std::size_t>(options.size));
  s.answer.resize(static_cast<std::size_t>(options.size));
  allow_descriptors(static_cast<rlim_t>(options.connections) + 100);
  s.epoll = epoll_create1(EPOLL_CLOEXEC);
  if (s.epoll < 0) fail("epoll_create1");
  s.connections = std::vector<connection>(static_cast<std::size_t>(options.connections));
  for (std::size_t i = 0; i < s.connections.size(); ++i) {
    s.connections[i].fd = connect_to(options.port);
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT | EPOLLET;
    event.data.u64 = i;
    if (epoll_ctl(s.epoll, EPOLL_CTL_ADD, s.connections[i].fd, &event) != 0) fail("epoll_ctl");
  }
  run(nanoseconds{1});
}

load_driver::~load_driver() = default;

load_outcome load_driver::run(nanoseconds time) {
  constexpr nanoseconds patience = std::chrono::seconds{30};  // only a server that hangs takes so long to answer
  state& s = *state_;
  s.outcome = {};
  const clock::time_point start = clock::now();
  s.end = start + time;
  const bool is_first = s.connections.front().number == 0;
  if (s.options.rate == 0 || is_first) {
    for (std::size_t i = 0; i < s.connections.size(); ++i) s.begin(i, start);
    while (s.busy > 0) {
      const std::int64_t before = s.outcome.requests;
      const clock::time_point asked = clock::now();
      s.wait(patience);
      if (s.outcome.requests == before && clock::now() - asked >= patience)
        throw lab_error{"the server does not answer"};
    }
  } else {
    const nanoseconds between{1'000'000'000 / s.options.rate};
    clock::time_point due = start;
    std::size_t next = 0;
    clock::time_point answered = start;
    while (due < s.end || s.busy > 0) {
      const clock::time_point now = clock::now();
      for (; due <= now && due < s.end; due += between) {
        if (connection& c = s.connections[next]; c.busy) c.late.push_back(due);
        else s.begin(next, due);
        next = (next + 1) % s.connections.size();
      }
      const std::int64_t before = s.outcome.requests;
      s.wait(due < s.end ? nanoseconds{due - now} : patience);
      if (s.outcome.requests != before) answered = clock::now();
      if (s.busy > 0 && clock::now() - answered >= patience + time) throw lab_error{"the server does not answer"};
    }
  }
  s.outcome.seconds = std::chrono::duration<double>(clock::now() - start).count();
  return std::exchange(s.outcome, {});
}

}  // namespace ramie::lab
