// Actors that own connections: what arrives, in order, as much as was asked for, and nothing after they are gone.
#include <ramie/patterns/active.hpp>

#include <ramie/net/testing.hpp>
#include <ramie/poll/poller.hpp>
#include <ramie/runtime/statistics.hpp>

#include <sys/socket.h>

#include <chrono>
#include <exception>
#include <optional>
#include <thread>

namespace ramie::net {
namespace {

using namespace std::chrono_literals;

class echo : public actor<echo> {
 public:
  explicit echo(tcp_stream s) : peer_{std::move(s), self()} { peer_.activate(); }
  void on(const received& m) {
    peer_->write_all(m.bytes());
    peer_.activate();
  }
  void on(ended) { stop(); }

 private:
  active_stream<tcp_stream> peer_;
};

TEST(net_active, echo_serves_many_connections_without_a_fiber_each) {
  with_workers([] {
    tcp_listener l{{"127.0.0.1", 0}};
    auto server = spawn([&] {
      std::vector<actor_ref<echo>> all;
      try {
        for (;;) all.push_back(spawn_actor<echo>(l.accept()));
      } catch (const io_error&) {
      }
      for (const auto& one : all) EXPECT_EQ(one.join().kind(), exit_kind::stopped);
      return all.size();
    });
    {
      scope clients;
      for (int i = 0; i < 40; ++i)
        clients.spawn([&, i] {
          tcp_stream s = tcp_stream::connect(l.local());
          std::vector<std::byte> sent(static_cast<std::size_t>(1 + i * 997)), back(sent.size());
          for (int round = 0; round < 10; ++round) {
            for (std::size_t k = 0; k < sent.size(); ++k) sent[k] = byte_at(k + static_cast<std::size_t>(round));
            auto writer = spawn([&] { s.write_all(sent); });
            ASSERT_TRUE(s.read_exactly(back));
            writer.join();
            ASSERT_EQ(back, sent);
          }
        });
    }
    l.close();
    EXPECT_EQ(server.join(), 40u);
  });
}

struct go {
  std::uint32_t pieces;
};
struct hold {};
struct how_far {};

/// Collects what it is told, and asks for more when told so.
class collector : public actor<collector> {
 public:
  collector(unix_stream s, std::uint32_t piece, channel<std::string>& told)
      : peer_{std::move(s), self(), piece}, told_{&told} {}
  void on(go g) { peer_.activate(g.pieces); }
  void on(hold) { peer_.deactivate(); }
  void on(const received& m) {
    EXPECT_TRUE(m.is_of(peer_));
    got_ += m.text();
    static_cast<void>(told_->send(std::string{m.text()}));
  }
  void on(paused p) {
    EXPECT_TRUE(p.is_of(peer_));
    EXPECT_FALSE(peer_.is_active());
    static_cast<void>(told_->send("paused"));
  }
  void on(ended e) { static_cast<void>(told_->send("ended: " + (e.why ? e.why.message() : std::string{"end"}))); }
  std::size_t on(how_far) { return got_.size(); }

