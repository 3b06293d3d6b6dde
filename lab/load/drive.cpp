#include <lab/load/drive.hpp>

#include <lab/harness/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
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
  std::size_t sent = 0;      // bytes of the present message
  std::size_t received = 0;
  std::string head;  // of an HTTP answer, so far
  std::size_t body_left = 0;
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

/// Everything, or lab_error; for what comes before the measurement.
void send_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (n < 0) fail("send");
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

void open_websocket(int fd, const std::string& path) {
  send_all(fd, "GET " + path +
                   " HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\n"
                   "sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
  std::string head;
  for (char c = 0; !head.ends_with("\r\n\r\n"); head += c)
    if (recv(fd, &c, 1, 0) != 1) throw lab_error{"the server closed a connection instead of opening a WebSocket"};
  if (!head.starts_with("HTTP/1.1 101")) throw lab_error{"the server opens no WebSocket: " + head};
}

/// RFC 6455, 5.2: the head of a binary message in one frame; a client's has a mask, here of zeros.
std::string frame_head(std::size_t size, bool masked) {
  std::string head{'\x82'};
  const char mask_bit = masked ? '\x80' : '\0';
  if (size < 126) {
    head += static_cast<char>(size | static_cast<unsigned char>(mask_bit));
  } else {
    if (size > 65'535) throw lab_error{"messages of a WebSocket have at most 65,535 bytes here"};
    head += static_cast<char>(126 | static_cast<unsigned char>(mask_bit));
    head += static_cast<char>(size >> 8);
    head += static_cast<char>(size & 255);
  }
  if (masked) head.append(4, '\0');
  return head;
}

/// From the head of an answer of HTTP/1.1.
std::size_t length_of_body(const std::string& head) {
  if (!head.starts_with("HTTP/1.1 200")) throw lab_error{"the server answered: " + head.substr(0, head.find('\r'))};
  std::string lower = head;
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr std::string_view name = "\r\ncontent-length:";
  const std::size_t at = lower.find(name);
  if (at == std::string::npos) throw lab_error{"the server does not tell the length of its answers"};
  return std::stoul(lower.substr(at + name.size()));
}

}  // namespace

struct load_driver::state {
  load_options options;
  int epoll = -1;
  std::vector<connection> connections;
  std::vector<char> message;  // of the connection at hand
  std::vector<char> wanted;   // the answer to it; empty for HTTP
  std::vector<char> answer;
  std::size_t head_sent = 0, head_wanted = 0;  // of `message` and `wanted`, what comes before the pattern
  load_outcome outcome;
  clock::time_point end;
  int busy = 0;

  ~state() {
    if (epoll >= 0) close(epoll);
  }

  void prepare() {
    const auto size = static_cast<std::size_t>(options.size);
    std::string sent, back;
    if (options.how == talk::http) sent = "GET " + options.path + " HTTP/1.1\r\nhost: localhost\r\n\r\n";
    if (options.how == talk::websocket) {
      sent = frame_head(size, true);
      back = frame_head(size, false);
    }
    message.assign(sent.begin(), sent.end());
    wanted.assign(back.begin(), back.end());
    head_sent = message.size();
    head_wanted = wanted.size();
    answer.resize(16'384);
    if (options.how == talk::http) return;
    message.resize(head_sent + size);
    wanted.resize(head_wanted + size);
    answer.resize(wanted.size());
  }

  /// The bytes of a request: a pattern of the connection's number and the request's, so that a mixed-up answer shows.
  void write_message(std::size_t index, std::uint64_t number) {
    if (options.how == talk::http) return;
    std::uint64_t word = (index * 0x9E3779B97F4A7C15U) ^ (number * 0xD6E8FEB86659FD93U);
    const std::size_t size = message.size() - head_sent;
    for (std::size_t i = 0; i < size; i += sizeof word) {
      std::memcpy(message.data() + head_sent + i, &word, std::min(sizeof word, size - i));
      word = word * 6364136223846793005U + 1442695040888963407U;
    }
    std::memcpy(wanted.data() + head_wanted, message.data() + head_sent, size);
  }

  void begin(std::size_t index, clock::time_point due) {
    connection& c = connections[index];
    c.since = due;
    ++c.number;
    c.sent = c.received = 0;
    c.head.clear();
    c.busy = true;
    ++busy;
    write_message(index, c.number);
    send_more(c);
  }

  /// `message` holds what `c` sends.
  void send_more(connection& c) {
    while (c.sent < message.size()) {
      const ssize_t n = send(c.fd, message.data() + c.sent, message.size() - c.sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return;
      if (n < 0) fail("send");
      c.sent += static_cast<std::size_t>(n);
    }
  }

  /// Takes what has come. True if that completes the answer.
  bool receive(std::size_t index) {
    connection& c = connections[index];
    if (!c.busy) return false;
    write_message(index, c.number);
    send_more(c);
    for (bool complete = false; !complete;) {
      const std::size_t room = options.how == talk::http ? answer.size() : wanted.size() - c.received;
      const ssize_t n = recv(c.fd, answer.data(), room, MSG_DONTWAIT);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return false;
      if (n < 0) fail("recv");
      if (n == 0) throw lab_error{"the server closed a connection"};
      complete = take(c, {answer.data(), static_cast<std::size_t>(n)});
      if (!complete && static_cast<std::size_t>(n) < room) return false;  // drained
    }
    c.busy = false;
    --busy;
    return true;
  }

  /// True if the answer is complete.
  bool take(connection& c, std::string_view part) {
    if (options.how != talk::http) {
      if (std::memcmp(part.data(), wanted.data() + c.received, part.size()) != 0)
        throw lab_error{"the server answered with other bytes than it was sent"};
      c.received += part.size();
      return c.received == wanted.size();
    }
    if (!c.head.ends_with("\r\n\r\n")) {
      const std::size_t before = c.head.size();
      c.head += part;
      const std::size_t blank = c.head.find("\r\n\r\n", before < 3 ? 0 : before - 3);
      if (blank == std::string::npos) return false;
      c.head.resize(blank + 4);
      part.remove_prefix(c.head.size() - before);
      c.body_left = length_of_body(c.head);
    }
    if (part.size() > c.body_left) throw lab_error{"the server answered more than it was asked for"};
    c.body_left -= part.size();
    return c.body_left == 0;
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
  s.prepare();
  allow_descriptors(static_cast<rlim_t>(options.connections) + 100);
  s.epoll = epoll_create1(EPOLL_CLOEXEC);
  if (s.epoll < 0) fail("epoll_create1");
  s.connections = std::vector<connection>(static_cast<std::size_t>(options.connections));
  for (std::size_t i = 0; i < s.connections.size(); ++i) {
    s.connections[i].fd = connect_to(options.port);
    if (options.how == talk::websocket) open_websocket(s.connections[i].fd, options.path);
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
