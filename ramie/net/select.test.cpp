// Sockets as cases of a select, beside channels and times.
#include <ramie/net/select.hpp>

#include <ramie/net/testing.hpp>

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ramie::net {
namespace {

using namespace std::chrono_literals;

std::string some_of(unix_stream& from) {
  std::array<std::byte, 100> some;
  return text_of(std::span{some}.first(from.read_some(some)));
}

/// No call has waited for it so far, so it is in no set, and a read has found it drained.
TEST(net_select, waits_for_a_socket_that_was_only_read) {
  const auto selects = [](auto ends) {
    auto& [a, b] = ends;
    a.write_all("first");
    std::array<std::byte, 10> some;
    EXPECT_EQ(b.read_some(some), 5u);
    auto writer = spawn([&ends] {
      this_fiber::sleep_for(1ms);
      ends.first.write_all("second");
    });
    EXPECT_EQ(select(on_readable(b), on_timeout(60s, [] {})), 0u);
    EXPECT_EQ(b.read_some(some), 6u);
    writer.join();
  };
  with_workers([&] {
    selects(tcp_pair());
    selects(unix_stream::pair());
  });
}

TEST(net_select, takes_what_comes_first) {
  with_workers([] {
    auto [a, b] = unix_stream::pair();
    channel<int> numbers{1};
    std::string got;
    const auto next = [&] {
      select(on_readable(b, [&] { got += some_of(b); }),
             on_recv(numbers, [&](std::optional<int> n) { got += std::to_string(n.value_or(-1)); }),
             on_timeout(1h, [&] { got += "late"; }));
    };
    a.write_all("x");
    next();
    EXPECT_EQ(got, "x");
    static_cast<void>(numbers.send(7));
    next();
    EXPECT_EQ(got, "x7");
    auto writer = spawn([&a] {
      this_fiber::yield();
      a.write_all("y");
    });
    next();
    EXPECT_EQ(got, "x7y");
    writer.join();
    auto sender = spawn([&] {
      this_fiber::yield();
      static_cast<void>(numbers.send(8));
    });
    next();
    EXPECT_EQ(got, "x7y8");
    sender.join();
    a.close();
    bool ended = false;
    select(on_readable(b, [&] { ended = some_of(b).empty(); }), on_recv(numbers, [](std::optional<int>) { FAIL(); }));
    EXPECT_TRUE(ended);
  });
}

/// Nothing is taken from the socket by a select that chooses another case, times out, or only looks.
TEST(net_select, does_not_wait_with_otherwise_and_leaves_what_it_does_not_choose) {
  with_workers([] {
    auto [a, b] = unix_stream::pair();
    const auto is_readable = [&b] {
      bool yes = false;
      select(on_readable(b, [&] { yes = true; }), otherwise());
      return yes;
    };
    EXPECT_FALSE(is_readable());
    EXPECT_FALSE(is_readable());
    bool writable = false, late = false;
    select(on_writable(b, [&] { writable = true; }), otherwise());
    EXPECT_TRUE(writable);
    select(on_readable(b), on_timeout(1ms, [&] { late = true; }));
    EXPECT_TRUE(late);
    a.write_all("x");
    while (!is_readable()) this_fiber::yield();  // the edge is seen by the next poll
    EXPECT_TRUE(is_readable());
    EXPECT_EQ(some_of(b), "x");
    EXPECT_FALSE(is_readable());
    select(when(false, on_readable(b)), on_timeout(0ms));
  });
}

TEST(net_select, waits_for_room_to_write) {
  with_workers([] {
    auto [a, b] = unix_stream::pair();
    const std::string much(100'000, 'x');
    EXPECT_THROW(with_timeout(5ms,
                              [&] {
                                for (;;) a.write_all(much);
                              }),
                 timeout_error);
    bool full = false;
    select(on_writable(a), otherwise([&] { full = true; }));
    EXPECT_TRUE(full);
    auto reader = spawn([&b] { return read_all(b).size(); });
    select(on_writable(a));
    a.close();
    EXPECT_GE(reader.join(), much.size());
  });
}

TEST(net_select, accepts) {
  with_workers([] {
    tcp_listener l{{"127.0.0.1", 0}};
    channel<int> stop;
    int served = 0;
    auto server = spawn([&] {
      for (bool open = true; open;)
        select(on_accept(l,
                         [&](tcp_stream s) {
                           s.write_all("hello");
                           ++served;
                         }),
               on_recv(stop, [&](std::optional<int>) { open = false; }));
    });
    for (int i = 0; i < 20; ++i) {
      tcp_stream s = tcp_stream::connect(l.local());
      EXPECT_EQ(read_all(s), "hello");
    }
    stop.close();
    server.join();
    EXPECT_EQ(served, 20);

    unix_listener local{endpoint::local("@ramie-select-" + std::to_string(::getpid()))};
    auto client = spawn([&] { return unix_stream::connect(local.local()); });
    select(on_accept(local, [](unix_stream s) { s.write_all("local"); }));
    unix_stream s = client.join();
    EXPECT_EQ(read_all(s), "local");
  });
}

TEST(net_select, accepts_each_connection_once_in_several_fibers) {
  with_workers([] {
    tcp_listener l{{"127.0.0.1", 0}};
    channel<int> stop;
    detail::atomic<int> served{0};
    scope servers;
    for (int i = 0; i < 4; ++i)
      servers.spawn([&, i] {
        for (bool open = true; open;) {
          const auto serve = [&](tcp_stream s) {
            s.write_all("hi");
            served.fetch_add(1, std::memory_order_relaxed);
          };
          if (i == 0) {  // one without a select
            try {
              serve(l.accept());
            } catch (const io_error&) {
              open = false;
            }
          } else {
            try {
              select(on_accept(l, serve), on_recv(stop, [&](std::optional<int>) { open = false; }));
            } catch (const io_error& e) {
              EXPECT_EQ(e.code(), io_errc::closed);
              open = false;
            }
          }
        }
      });
    {
      scope clients;
      for (int i = 0; i < 60; ++i)
        clients.spawn([&] {
          tcp_stream s = tcp_stream::connect(l.local());
          EXPECT_EQ(read_all(s), "hi");
        });
    }
    stop.close();
    l.close();
    servers.join();
    EXPECT_EQ(served.load(std::memory_order_relaxed), 60);
  });
}

TEST(net_select, in_two_fibers_on_one_listener_wakes_one_for_a_connection) {
  with_workers([] {
    for (int round = 0; round < 10; ++round) {
      tcp_listener l{{"127.0.0.1", 0}};
      event over;
      event accepted;
      detail::atomic<int> waiting{0};
      detail::atomic<int> served{0};
      scope servers;
      for (int i = 0; i < 3; ++i)
        servers.spawn([&] {
          waiting.fetch_add(1, std::memory_order_relaxed);
          select(on_accept(l,
                           [&](tcp_stream) {
                             served.fetch_add(1, std::memory_order_relaxed);
                             accepted.set();
                           }),
                 on_ready(over));
        });
      while (waiting.load(std::memory_order_relaxed) != 3) this_fiber::yield();
      this_fiber::sleep_for(1ms);
      tcp_stream client = tcp_stream::connect(l.local());
      accepted.wait();
      over.set();
      servers.join();
      EXPECT_EQ(served.load(std::memory_order_relaxed), 1);
    }
  });
}

TEST(net_select, in_two_fibers_on_one_stream_reads_each_byte_once) {
  with_workers([] {
    auto [a, b] = unix_stream::pair();
    channel<int> stop;
    detail::atomic<int> got{0};
    scope readers;
    for (int i = 0; i < 2; ++i)
      readers.spawn([&, from = &b] {
        for (bool open = true; open;)
          select(on_readable(*from,
                             [&] {
                               std::array<std::byte, 1> one;
                               // Another one may have been faster: then this waits for the next byte, or for the end.
                               if (from->read_some(one) == 0) open = false;
                               else got.fetch_add(1, std::memory_order_relaxed);
                             }),
                 on_recv(stop, [&](std::optional<int>) { open = false; }));
      });
    for (int i = 1; i <= 50; ++i) {
      a.write_all("x");
      while (got.load(std::memory_order_relaxed) != i) this_fiber::yield();
    }
    a.shutdown_write();
    stop.close();
    readers.join();
    EXPECT_EQ(got.load(std::memory_order_relaxed), 50);
  });
}

TEST(net_select, of_a_closed_socket_does_not_wait) {
  with_workers([] {
    auto [a, b] = unix_stream::pair();
    channel<int> never;
    const auto wait = [&] {
      return code_of(
          [&] { select(on_readable(b, [&] { some_of(b); }), on_recv(never, [](std::optional<int>) { FAIL(); })); });
    };
    for (int i = 0; i < 3; ++i) {  // closed during, and then before
      auto waiter = spawn(wait);
      if (i == 0) this_fiber::yield();
      b.close();
      EXPECT_EQ(waiter.join(), io_errc::closed);
    }
    unix_stream empty;
    EXPECT_EQ(code_of([&] { select(on_readable(empty, [&] { some_of(empty); }), on_recv(never, [](auto) {})); }),
              io_errc::closed);
    tcp_listener l{{"127.0.0.1", 0}};
    auto accepting =
        spawn([&] { return code_of([&] { select(on_accept(l, [](tcp_stream) {}), on_recv(never, [](auto) {})); }); });
    this_fiber::yield();
    l.close();
    EXPECT_EQ(accepting.join(), io_errc::closed);
  });
}

/// Each byte is read by one of several fibers; some wait by a select, some in a read.
TEST(net_select, in_several_fibers_on_one_socket_loses_nothing) {
  with_workers([] {
    auto [a, b] = unix_stream::pair();
    constexpr int messages = 300;
    channel<int> stop;
    channel<int> taken{messages};
    scope readers;
    for (int i = 0; i < 4; ++i)
      readers.spawn([&, i] {
        const auto take = [&] {
          std::array<std::byte, 1> one;
          if (b.read_some(one) != 0) static_cast<void>(taken.send(static_cast<int>(one[0])));
        };
        try {
          for (bool open = true; open;) {
            if (i == 0) take();
            else select(on_readable(b, take), on_recv(stop, [&](std::optional<int>) { open = false; }));
          }
        } catch (const io_error& e) {
          EXPECT_EQ(e.code(), io_errc::closed);
        }
      });
    std::array<int, 100> sum{};
    for (int i = 0; i < messages; ++i) {
      const std::array one{static_cast<std::byte>(i % 100)};
      a.write_all(one);
      if (i % 7 == 0) this_fiber::yield();
    }
    for (int i = 0; i < messages; ++i) ++sum[static_cast<std::size_t>(taken.recv().value_or(0))];
    for (const int n : sum) EXPECT_EQ(n, messages / 100);
    stop.close();
    b.close();  // for those that wait in a read
    readers.join();
  });
}

/// A select that is cancelled, times out or chooses another case while data arrives: the stream stays complete.
TEST(net_select, that_ends_otherwise_while_data_arrives_loses_nothing) {
  with_workers([] {
    auto [a, b] = unix_stream::pair();
    constexpr std::uint64_t total = RAMIE_TSAN != 0 ? 2000 : 20'000;
    channel<int> other{1};
    auto writer = spawn([&] {
      for (std::uint64_t i = 0; i < total; ++i) {
        const std::array one{byte_at(i)};
        a.write_all(one);
        if (i % 3 == 0) static_cast<void>(other.try_send(1));
        if (i % 64 == 0) this_fiber::yield();
      }
      a.close();
    });
    std::uint64_t got = 0;
    bool ended = false;
    const auto take = [&] {
      std::array<std::byte, 5> some;
      const std::size_t n = b.read_some(some);
      for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(some[i], byte_at(got + i)) << "at " << got + i;
      got += n;
      ended = n == 0;
    };
    for (int round = 0; !ended; ++round) {
      switch (round % 3) {
        case 0: select(on_recv(other, [](std::optional<int>) {}), on_readable(b, take)); break;
        case 1: select(on_readable(b, take), on_timeout(1us)); break;
        default: {
          auto one = spawn([&] { select(on_readable(b), on_recv(other, [](std::optional<int>) {})); });
          if (round % 2 == 0) this_fiber::yield();
          one.request_stop();
          try {
            one.join();
          } catch (const cancelled&) {
          }
          break;
        }
      }
    }
    EXPECT_EQ(got, total);
    writer.join();
  });
}

/// close() and the end of the waiter's select at once, again and again; the number is reused.
TEST(net_select, races_with_close) {
  with_workers([] {
    channel<int> other{1};
    for (int i = 0; i < 200; ++i) {
      auto [a, b] = unix_stream::pair();
      auto waiter = spawn([&] {
        bool readable = false;
        select(on_readable(b, [&] { readable = true; }), on_recv(other, [](std::optional<int>) {}));
        return !readable || code_of([&] { some_of(b); }) == io_errc::closed;
      });
      auto closer = spawn([&b] { b.close(); });
      if (i % 2 == 0) static_cast<void>(other.try_send(1));
      EXPECT_TRUE(waiter.join());
      closer.join();
      select(on_recv(other, [](std::optional<int>) {}), otherwise());
    }
  });
}

TEST(net_select, of_message_sockets) {
  with_workers([] {
    udp_socket a{{"127.0.0.1", 0}}, b{{"127.0.0.1", 0}};
    const auto receive = [](udp_socket& from) {
      std::array<std::byte, 10> some;
      return text_of(std::span{some}.first(from.receive(some)));
    };
    for (int i = 0; i < 20; ++i) {
      udp_socket& to = i % 2 == 0 ? a : b;
      auto sender = spawn([&] { (i % 2 == 0 ? b : a).send_to(to.local(), bytes_of("ping")); });
      std::string got;
      select(on_readable(a, [&] { got = "a:" + receive(a); }), on_readable(b, [&] { got = "b:" + receive(b); }));
      EXPECT_EQ(got, i % 2 == 0 ? "a:ping" : "b:ping");
      sender.join();
    }
  });
}

TEST(net_select, takes_signals) {
  with_workers([] {
    signals stop{SIGUSR1, SIGUSR2};
    channel<int> numbers{1};
    EXPECT_EQ(stop.try_wait(), std::nullopt);
    for (int i = 0; i < 50; ++i) {
      int got = 0, number = 0;
      const auto next = [&] {
        select(on_signal(stop, [&](int signal) { got = signal; }),
               on_recv(numbers, [&](std::optional<int> n) { number = n.value_or(-1); }));
      };
      if (i % 2 == 0) static_cast<void>(numbers.send(i + 1));  // what is not chosen stays
      ::kill(::getpid(), SIGUSR1);
      while (got == 0 || (i % 2 == 0 && number == 0)) next();
      EXPECT_EQ(got, SIGUSR1);
      EXPECT_EQ(number, i % 2 == 0 ? i + 1 : 0);
    }
    // Two at once: both are told.
    ::kill(::getpid(), SIGUSR1);
    ::kill(::getpid(), SIGUSR2);
    std::vector<int> both;
    while (both.size() < 2) select(on_signal(stop, [&](int signal) { both.push_back(signal); }));
    EXPECT_EQ(std::ranges::count(both, SIGUSR1), 1);
    EXPECT_EQ(std::ranges::count(both, SIGUSR2), 1);
    int kept = 0;
    auto again = on_signal(stop, [&](int signal) { kept = signal; });
    EXPECT_EQ(select(again, otherwise()), 1u);
    ::kill(::getpid(), SIGUSR1);
    EXPECT_EQ(select(again), 0u);
    EXPECT_EQ(std::exchange(kept, 0), SIGUSR1);
    stop.close();
    EXPECT_EQ(code_of([&] { select(again); }), io_errc::closed);
    EXPECT_EQ(kept, 0);
  });
}

TEST(net_select, takes_changes_of_files) {
  with_workers([] {
    const scratch_folder folder;
    watch changes;
    changes.add(folder.path());
    EXPECT_EQ(select(on_change(changes, [](const change&) { ADD_FAILURE(); }), otherwise()), 1u);
    auto writer = spawn([&] {
      this_fiber::yield();
      write_file(folder / "one", "1");
      std::filesystem::create_directory(folder / "two");
      std::filesystem::remove(folder / "two");
    });
    // Several come with one read, and each is told once.
    std::vector<std::string> created;
    bool removed = false;
    while (!removed)
      select(on_change(changes, [&](change c) {
        if (c.kind == change_kind::created || c.kind == change_kind::moved_here) created.push_back(c.path);
        removed = c.kind == change_kind::deleted && c.path == folder / "two";
      }));
    writer.join();
    EXPECT_EQ(std::ranges::count(created, folder / "one"), 1);
    EXPECT_EQ(std::ranges::count(created, folder / "two"), 1);
    EXPECT_EQ(select(on_change(changes, [](const change&) { ADD_FAILURE(); }), otherwise()), 1u);
    changes.close();
    EXPECT_EQ(code_of([&] { select(on_change(changes, [](const change&) {})); }), io_errc::closed);
  });
}

TEST(net_select, waits_for_the_ends_of_children) {
  with_workers([] {
    child one{{"sleep", "1000"}}, other{{"sh", "-c", "exit 7"}};
    child_status status;
    EXPECT_EQ(select(on_ready(one), on_ready(other, [&] { status = other.wait(); })), 1u);
    EXPECT_EQ(status, (child_status{7, 0}));
    EXPECT_EQ(select(on_ready(one), on_timeout(1ms, [] {})), 1u);
    EXPECT_EQ(select(on_ready(other)), 0u);  // and again
    auto killer = spawn([&] {
      this_fiber::sleep_for(1ms);
      one.kill(SIGKILL);
    });
    EXPECT_EQ(select(on_ready(one)), 0u);
    EXPECT_EQ(one.try_wait(), (child_status{0, SIGKILL}));
    killer.join();
  });
}

TEST(net_select, on_plain_threads) {
  auto [a, b] = unix_stream::pair();
  channel<int> never;
  std::thread writer{[&a] { a.write_all("x"); }};
  std::string got;
  select(on_readable(b, [&] { got = some_of(b); }), on_recv(never, [](std::optional<int>) {}));
  EXPECT_EQ(got, "x");
  writer.join();
}

/// The deadlock report knows that the select may be served from outside.
TEST(net_select, is_no_deadlock) {
  runtime rt{{.workers = 2, .name = "net"}};
  auto [a, b] = unix_stream::pair();
  auto waiter = rt.spawn([&b] {
    channel<int> never;
    std::string got;
    select(on_readable(b, [&] { got = some_of(b); }), on_recv(never, [](std::optional<int>) {}));
    return got;
  });
  // Longer than the report's patience; a slower machine only makes it later.
  std::this_thread::sleep_for(150ms);
  a.write_all("still here");
  EXPECT_EQ(waiter.join(), "still here");
}

}  // namespace
}  // namespace ramie::net
