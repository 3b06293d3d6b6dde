// Actors that own message sockets and listeners: what arrives, in order, as much as was asked for, and no connection
// lost.
#include <ramie/patterns/active_socket.hpp>

#include <ramie/net/testing.hpp>

#include <sys/resource.h>

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ramie::net {
namespace {

using namespace std::chrono_literals;

struct more {
  std::uint32_t pieces;
};
struct close_it {};
struct how_many {};
struct fall {};

/// Answers each datagram by itself.
class answers : public actor<answers> {
 public:
  explicit answers(udp_socket s) : socket_{std::move(s), self()} { socket_.activate(socket_.always); }
  void on(const datagram& m) {
    EXPECT_TRUE(m.is_of(socket_));
    EXPECT_FALSE(m.is_truncated());
    socket_->send_to(m.from(), m.bytes());
  }
  void on(ended) { ADD_FAILURE() << "it is closed by its own end only"; }

 private:
  active_socket<udp_socket> socket_;
};

TEST(net_active_sockets, answer_datagrams_and_know_who_sent_them) {
  with_workers([] {
    udp_socket own{{"127.0.0.1", 0}};
    const endpoint at = own.local();
    auto server = spawn_actor<answers>(std::move(own));
    scope clients;
    for (int i = 0; i < 8; ++i)
      clients.spawn([at, i] {
        udp_socket client{{"127.0.0.1", 0}};
        client.connect(at);
        std::array<std::byte, 100> back;
        for (int k = 0; k < 50; ++k) {
          const std::string text = k == 7 ? "" : std::to_string(i) + " says " + std::to_string(k);  // an empty one, too
          client.send(bytes_of(text));
          const auto got = client.receive_from(back);
          ASSERT_EQ(text_of(std::span{back}.first(got.size)), text);
          ASSERT_EQ(got.from, at);
        }
      });
    clients.join();
    server.stop();
    EXPECT_EQ(server.join().kind(), exit_kind::stopped);
  });
}

/// Tells what it is told.
template <class Socket>
class listens_in : public actor<listens_in<Socket>> {
 public:
  listens_in(Socket s, std::uint32_t piece, channel<std::string>& told)
      : socket_{std::move(s), this->self(), piece}, told_{&told} {}
  void on(more m) { socket_.activate(m.pieces); }
  void on(close_it) { socket_->close(); }
  void on(const datagram& m) {
    ++count_;
    static_cast<void>(told_->send(std::string{m.text()} + (m.is_truncated() ? "..." : "")));
  }
  void on(receive_failed f) {
    EXPECT_TRUE(f.is_of(socket_));
    static_cast<void>(told_->send(f.why == std::errc::connection_refused ? "refused" : f.why.message()));
  }
  void on(paused p) {
    EXPECT_TRUE(p.is_of(socket_));
    EXPECT_FALSE(socket_.is_active());
    static_cast<void>(told_->send("paused"));
  }
  void on(ended e) {
    static_cast<void>(told_->send(e.why == io_errc::closed ? "closed" : e.why ? e.why.message() : "end"));
  }
  std::size_t on(how_many) { return count_; }

 private:
  active_socket<Socket> socket_;
  channel<std::string>* told_;
  std::size_t count_ = 0;
};

TEST(net_active_sockets, tell_as_many_as_were_asked_for_and_that_they_were_cut) {
  with_workers([] {
    auto [a, b] = unix_datagram::pair();
    channel<std::string> told{100};
    auto c = spawn_actor<listens_in<unix_datagram>>(std::move(b), 3u, told);
    for (const std::string_view text : {"one", "", "three", "4"}) a.send(bytes_of(text));
    EXPECT_EQ(c.ask(how_many{}), 0u);  // passive
    c.tell(more{1});
    EXPECT_EQ(told.recv(), "one");
    EXPECT_EQ(told.recv(), "paused");
    c.tell(more{2});
    EXPECT_EQ(told.recv(), "");
    EXPECT_EQ(told.recv(), "thr...");
    EXPECT_EQ(told.recv(), "paused");
    EXPECT_EQ(c.ask(how_many{}), 3u);
    c.tell(more{detail::active_base::always});
    EXPECT_EQ(told.recv(), "4");
    c.tell(close_it{});
    EXPECT_EQ(told.recv(), "closed");
    c.tell(more{1});
    EXPECT_EQ(told.recv(), "closed");  // and again
    c.stop();
    EXPECT_THROW(spawn_actor<listens_in<unix_datagram>>(unix_datagram::pair().first, 0u, told), invalid_argument);
  });
}

TEST(net_active_sockets, go_on_after_a_failure_that_is_told_once) {
  with_workers([] {
    udp_socket deaf{{"127.0.0.1", 0}};
    deaf.connect(deaf.local());  // keeps its port, and refuses what comes from others
    udp_socket s{{"127.0.0.1", 0}};
    const endpoint at = s.local();
    s.connect(deaf.local());
    s.send(bytes_of("x"));
    channel<std::string> told{10};
    auto c = spawn_actor<listens_in<udp_socket>>(std::move(s), 100u, told);
    c.tell(more{1});
    EXPECT_EQ(told.recv(), "refused");
    EXPECT_EQ(told.recv(), "paused");
    c.tell(more{1});
    deaf.connect(at);
    deaf.send(bytes_of("hello after all"));
    EXPECT_EQ(told.recv(), "hello after all");
    c.stop();
  });
}

TEST(net_active_sockets, of_a_connection_end_with_it) {
  with_workers([] {
    auto [a, b] = unix_seqpacket::pair();
    channel<std::string> told{100};
    auto c = spawn_actor<listens_in<unix_seqpacket>>(std::move(b), 100u, told);
    c.tell(more{detail::active_base::always});
    for (int i = 0; i < 20; ++i) a.send(bytes_of(std::to_string(i)));
    a.close();
    for (int i = 0; i < 20; ++i) EXPECT_EQ(told.recv(), std::to_string(i));
    EXPECT_EQ(told.recv(), "end");
    c.stop();
  });
}

/// The sender of a local datagram socket waits while the receiver's queue is full: the flood is stopped at its source.
TEST(net_active_sockets, stop_a_flood_at_the_sender) {
  with_workers([] {
    auto [a, b] = unix_datagram::pair();
    channel<std::string> told;  // the handler waits until somebody takes it
    auto c = spawn_actor<listens_in<unix_datagram>>(std::move(b), 100u, told);
    c.tell(more{detail::active_base::always});
    std::size_t sent = 0;
    auto flood = spawn([&a, &sent] {
      for (;; ++sent) a.send(bytes_of(std::to_string(sent)));
    });
    std::size_t next = 0;
    for (; next < 50; ++next) EXPECT_EQ(told.recv(), std::to_string(next));
    EXPECT_LE(c.mail_count(), 2u);
    auto asked = spawn([&] { return c.ask(how_many{}); });
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(told.recv(), std::to_string(next++));  // its turn comes behind the one under way
    auto drain = spawn([&] {
      std::size_t wrong = 0;
      while (std::optional<std::string> s = told.recv()) wrong += *s == std::to_string(next) ? 0 : 1, ++next;
      return wrong;
    });
    EXPECT_GE(asked.join(), 50u);
    flood.request_stop();
    EXPECT_THROW(flood.join(), cancelled);
    while (c.ask(how_many{}) != sent) this_fiber::yield();
    c.stop();
    c.join();
    told.close();
    EXPECT_EQ(drain.join(), 0u);
    EXPECT_EQ(next, sent);
  });
}

/// The actor ends while messages arrive, again and again, in each way.
TEST(net_active_sockets, end_while_messages_arrive) {
  with_workers([] {
    class sink : public actor<sink> {
     public:
      explicit sink(unix_datagram s) : socket_{std::move(s), self(), 10} { socket_.activate(socket_.always); }
      void on(const datagram&) {}
      void on(ended) {}
      void on(fall) { throw std::runtime_error{"told to"}; }

     private:
      active_socket<unix_datagram> socket_;
    };
    for (int i = 0; i < (RAMIE_TSAN || RAMIE_ASAN ? 150 : 600); ++i) {
      auto [a, b] = unix_datagram::pair();
      auto s = spawn_actor<sink>(std::move(b));
      auto writer = spawn([&a] {
        try {
          for (int n = 0; n < 5; ++n) {
            a.send(bytes_of("xy"));
            this_fiber::yield();
          }
        } catch (const io_error&) {
        }
      });
      auto joined = spawn([s] { return s.join().kind(); });
      if (i % 2 == 0 || i % 3 == 2) this_fiber::yield();  // a failure that somebody waits for is not reported
      if (i % 3 == 0) s.stop();
      else if (i % 3 == 1) s.kill();
      else s.tell(fall{});
      EXPECT_EQ(joined.join(), i % 3 == 0 ? exit_kind::stopped : i % 3 == 1 ? exit_kind::killed : exit_kind::failed);
      writer.join();
    }
  });
}

// ---- listeners -----------------------------------------------------------------------------------------------------

struct give_it_away {};

/// Greets whom it accepts, by number.
template <class Listener>
class door : public actor<door<Listener>> {
 public:
  using stream_type = decltype(std::declval<Listener&>().accept());

  door(Listener l, channel<std::string>& told) : listener_{std::move(l), this->self()}, told_{&told} {}
  void on(more m) { listener_.activate(m.pieces); }
  void on(accepted<stream_type> m) {
    EXPECT_TRUE(m.is_of(listener_));
    m.stream.write_all(std::to_string(count_++));
  }
  void on(paused) { static_cast<void>(told_->send("paused")); }
  void on(ended e) { static_cast<void>(told_->send(e.why == io_errc::closed ? "closed" : e.why.message())); }
  void on(close_it) { listener_->close(); }
  Listener on(give_it_away) { return listener_.release(); }
  int on(how_many) { return count_; }
  std::uint64_t on(fall) { return listener_->pauses(); }

 private:
  active_listener<Listener> listener_;
  channel<std::string>* told_;
  int count_ = 0;
};

TEST(net_active_listeners, take_as_many_connections_as_were_asked_for_and_lose_none) {
  with_workers([] {
    tcp_listener own{{"127.0.0.1", 0}};
    const endpoint at = own.local();
    channel<std::string> told{10};
    auto d = spawn_actor<door<tcp_listener>>(std::move(own), told);
    std::vector<tcp_stream> clients;
    for (int i = 0; i < 10; ++i) clients.push_back(tcp_stream::connect(at));  // into the backlog
    EXPECT_EQ(d.ask(how_many{}), 0);
    d.tell(more{3});
    EXPECT_EQ(told.recv(), "paused");
    EXPECT_EQ(d.ask(how_many{}), 3);
    d.tell(more{1});
    EXPECT_EQ(told.recv(), "paused");
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(read_all(clients[i]), std::to_string(i));
    tcp_listener again = d.ask(give_it_away{});
    for (std::size_t i = 4; i < 10; ++i) {
      again.accept().write_all("by a fiber");
      EXPECT_EQ(read_all(clients[i]), "by a fiber");
    }
    d.stop();
  });
}

TEST(net_active_listeners, take_all_that_come) {
  with_workers([] {
    const endpoint at = endpoint::local("@ramie_active_" + std::to_string(::getpid()));
    channel<std::string> told{10};
    auto d = spawn_actor<door<unix_listener>>(unix_listener{at}, told);
    d.tell(more{detail::active_base::always});
    std::vector<int> seen(60);
    mutex m;
    {
      scope clients;
      for (int i = 0; i < 60; ++i)
        clients.spawn([&] {
          unix_stream s = unix_stream::connect(at);
          const std::string text = read_all(s);
          const std::lock_guard guard{m};
          ++seen.at(static_cast<std::size_t>(std::stoi(text)));
        });
      clients.join();
    }
    EXPECT_EQ(seen, std::vector<int>(60, 1));
    d.tell(close_it{});
    EXPECT_EQ(told.recv(), "closed");
    d.stop();
    d.join();
    EXPECT_NE(code_of([&] { static_cast<void>(unix_stream::connect(at)); }), std::error_code{});
  });
}

TEST(net_active_listeners, wait_out_a_shortage_and_answer_meanwhile) {
  with_workers_in_a_shortage([] {
    tcp_listener own{{"127.0.0.1", 0}};
    const endpoint at = own.local();
    channel<std::string> told{10};
    auto d = spawn_actor<door<tcp_listener>>(std::move(own), told);
    tcp_stream connected = tcp_stream::connect(at);
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    const rlimit none{3, before.rlim_max};  // 0, 1 and 2 are taken, whatever the monitor opens and closes
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    d.tell(more{1});
    while (d.ask(fall{}) < 4) this_fiber::sleep_for(1ms);
    EXPECT_EQ(d.ask(how_many{}), 0);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_EQ(told.recv(), "paused");
    EXPECT_EQ(read_all(connected), "0");
    d.stop();
  });
}

}  // namespace
}  // namespace ramie::net
