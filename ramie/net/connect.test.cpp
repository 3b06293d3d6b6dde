// Connections to servers that have several addresses, and options of connections.
// Mostly waits.
#include <ramie/net/stream.hpp>

#include <ramie/net/listener.hpp>
#include <ramie/net/testing.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace ramie::net {
namespace {

using namespace std::chrono_literals;

/// Where nobody listens: a connection is refused.
endpoint closed_port() {
  const tcp_listener gone{{"127.0.0.1", 0}};
  return gone.local();
}

/// A listener whose queue is full, so that a connection to it is neither made nor refused.
class silent_server {
 public:
  silent_server() : listener_{{"127.0.0.1", 0}, {.backlog = 0}} {
    for (bool full = false; !full;) try {
        with_timeout(100ms, [&] { waiting_.push_back(tcp_stream::connect(listener_.local())); });
      } catch (const timeout_error&) {
        full = true;
      }
  }
  [[nodiscard]] endpoint at() const { return listener_.local(); }

 private:
  tcp_listener listener_;
  std::vector<tcp_stream> waiting_;
};

int option(const stream& s, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  EXPECT_EQ(::getsockopt(s.native_handle(), level, name, &value, &size), 0);
  return value;
}

TEST(net_connect, takes_the_first_address_that_answers) {
  with_workers([] {
    const endpoint closed = closed_port();
    const silent_server silent;
    tcp_listener server{{"127.0.0.1", 0}};
    const std::vector<std::vector<endpoint>> lists{
        {server.local()},
        {server.local(), closed},
        {closed, server.local()},
        {closed, closed, closed, server.local()},
        {silent.at(), server.local()},
        {silent.at(), silent.at(), closed, server.local()},
    };
    for (const std::vector<endpoint>& list : lists) {
      const tcp_stream client = tcp_stream::connect(list);
      EXPECT_EQ(client.peer(), server.local()) << list.size();
      EXPECT_EQ(server.accept().peer(), client.local());
    }
  });
}

// What was refused does not hold up the next one: if each took its 250 ms, this would be a minute.
TEST(net_connect, goes_on_at_once_after_a_failure) {
  with_workers([] {
    std::vector<endpoint> list(240, closed_port());
    const tcp_listener server{{"127.0.0.1", 0}};
    list.push_back(server.local());
    with_timeout(30s, [&] { EXPECT_EQ(tcp_stream::connect(list).peer(), server.local()); });
  });
}

TEST(net_connect, lets_families_take_turns) {
  with_workers([] {
    std::optional<tcp_listener> server;
    try {
      server.emplace(endpoint{"::1", 0});
    } catch (const io_error&) {
      GTEST_SKIP() << "no IPv6 here";
    }
    const silent_server silent;
    std::vector<endpoint> list(240, silent.at());
    list.push_back(server->local());
    with_timeout(30s, [&] { EXPECT_EQ(tcp_stream::connect(list).peer(), server->local()); });
  });
}

TEST(net_connect, tells_why_none_could_be_reached) {
  with_workers([] {
    const endpoint closed = closed_port();
    for (const std::vector<endpoint>& list : {std::vector{closed}, std::vector{closed, closed}}) try {
        static_cast<void>(tcp_stream::connect(list));
        ADD_FAILURE() << "connected";
      } catch (const io_error& e) {
        EXPECT_EQ(e.code(), std::errc::connection_refused);
        EXPECT_NE(std::string{e.what()}.find(closed.to_string()), std::string::npos) << e.what();
      }
    EXPECT_THROW(static_cast<void>(tcp_stream::connect(std::vector<endpoint>{})), invalid_argument);
  });
}

TEST(net_connect, knows_servers_by_name) {
  with_workers([] {
    tcp_listener server{{"127.0.0.1", 0}};
    const std::string port = std::to_string(server.local().port());
    for (const char* host : {"127.0.0.1", "localhost"}) {
      const tcp_stream client = tcp_stream::connect(host, port);
      EXPECT_EQ(server.accept().peer(), client.local());
    }
    try {
      static_cast<void>(tcp_stream::connect("localhost", std::to_string(closed_port().port())));
      ADD_FAILURE() << "connected";
    } catch (const io_error& e) {
      EXPECT_TRUE(e.code() == std::errc::connection_refused || e.code() == std::errc::address_not_available)  // no ::1
          << e.what();
      EXPECT_NE(std::string{e.what()}.find("localhost"), std::string::npos) << e.what();
    }
  });
}

TEST(net_connect, is_cut_off_as_other_waits) {
  with_workers([] {
    const silent_server silent;
    const std::vector<endpoint> list(3, silent.at());
    for (const auto limit : {0ms, 1ms, 300ms})
      EXPECT_THROW(with_timeout(limit, [&] { static_cast<void>(tcp_stream::connect(list)); }), timeout_error);
    auto connecting = spawn([&] { static_cast<void>(tcp_stream::connect(list)); });
    this_fiber::sleep_for(1ms);
    connecting.request_stop();
    EXPECT_THROW(connecting.join(), cancelled);
  });
}

TEST(net_connect, works_on_a_plain_thread) {
  const endpoint closed = closed_port();
  tcp_listener server{{"127.0.0.1", 0}};
  const std::vector<endpoint> list{closed, server.local()};
  EXPECT_EQ(tcp_stream::connect(list).peer(), server.local());
}

TEST(net_tcp_options, are_those_of_both_ends) {
  with_workers([] {
    const tcp_options given{.keep_alive = {{.after = 30s, .every = 5s, .tries = 3}},
                            .unacknowledged_most = 20s,
                            .receive_buffer = 20'000,
                            .send_buffer = 30'000};
    tcp_listener server{{"127.0.0.1", 0}, given};
    const tcp_stream client = tcp_stream::connect(server.local(), given);
    const tcp_stream accepted = server.accept();
    for (const tcp_stream* s : {&client, &accepted}) {
      EXPECT_EQ(option(*s, SOL_SOCKET, SO_KEEPALIVE), 1);
      EXPECT_EQ(option(*s, IPPROTO_TCP, TCP_KEEPIDLE), 30);
      EXPECT_EQ(option(*s, IPPROTO_TCP, TCP_KEEPINTVL), 5);
      EXPECT_EQ(option(*s, IPPROTO_TCP, TCP_KEEPCNT), 3);
      EXPECT_EQ(option(*s, IPPROTO_TCP, TCP_USER_TIMEOUT), 20'000);
      EXPECT_EQ(option(*s, IPPROTO_TCP, TCP_NODELAY), 1);
      EXPECT_EQ(option(*s, SOL_SOCKET, SO_RCVBUF), 40'000);  // the kernel doubles it
      EXPECT_EQ(option(*s, SOL_SOCKET, SO_SNDBUF), 60'000);
    }
    const tcp_stream plain = tcp_stream::connect(server.local(), {.no_delay = false});
    EXPECT_EQ(option(plain, SOL_SOCKET, SO_KEEPALIVE), 0);
    EXPECT_EQ(option(plain, IPPROTO_TCP, TCP_NODELAY), 0);
  });
}

TEST(net_tcp_options, that_are_wrong_are_refused_by_name) {
  with_workers([] {
    tcp_listener server{{"127.0.0.1", 0}};
    const auto refusal = [&](const tcp_options& given) -> std::string {
      try {
        static_cast<void>(tcp_stream::connect(server.local(), given));
      } catch (const invalid_argument& e) {
        return e.what();
      }
      return "";
    };
    EXPECT_EQ(refusal({.send_buffer = -1}), "ramie: tcp_options: send_buffer is -1; it must be 0 to 2147483647");
    EXPECT_EQ(refusal({.receive_buffer = -7}), "ramie: tcp_options: receive_buffer is -7; it must be 0 to 2147483647");
    EXPECT_EQ(refusal({.keep_alive = {{.after = 0s}}}),
              "ramie: tcp_options: keep_alive.after is 0; it must be 1 to 32767");
    EXPECT_EQ(refusal({.keep_alive = {{.every = 40'000s}}}),
              "ramie: tcp_options: keep_alive.every is 40000; it must be 1 to 32767");
    EXPECT_EQ(refusal({.keep_alive = {{.tries = 128}}}),
              "ramie: tcp_options: keep_alive.tries is 128; it must be 1 to 127");
    EXPECT_EQ(refusal({.unacknowledged_most = -1ms}),
              "ramie: tcp_options: unacknowledged_most is -1; it must be 0 to 2147483647");
    EXPECT_THROW((tcp_listener{{"127.0.0.1", 0}, {.send_buffer = -1}}), invalid_argument);
  });
}

TEST(net_reset, tells_the_peer_by_an_error) {
  with_workers([] {
    auto [a, b] = tcp_pair();
    std::array<std::byte, 10> some;
    a.write_all("all is read");
    while (b.read_some(some) == some.size()) {
    }
    b.reset();  // a close would be an end
    EXPECT_FALSE(b.is_open());
    EXPECT_EQ(code_of([&, &a = a] { a.read_some(some); }), std::errc::connection_reset);
    b.reset();  // and again
    tcp_stream nothing;
    nothing.reset();
  });
}

}  // namespace
}  // namespace ramie::net
