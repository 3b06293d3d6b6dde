#include <ramie/net/datagram.hpp>

#include <ramie/net/testing.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>

namespace ramie::net {
namespace {

using namespace std::chrono_literals;

TEST(net_datagrams, go_to_and_fro_and_say_where_from) {
  with_workers([] {
    udp_socket server{{"127.0.0.1", 0}}, client{{"127.0.0.1", 0}};
    auto echo = spawn([&] {
      std::array<std::byte, 100> message;
      for (int i = 0; i < 50; ++i) {
        const auto got = server.receive_from(message);
        server.send_to(got.from, std::span{message}.first(got.size));
      }
    });
    client.connect(server.local());
    for (int i = 0; i < 50; ++i) {
      const std::string text = "message " + std::to_string(i);
      client.send(bytes_of(text));
      std::array<std::byte, 100> back;
      const auto got = client.receive_from(back);
      EXPECT_EQ(text_of(std::span{back}.first(got.size)), text);
      EXPECT_EQ(got.from, server.local());
      EXPECT_FALSE(got.truncated);
    }
    echo.join();
  });
}

TEST(net_datagrams, say_that_they_were_cut) {
  with_workers([] {
    auto [a, b] = unix_datagram::pair();
    a.send(bytes_of("0123456789"));
    std::array<std::byte, 4> four;
    const auto got = b.receive_from(four);
    EXPECT_EQ(got.size, 10u);
    EXPECT_TRUE(got.truncated);
  });
}

TEST(net_datagrams, an_error_on_the_way_is_told_once_and_the_socket_goes_on) {
  with_workers([] {
    // Connected with itself it keeps the port, and refuses what comes from others.
    udp_socket deaf{{"127.0.0.1", 0}};
    deaf.connect(deaf.local());
    const endpoint nobody = deaf.local();
    udp_socket s{{"127.0.0.1", 0}};
    s.connect(nobody);
    s.send(bytes_of("x"));
    std::array<std::byte, 4> four;
    EXPECT_EQ(code_of([&] { static_cast<void>(s.receive(four)); }).value(), ECONNREFUSED);
    EXPECT_THROW(with_timeout(1ms, [&] { return s.receive(four); }), timeout_error);
  });
}

TEST(net_datagrams, wait_for_room_and_end_in_order) {
  with_workers([] {
    auto [a, b] = unix_seqpacket::pair();
    auto sender = spawn([&a] {
      for (int i = 0; i < 2000; ++i) a.send(bytes_of(std::to_string(i)));
      a.close();
    });
    int next = 0;
    std::array<std::byte, 20> one;
    while (const std::size_t n = b.receive(one)) EXPECT_EQ(text_of(std::span{one}.first(n)), std::to_string(next++));
    EXPECT_EQ(next, 2000);
    sender.join();
  });
}

/// No event tells that another sender's messages have left the mailbox.
TEST(net_datagrams, wait_for_room_that_another_sender_took) {
  with_workers([] {
    const endpoint at = endpoint::local("@ramie_mailbox_" + std::to_string(::getpid()));
    unix_datagram mailbox{at};
    unix_datagram greedy = std::move(unix_datagram::pair().first), late = std::move(unix_datagram::pair().first);
    int sent = 0;
    EXPECT_THROW(with_timeout(20ms,
                              [&] {
                                for (;; ++sent) greedy.send_to(at, bytes_of("x"));
                              }),
                 timeout_error);
    auto waiting = spawn([&] { late.send_to(at, bytes_of("late")); });
    this_fiber::sleep_for(2ms);
    std::array<std::byte, 10> some;
    for (int i = 0; i < sent; ++i) EXPECT_EQ(mailbox.receive(some), 1u);
    EXPECT_EQ(mailbox.receive(some), 4u);
    waiting.join();
  });
}

TEST(net_datagrams, are_adopted_if_they_are_what_they_are_taken_for) {
  with_workers([] {
    const udp_socket given{{"127.0.0.1", 0}};
    const int udp = ::dup(given.native_handle());
    EXPECT_THROW(static_cast<void>(unix_datagram::adopt(udp)), invalid_argument);
    EXPECT_THROW(static_cast<void>(unix_seqpacket::adopt(udp)), invalid_argument);
    EXPECT_THROW(static_cast<void>(udp_socket::adopt(-1)), invalid_argument);
    ASSERT_EQ(::fcntl(udp, F_SETFL, 0), 0);
    udp_socket adopted = udp_socket::adopt(udp);
    EXPECT_NE(::fcntl(udp, F_GETFL) & O_NONBLOCK, 0);
    EXPECT_EQ(::fcntl(udp, F_GETFD), FD_CLOEXEC);
    EXPECT_EQ(adopted.local(), given.local());
    std::array<std::byte, 10> some;
    auto reading = spawn([&] { return adopted.receive(some); });
    udp_socket sender{{"127.0.0.1", 0}};
    sender.send_to(adopted.local(), bytes_of("ping"));
    EXPECT_EQ(reading.join(), 4u);

    int both[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, both), 0);
    EXPECT_THROW(static_cast<void>(udp_socket::adopt(both[0])), invalid_argument);
    unix_seqpacket a = unix_seqpacket::adopt(both[0]), b = unix_seqpacket::adopt(both[1]);
    a.send(bytes_of("whole"));
    EXPECT_EQ(b.receive(some), 5u);
  });
}

}  // namespace
}  // namespace ramie::net
