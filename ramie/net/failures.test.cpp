// What goes wrong around sockets while others use them: resets, signals, slow and greedy peers, processes that fork,
// runtimes that end, events that come too late.
#include <ramie/net/testing.hpp>
#include <ramie/poll/descriptor.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <ctime>
#include <fstream>
#include <optional>
#include <random>
#include <thread>

namespace ramie::net {
namespace {

using namespace std::chrono_literals;

void reset_on_close(const stream& s) {
  const linger at_once{1, 0};
  ASSERT_EQ(::setsockopt(s.native_handle(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
}

// ---- peers ---------------------------------------------------------------------------------------------------------

/// Connections that are reset before they are accepted: the listener goes on, and the others are served.
TEST(net_failures, a_reset_in_the_queue_of_accept_concerns_one_connection) {
  with_workers([] {
    tcp_listener l{{"127.0.0.1", 0}};
    std::vector<tcp_stream> good;
    for (int i = 0; i < 20; ++i) {
      tcp_stream c = tcp_stream::connect(l.local());
      if (i % 2 == 0) {
        reset_on_close(c);
        c.close();
      } else {
        c.write_all("x");
        good.push_back(std::move(c));
      }
    }
    std::size_t read = 0, resets = 0;
    while (read < good.size()) {
      tcp_stream s = l.accept();
      std::array<std::byte, 1> one;
      std::error_code failure;
      if (s.read_some(one, failure) == 1) ++read;
      else if (failure.value() == ECONNRESET) ++resets;
    }
    EXPECT_LE(resets, 10u);
    // And while a fiber waits in accept.
    auto server = spawn([&] { return l.accept(); });
    this_fiber::yield();
    tcp_stream last = tcp_stream::connect(l.local());
    last.write_all("y");
    last.shutdown_write();
    tcp_stream s = server.join();
    EXPECT_EQ(read_all(s), "y");
  });
}

TEST(net_failures, partial_writes_through_the_least_of_tcp_buffers) {
  with_workers([] {
    auto [a, b] = tcp_pair();
    const int least = 1;
    ASSERT_EQ(::setsockopt(a.native_handle(), SOL_SOCKET, SO_SNDBUF, &least, sizeof least), 0);
    ASSERT_EQ(::setsockopt(b.native_handle(), SOL_SOCKET, SO_RCVBUF, &least, sizeof least), 0);
    constexpr std::size_t total = 20'000;
    auto writer = spawn([&a] {
      std::vector<std::byte> all(total);
      for (std::size_t i = 0; i < total; ++i) all[i] = byte_at(i);
      // In pieces that are gathered.
      std::vector<iovec> pieces;
      for (std::size_t at = 0; at < total; at += 777)
        pieces.push_back({all.data() + at, std::min<std::size_t>(777, total - at)});
      a.write_all(pieces);
      a.shutdown_write();
    });
    std::size_t got = 0, wrong = 0;
    std::array<std::byte, 3000> some;
    while (const std::size_t n = b.read_some(some)) {
      for (std::size_t i = 0; i < n; ++i) wrong += some[i] != byte_at(got + i) ? 1 : 0;
      got += n;
    }
    writer.join();
    EXPECT_EQ(got, total);
    EXPECT_EQ(wrong, 0u);
  });
}

/// Many that send a byte now and then, and never a whole request: one that is busy gets all its answers.
TEST(net_failures, slow_peers_beside_a_busy_one_do_not_stop_it) {
  with_workers([] {
    tcp_listener l{{"127.0.0.1", 0}};
    scope servers;
    auto accepting = spawn([&] {
      try {
        for (;;)
          servers.spawn([s = l.accept()]() mutable {
            std::array<std::byte, 64> request;
            try {
              while (s.read_exactly(request)) s.write_all(request);
            } catch (const io_error&) {
            }
          });
      } catch (const io_error&) {
      }
    });
    std::vector<tcp_stream> slow;
    slow.reserve(50);
    for (int i = 0; i < 50; ++i) slow.push_back(tcp_stream::connect(l.local()));
    tcp_stream busy = tcp_stream::connect(l.local());
    std::array<std::byte, 64> request{}, back;
    for (int i = 0; i < 1000; ++i) {
      request[0] = byte_at(static_cast<std::uint64_t>(i));
      if (i < 60) slow[static_cast<std::size_t>(i) % slow.size()].write_all("z");
      busy.write_all(request);
      ASSERT_TRUE(busy.read_exactly(back));
      ASSERT_EQ(back, request);
    }
    slow.clear();
    busy.close();
    l.close();
    accepting.join();
    servers.join();
  });
}

// ---- cancelling ----------------------------------------------------------------------------------------------------

/// Reads, a million with RAMIE_TEST_LARGE, each of which may be cut off just as data arrives. The seed is printed where
/// it fails.
TEST(net_failures, cancelled_reads_lose_no_byte) {
  const char* const given = std::getenv("RAMIE_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  SCOPED_TRACE("RAMIE_SEED=" + std::to_string(seed));
  // A million takes a minute where others compute.
  const bool is_large = std::getenv("RAMIE_TEST_LARGE") != nullptr;
  const int rounds = RAMIE_TSAN || RAMIE_ASAN ? 20'000 : is_large ? 1'000'000 : 100'000;
  runtime rt{{.workers = 2, .name = "net"}};
  rt.run([&] {
    auto [a, b] = unix_stream::pair();
    std::atomic<bool> enough{false};
    std::atomic<std::uint64_t> got{0};
    auto writer = spawn([&a, &enough, &got, seed] {
      std::minstd_rand random{static_cast<std::uint_fast32_t>(seed)};
      std::array<std::byte, 16> some;
      std::uint64_t sent = 0;
      while (!enough) {
        const std::size_t n = 1 + random() % some.size();
        for (std::size_t i = 0; i < n; ++i) some[i] = byte_at(sent + i);
        a.write_all(std::span{some}.first(n));
        sent += n;
        for (auto k = random() % 4; k != 0; --k) this_fiber::yield();
        while (!enough && sent > got + 32) this_fiber::yield();  // else no read would have to wait
      }
      a.shutdown_write();
      return sent;
    });
    std::minstd_rand random{static_cast<std::uint_fast32_t>(seed + 1)};
    std::uint64_t wrong = 0;
    bool ended = false;
    const auto read = [&] {
      std::array<std::byte, 7> some;
      const std::size_t n = b.read_some(some);
      for (std::size_t i = 0; i < n; ++i) wrong += some[i] != byte_at(got + i) ? 1 : 0;
      got += n;
      ended = n == 0;
    };
    int cut = 0;
    for (int i = 0; i < rounds && !ended; ++i) {
      try {
        if (random() % 8 == 0) {
          with_timeout(std::chrono::nanoseconds{random() % 3000}, read);
        } else {
          auto one = spawn(read);
          if (random() % 2 == 0) this_fiber::yield();
          one.request_stop();
          one.join();
        }
      } catch (const cancelled&) {
        ++cut;
      } catch (const timeout_error&) {
        ++cut;
      }
    }
    enough = true;
    while (!ended) read();
    EXPECT_EQ(got, writer.join());
    EXPECT_EQ(wrong, 0u);
    EXPECT_GT(cut, 0);
  });
}

// ---- signals -------------------------------------------------------------------------------------------------------

/// A signal without SA_RESTART that all threads get, all the time: each system call may end with EINTR.
TEST(net_failures, a_storm_of_signals_interrupts_calls_and_nothing_else) {
  struct sigaction action{}, before{};
  action.sa_handler = [](int) {};
  ASSERT_EQ(::sigaction(SIGUSR2, &action, &before), 0);
  with_workers([] {
    const std::jthread storm{[](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        ::kill(::getpid(), SIGUSR2);
        std::this_thread::sleep_for(20us);
      }
    }};
    auto [a, b] = tcp_pair();
    auto [r, w] = make_pipe();
    scope s;
    s.spawn([&a] {
      const std::string much(200'000, 'x');
      for (int i = 0; i < 10; ++i) a.write_all(much);
      a.shutdown_write();
    });
    s.spawn([&b] { EXPECT_EQ(read_all(b).size(), 2'000'000u); });
    s.spawn([&w] {
      for (int i = 0; i < 200; ++i) {
        w.write_all("y");
        if (i % 10 == 0) this_fiber::sleep_for(100us);
      }
      w.close();
    });
    s.spawn([&r] { EXPECT_EQ(read_all(r), std::string(200, 'y')); });
    s.spawn([] {
      tcp_listener l{{"127.0.0.1", 0}};
      for (int i = 0; i < 20; ++i) {
        auto client = spawn([&] { return tcp_stream::connect(l.local()); });
        tcp_stream one = l.accept();
        tcp_stream other = client.join();
        other.write_all("z");
        other.close();
        EXPECT_EQ(read_all(one), "z");
      }
    });
    s.join();
  });
  ::sigaction(SIGUSR2, &before, nullptr);
}

// ---- the poller ----------------------------------------------------------------------------------------------------

/// The worker that looks most often is taken by a fiber that computes; others, or the monitor, look instead.
TEST(net_failures, a_poller_that_is_stuck_is_replaced) {
  for (const int workers : {1, 2, 8}) {
    runtime rt{{.workers = workers}};
    auto ends = rt.run([] { return unix_stream::pair(); });
    std::atomic<int> echoed{0};
    auto echo = rt.spawn([&b = ends.second, &echoed] {
      std::array<std::byte, 1> one;
      while (b.read_exactly(one)) {
        b.write_all(one);
        ++echoed;
      }
    });
    std::atomic<bool> hogs{true};
    auto hog = rt.spawn([&] {
      while (hogs.load(std::memory_order_relaxed)) {
      }
    });
    std::array<std::byte, 1> back;
    for (int i = 0; i < 20; ++i) {
      ends.first.write_all("x");
      // With one worker the echo cannot run before the hog has yielded: it is only made ready.
      if (workers == 1) hogs = false;
      EXPECT_TRUE(ends.first.read_exactly(back));
    }
    hogs = false;
    hog.join();
    ends.first.close();
    echo.join();
    EXPECT_EQ(echoed, 20);
  }
}

/// An event of an earlier use of the record, told after the record was reused.
TEST(net_failures, an_event_of_a_recycled_descriptor_is_dropped) {
  with_workers([] {
    using namespace detail;
    int both[2];
    ASSERT_EQ(::pipe2(both, O_NONBLOCK | O_CLOEXEC), 0);
    std::optional<handle> first{std::in_place, both[0], endings::last};
    descriptor* const record = first->get();
    const std::uint32_t old = record->generation.load() & descriptor::generation_mask;
    first.reset();
    std::vector<handle> others;  // until the record is in use again
    const handle second{both[1], endings::last};
    while (second.get() != record && (others.empty() || others.back().get() != record))
      others.emplace_back(::dup(both[1]), endings::last);
    const descriptor& reused = *record;
    static_cast<void>(take_ready(*record, direction::in));
    signal(*record, direction::in, descriptor::hung_up, &old);
    bool free = false;
    EXPECT_EQ(const_cast<descriptor&>(reused).in.peek(free), descriptor::not_ready);
    const std::uint32_t now = record->generation.load() & descriptor::generation_mask;
    EXPECT_NE(now, old);
    signal(*record, direction::in, descriptor::hung_up, &now);
    EXPECT_EQ(record->in.peek(free), descriptor::hung_up);
  });
}

// ---- processes and runtimes ----------------------------------------------------------------------------------------

/// A child of fork() has the descriptors, too: neither its end nor what it closes disturbs the parent's events.
TEST(net_failures, a_fork_with_a_live_epoll_set_disturbs_nothing) {
  with_workers([] {
    auto [a, b] = unix_stream::pair();
    auto echo = spawn([&b] {
      std::array<std::byte, 1> one;
      while (b.read_exactly(one)) b.write_all(one);
    });
    std::array<std::byte, 1> back;
    for (int i = 0; i < 5; ++i) {
      a.write_all("x");
      ASSERT_TRUE(a.read_exactly(back));
      const pid_t child = ::fork();
      if (child == 0) {
        for (int fd = 3; fd < 1000; ++fd) ::close(fd);
        ::_exit(0);
      }
      a.write_all("y");
      ASSERT_TRUE(a.read_exactly(back));
      int status = 0;
      EXPECT_EQ(blocking([&] { return ::waitpid(child, &status, 0); }), child);
      EXPECT_EQ(status, 0);
    }
    a.close();
    echo.join();
  });
}

TEST(net_failures, a_runtime_is_stopped_amid_traffic) {
  for (const int workers : {1, 2, 8}) {
    for (int round = 0; round < 10; ++round) {
      runtime rt{{.workers = workers}};
      auto server = rt.spawn([] {
        tcp_listener l{{"127.0.0.1", 0}};
        scope all;
        for (int i = 0; i < 10; ++i)
          all.spawn([at = l.local()] {
            tcp_stream c = tcp_stream::connect(at);
            const std::string much(100'000, 'x');
            for (;;) c.write_all(much);
          });
        for (;;)
          all.spawn([s = l.accept()]() mutable {
            std::array<std::byte, 1000> some;
            while (s.read_some(some) != 0) s.write_all("ok");
          });
      });
      std::this_thread::sleep_for(std::chrono::microseconds{500 * round});
      rt.shutdown();
      EXPECT_ANY_THROW(server.join());
    }
  }
}

TEST(net_failures, a_stream_is_handed_from_runtime_to_runtime) {
  runtime one{{.workers = 2}}, two{{.workers = 1}};
  auto [a, b] = one.run([] { return unix_stream::pair(); });
  for (int i = 0; i < 200; ++i) {
    runtime& reads = i % 2 == 0 ? one : two;
    runtime& writes = i % 2 == 0 ? two : one;
    auto reader = reads.spawn([s = std::move(b)]() mutable {
      std::array<std::byte, 4> four;
      EXPECT_TRUE(s.read_exactly(four));
      EXPECT_EQ(text_of(four), "ping");
      return std::move(s);
    });
    writes.spawn([&a] { a.write_all("ping"); }).join();
    b = reader.join();
  }
}

#if !RAMIE_TSAN  // its own thread might wake a fiber, so the report takes its time
/// Sockets that nobody waits for keep no deadlock from being reported.
void wait_for_nobody() {
  runtime rt{{.workers = 2, .name = "stuck"}};
  rt.run([] {
    auto [a, b] = unix_stream::pair();
    EXPECT_THROW(with_timeout(1ms,
                              [&b] {
                                std::array<std::byte, 1> one;
                                return b.read_some(one);
                              }),
                 timeout_error);
    channel<int> never;
    static_cast<void>(never.recv());
  });
}
TEST(net_failures, a_deadlock_beside_open_sockets_is_reported) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(wait_for_nobody(), "deadlock: every fiber of runtime .stuck. waits");
}
#endif

TEST(net_failures, a_dump_names_the_descriptor_and_its_peer) {
  runtime rt{{.workers = 2}};
  rt.run([] {
    auto [a, b] = tcp_pair();
    tcp_listener l{{"127.0.0.1", 0}};
    unix_listener local{endpoint::local("@ramie-dump-" + std::to_string(::getpid()))};
    auto reader = spawn([&b] { static_cast<void>(read_all(b)); });
    auto writer = spawn([&b] {
      const std::string much(10'000'000, 'x');
      EXPECT_NE(code_of([&] { b.write_all(much); }), std::error_code{});
    });
    auto accepting = spawn([&] { EXPECT_EQ(code_of([&] { static_cast<void>(l.accept()); }), io_errc::closed); });
    auto also = spawn([&] { EXPECT_EQ(code_of([&] { static_cast<void>(local.accept()); }), io_errc::closed); });
    const std::string to = " (descriptor " + std::to_string(b.native_handle()) + ", to " + b.peer().to_string();
    const std::string expected[] = {
        "waits for read" + to + ", to be readable)", "waits for write" + to + ", to be writable)",
        "waits for accept (descriptor " + std::to_string(l.native_handle()) + ", at " + l.local().to_string(),
        ", at unix:@ramie-dump-" + std::to_string(::getpid()) + ", to be readable)"};
    std::string text;
    const auto all_there = [&] {
      return std::ranges::all_of(expected, [&](const std::string& e) { return text.find(e) != std::string::npos; });
    };
    for (int i = 0; i < 60'000 && !all_there(); ++i) {  // until all four wait
      this_fiber::sleep_for(1ms);
      std::FILE* const f = std::tmpfile();
      dump(::fileno(f));
      text.assign(static_cast<std::size_t>(::lseek(::fileno(f), 0, SEEK_END)), '\0');
      EXPECT_EQ(::pread(::fileno(f), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
      std::fclose(f);
    }
    for (const std::string& e : expected) EXPECT_NE(text.find(e), std::string::npos) << e << "\n" << text;
    l.close();
    local.close();
    b.close();
    reader.request_stop();
    EXPECT_ANY_THROW(reader.join());
    writer.join();
    accepting.join();
    also.join();
  });
}

// ---- many ----------------------------------------------------------------------------------------------------------

std::int64_t resident_bytes() {
  std::int64_t size = 0, resident = 0;
  std::ifstream{"/proc/self/statm"} >> size >> resident;
  return resident * ::getpagesize();
}

double processor_seconds() {
  timespec t{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

/// As many connections with nothing to say as the process may have, 100,000 at most, after a message each.
template <class Serve>
void many_idle(std::int64_t bytes_most, Serve serve) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit all{limit.rlim_max, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &all), 0);
  const int n = static_cast<int>(std::min<rlim_t>(limit.rlim_max - 200, 200'000) / 2);
  runtime rt{{.workers = 2}};
  rt.run([&] {
    std::vector<int> clients, servers;
    for (int i = 0; i < n; ++i) {
      int both[2];
      ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, both), 0);
      clients.push_back(both[0]);
      servers.push_back(both[1]);
    }
    const auto exchange = [&](int first, int last) {
      for (int i = first; i < last; ++i) ASSERT_EQ(::send(clients[static_cast<std::size_t>(i)], "hello", 5, 0), 5);
      for (int i = first; i < last; ++i) {
        char back[6];
        while (::recv(clients[static_cast<std::size_t>(i)], back, sizeof back, 0) < 0) {
          ASSERT_EQ(errno, EAGAIN);
          this_fiber::sleep_for(100us);
        }
      }
    };
    scope connections;
    const int warm = n / 10;  // for what the runtime itself needs
    for (int i = 0; i < warm; ++i) serve(connections, servers[static_cast<std::size_t>(i)]);
    exchange(0, warm);
    const std::int64_t before = resident_bytes();
    for (int i = warm; i < n; ++i) serve(connections, servers[static_cast<std::size_t>(i)]);
    exchange(warm, n);
    const std::int64_t each = (resident_bytes() - before) / (n - warm);
    EXPECT_LE(each, bytes_most);
    const double cpu = processor_seconds();
    const auto start = std::chrono::steady_clock::now();
    this_fiber::sleep_for(3s);
    const double share =
        (processor_seconds() - cpu) / std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    EXPECT_LE(share, 0.001) << "of a processor, with nothing to do";
    std::printf("%d connections: %lld bytes each, %.4f %% of a processor\n", n, static_cast<long long>(each),
                share * 100);
    for (const int c : clients) ::close(c);
    connections.join();
  });
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
}

class idle_actor : public actor<idle_actor> {
 public:
  explicit idle_actor(unix_stream s) : peer_{std::move(s), self()} {
    peer_.activate(active_stream<unix_stream>::always);
  }
  void on(const received& m) { peer_->write_all(m.bytes()); }
  void on(ended) { stop(); }

 private:
  active_stream<unix_stream> peer_;
};

TEST(net_large, idle_connections_cost_a_page_as_fibers_and_little_as_actors) {
  const char* const wanted = std::getenv("RAMIE_TEST_LARGE");
  if (wanted == nullptr || *wanted != '1') GTEST_SKIP() << "RAMIE_TEST_LARGE=1 to run it";
  if (RAMIE_TSAN || RAMIE_ASAN) GTEST_SKIP() << "sanitizers need memory of their own";
  many_idle(4608, [](scope& all, int fd) {
    all.spawn([s = unix_stream::adopt(fd)]() mutable {
      for (;;) {
        s.wait_readable();
        const std::unique_ptr<std::byte[]> buffer{new std::byte[4096]};
        const std::size_t n = s.read_some({buffer.get(), 4096});
        if (n == 0) return;
        s.write_all(std::span<const std::byte>{buffer.get(), n});
      }
    });
  });
  many_idle(700, [](scope&, int fd) { static_cast<void>(spawn_actor<idle_actor>(unix_stream::adopt(fd))); });
}

}  // namespace
}  // namespace ramie::net