 private:
  active_stream<unix_stream> peer_;
  channel<std::string>* told_;
  std::string got_;
};

TEST(net_active, tells_as_many_pieces_as_were_asked_for) {
  with_workers([] {
    auto [a, b] = unix_stream::pair();
    channel<std::string> told{100};
    auto c = spawn_actor<collector>(std::move(b), 3u, told);
    a.write_all("abcdefghi");
    EXPECT_EQ(c.ask(how_far{}), 0u);  // passive
    c.tell(go{1});
    EXPECT_EQ(told.recv(), "abc");
    EXPECT_EQ(told.recv(), "paused");
    c.tell(go{2});
    EXPECT_EQ(told.recv(), "def");
    EXPECT_EQ(told.recv(), "ghi");
    EXPECT_EQ(told.recv(), "paused");
    EXPECT_EQ(c.ask(how_far{}), 9u);
    c.tell(go{detail::active_base::always});
    a.write_all("j");
    EXPECT_EQ(told.recv(), "j");
    a.write_all("k");
    EXPECT_EQ(told.recv(), "k");
    a.shutdown_write();
    EXPECT_EQ(told.recv(), "ended: end");
    c.tell(go{1});  // and again
    EXPECT_EQ(told.recv(), "ended: end");
    EXPECT_EQ(told.try_recv(), std::nullopt);
    c.stop();
  });
}

TEST(net_active, is_passive_once_told_so_and_loses_nothing) {
  with_workers([] {
    auto [a, b] = unix_stream::pair();
    channel<std::string> told{100};
    auto c = spawn_actor<collector>(std::move(b), 100u, told);
    for (int i = 0; i < 200; ++i) {
      c.tell(go{5});
      if (i % 2 == 0) this_fiber::yield();
      auto writer = spawn([&a] { a.write_all("x"); });  // an edge beside the next message
      c.tell(hold{});
      const std::size_t before = c.ask(how_far{});
      writer.join();
      EXPECT_GE(before, static_cast<std::size_t>(i));
      c.tell(go{1});
      while (c.ask(how_far{}) != static_cast<std::size_t>(i) + 1) this_fiber::yield();
      c.tell(hold{});
      while (told.try_recv()) {
      }
    }
    c.stop();
  });
}

/// A peer that writes without end has one message in the mailbox, and other messages their turn.
TEST(net_active, stops_a_flood_at_the_peer) {
  with_workers([] {
    auto [a, b] = unix_stream::pair();
    channel<std::string> told;  // the handler waits until somebody takes it
    auto c = spawn_actor<collector>(std::move(b), 100u, told);
    c.tell(go{detail::active_base::always});
    std::size_t sent = 0;
    auto flood = spawn([&] {
      const std::string much(10'000, 'f');
      for (;;) {
        std::size_t n = 0;
        try {
          a.write_all(much, &n);
          sent += n;
        } catch (...) {
          sent += n;
          throw;
        }
      }
    });
    for (int i = 0; i < 20; ++i) EXPECT_EQ(told.recv(), std::string(100, 'f'));
    EXPECT_LE(c.mail_count(), 2u);
    auto asked = spawn([&] { return c.ask(how_far{}); });
    for (int i = 0; i < 3; ++i) static_cast<void>(told.recv());  // its turn comes behind the piece under way
    auto drain = spawn([&] {
      std::string all;
      while (std::optional<std::string> s = told.recv()) all += *s;
      return all;
    });
    EXPECT_GE(asked.join(), 2000u);
    flood.request_stop();
    EXPECT_THROW(flood.join(), cancelled);
    a.close();
    while (c.ask(how_far{}) != sent) this_fiber::yield();
    c.stop();
    c.join();
    told.close();
    drain.join();
  });
}

TEST(net_active, tells_of_a_reset) {
  with_workers([] {
    tcp_listener l{{"127.0.0.1", 0}};
    auto client = spawn([at = l.local()] { return tcp_stream::connect(at); });
    class waits : public actor<waits> {
     public:
      waits(tcp_stream s, promise<std::error_code> p) : peer_{std::move(s), self()}, p_{std::move(p)} {
        peer_.activate(active_stream<tcp_stream>::always);
      }
      void on(const received&) {}
      void on(ended e) {
        p_.set_value(e.why);
        stop();
      }

     private:
      active_stream<tcp_stream> peer_;
      promise<std::error_code> p_;
    };
    promise<std::error_code> why;
    auto later = why.get_future();
    auto w = spawn_actor<waits>(l.accept(), std::move(why));
    tcp_stream c = client.join();
    const linger at_once{1, 0};  // close sends a reset
    ASSERT_EQ(::setsockopt(c.native_handle(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    c.close();
    EXPECT_EQ(later.get().value(), ECONNRESET);
    EXPECT_EQ(w.join().kind(), exit_kind::stopped);
  });
}

/// Reads its stream itself, after the note that tells of what came is in its mailbox.
class reads_itself : public actor<reads_itself> {
 public:
  struct now {};
  reads_itself(unix_stream s, unix_stream& peer) : peer_{std::move(s), self()}, other_{&peer} {
    peer_.activate(active_stream<unix_stream>::always);
  }
  std::string on(const now&) {
    other_->write_all("came");
    this_fiber::sleep_for(5ms);
    peer_.deactivate();
    std::array<std::byte, 10> some;
    std::string all = text_of(std::span{some}.first(peer_->read_some(some)));
    other_->write_all("later");
    peer_.activate(1);
    return all;
  }
  void on(const received& m) {
    if (m.text() == "later") stop();
  }
  void on(ended) { ADD_FAILURE() << "nobody ends it"; }

 private:
  active_stream<unix_stream> peer_;
  unix_stream* other_;
};

TEST(net_active, may_be_read_by_its_actor_once_it_is_deactivated) {
  with_workers([] {
    auto [a, b] = unix_stream::pair();
    auto r = spawn_actor<reads_itself>(std::move(b), a);
    EXPECT_EQ(r.ask(reads_itself::now{}), "came");
    EXPECT_EQ(r.join().kind(), exit_kind::stopped);
  });
}

/// Gives its stream to a fiber when told "fiber", and closes it when told "close".
class changes_its_mind : public actor<changes_its_mind> {
 public:
  changes_its_mind(unix_stream s, channel<unix_stream>& to) : peer_{std::move(s), self(), 5}, to_{&to} {
    peer_.activate(active_stream<unix_stream>::always);
  }
  void on(const received& m) {
    if (m.text() == "fiber") static_cast<void>(to_->send(peer_.release()));
    if (m.text() == "close") peer_.close();
    if (m.text() == "throw") throw std::runtime_error{"told to"};
  }
  void on(ended) { ADD_FAILURE() << "it closed the stream itself"; }

 private:
  active_stream<unix_stream> peer_;
  channel<unix_stream>* to_;
};

TEST(net_active, gives_its_stream_away_and_closes_it) {
  with_workers([] {
    channel<unix_stream> to{1};
    for (const std::string_view word : {"fiber", "close", "throw"}) {
      auto [a, b] = unix_stream::pair();
      auto c = spawn_actor<changes_its_mind>(std::move(b), to);
      auto watcher = spawn([c] { return c.join(); });  // so that a failure is not reported
      this_fiber::yield();
      a.write_all(std::string{word} + (word == "fiber" ? "rest" : ""));  // what nobody reads would be a reset
      std::array<std::byte, 4> four;
      if (word == "fiber") {
        unix_stream s = *to.recv();
        EXPECT_TRUE(s.read_exactly(four));
        EXPECT_EQ(text_of(four), "rest");
      } else {
        EXPECT_EQ(read_all(a), "");
      }
      c.stop();
      EXPECT_EQ(watcher.join().kind(), word == "throw" ? exit_kind::failed : exit_kind::stopped);
    }
  });
}

/// The actor ends while data arrives, again and again, in each way.
TEST(net_active, ends_while_data_arrives) {
  with_workers([] {
    class sink : public actor<sink> {
     public:
      explicit sink(unix_stream s) : peer_{std::move(s), self(), 1} {
        peer_.activate(active_stream<unix_stream>::always);
      }
      void on(const received&) {}
      void on(ended) { stop(); }
      void on(hold) { throw std::runtime_error{"told to"}; }

     private:
      active_stream<unix_stream> peer_;
    };
    for (int i = 0; i < (RAMIE_TSAN || RAMIE_ASAN ? 200 : 1000); ++i) {
      auto [a, b] = unix_stream::pair();
      auto s = spawn_actor<sink>(std::move(b));
      auto writer = spawn([&a] {
        try {
          for (int n = 0; n < 5; ++n) {
            a.write_all("xy");
            this_fiber::yield();
          }
        } catch (const io_error&) {
        }
      });
      auto joined = spawn([s] { return s.join().kind(); });
      if (i % 2 == 0) this_fiber::yield();
      if (i % 4 == 0) s.stop();
      else if (i % 4 == 1) s.kill();
      else if (i % 4 == 2) s.tell(hold{});
      else writer.join(), a.close();
      const exit_kind why = joined.join();
      EXPECT_EQ(why, i % 4 == 1 ? exit_kind::killed : i % 4 == 2 ? exit_kind::failed : exit_kind::stopped);
      if (i % 4 != 3) writer.join();
    }
  });
}

/// A piece that was put aside comes again, and the stream goes on meanwhile.
TEST(net_active, pieces_can_be_stashed) {
  with_workers([] {
    class stashes : public actor<stashes> {
     public:
      stashes(unix_stream s, channel<std::string>& told) : peer_{std::move(s), self(), 2}, told_{&told} {
        peer_.activate(active_stream<unix_stream>::always);
      }
      void on(const received& m) {
        if (m.text() == "no" && !open_) stash();
        else static_cast<void>(told_->send(std::string{m.text()}));
      }
      void on(go) {
        open_ = true;
        unstash_all();
      }
      void on(ended) { static_cast<void>(told_->send("end")); }

     private:
      active_stream<unix_stream> peer_;
      channel<std::string>* told_;
      bool open_ = false;
    };
    auto [a, b] = unix_stream::pair();
    channel<std::string> told{10};
    auto s = spawn_actor<stashes>(std::move(b), told);
    a.write_all("nonook");
    EXPECT_EQ(told.recv(), "ok");
    s.tell(go{});
    EXPECT_EQ(told.recv(), "no");
    EXPECT_EQ(told.recv(), "no");
    a.close();
    EXPECT_EQ(told.recv(), "end");
    s.stop();
    s.join();
  });
}

TEST(net_active, wakes_a_runtime_that_is_all_asleep_and_is_no_deadlock) {
  for (const int n : {1, 2, 8}) {
    runtime rt{{.workers = n, .name = "net"}};
    auto ends = rt.run([] { return unix_stream::pair(); });
    channel<std::string> told;
    auto c = rt.spawn([&] { return spawn_actor<collector>(std::move(ends.second), 100u, told); }).join();
    c.tell(go{detail::active_base::always});
    auto reader = rt.spawn([&] { return told.recv(); });
    std::this_thread::sleep_for(150ms);  // longer than the report's patience
    ends.first.write_all("still here");
    EXPECT_EQ(reader.join(), "still here");
    c.stop();
  }
}

TEST(net_active, of_a_runtime_end_with_it) {
  std::optional<unix_stream> other;
  {
    runtime rt{{.workers = 2}};
    rt.run([&] {
      tcp_listener l{{"127.0.0.1", 0}};
      auto [a, b] = unix_stream::pair();
      other = std::move(a);
      class sleeps : public actor<sleeps> {
       public:
        explicit sleeps(unix_stream s) : peer_{std::move(s), self()} { peer_.activate(); }
        void on(const received&) {}
        void on(ended) {}

       private:
        active_stream<unix_stream> peer_;
      };
      static_cast<void>(spawn_actor<sleeps>(std::move(b)));
    });
  }
  runtime rt{{.workers = 1}};
  rt.run([&] { EXPECT_EQ(read_all(*other), ""); });  // it was closed
}

/// Timeouts of a connection are those of its actor.
TEST(net_active, counts_as_messages_for_a_receive_timeout) {
  with_workers([] {
    class impatient : public actor<impatient> {
     public:
      impatient(unix_stream s, channel<int>& told) : peer_{std::move(s), self()}, told_{&told} {
        set_receive_timeout(20ms);
        peer_.activate(active_stream<unix_stream>::always);
      }
      void on(const received&) { ++pieces_; }
      void on(ended) {}
      void on(receive_timeout) {
        cancel_receive_timeout();
        static_cast<void>(told_->send(pieces_));
      }

     private:
      active_stream<unix_stream> peer_;
      channel<int>* told_;
      int pieces_ = 0;
    };
    auto [a, b] = unix_stream::pair();
    channel<int> told{1};
    auto s = spawn_actor<impatient>(std::move(b), told);
    a.write_all("x");
    EXPECT_EQ(told.recv(), 1);
    s.stop();
    s.join();
  });
}

TEST(net_active, of_a_pipe_and_of_a_stream_that_is_closed) {
  with_workers([] {
    class lines : public actor<lines> {
     public:
      lines(pipe_reader r, channel<std::string>& told) : peer_{std::move(r), self()}, told_{&told} {
        peer_.activate(active_stream<pipe_reader>::always);
      }
      void on(const received& m) { static_cast<void>(told_->send(std::string{m.text()})); }
      void on(ended e) { static_cast<void>(told_->send(e.why == io_errc::closed ? "closed" : "end")); }

     private:
      active_stream<pipe_reader> peer_;
      channel<std::string>* told_;
    };
    auto [r, w] = make_pipe();
    channel<std::string> told{10};
    auto l = spawn_actor<lines>(std::move(r), told);
    w.write_all("line");
    EXPECT_EQ(told.recv(), "line");
    w.close();
    EXPECT_EQ(told.recv(), "end");
    l.stop();
    auto [c, d] = make_pipe();
    c.close();
    auto of_closed = spawn_actor<lines>(std::move(c), told);
    EXPECT_EQ(told.recv(), "closed");
    of_closed.stop();
    EXPECT_THROW(spawn_actor<lines>(pipe_reader{}, told), io_error);
  });
}

}  // namespace
}  // namespace ramie::net
