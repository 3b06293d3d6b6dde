// Events reach their waiters whatever the workers do: sleep, work, or sleep in the epoll set while needed for other
// work.
#include <ramie/poll/poller.hpp>

#include <ramie/net/testing.hpp>
#include <ramie/runtime/statistics.hpp>

#include <fcntl.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

namespace ramie::net {
namespace {

using namespace std::chrono_literals;

TEST(net_events, wake_a_runtime_that_is_all_asleep) {
  for (const int workers : {1, 2, 8}) {
    runtime rt{{.workers = workers}};
    auto ends = rt.run([] { return unix_stream::pair(); });
    auto reader = rt.spawn([&b = ends.second] { return read_all(b); });
    for (int i = 0; i < 20; ++i) {
      std::this_thread::sleep_for(i % 4 == 0 ? 60ms : 1ms);  // also with the monitor asleep
      ends.first.write_all("x");
    }
    ends.first.close();
    EXPECT_EQ(reader.join(), std::string(20, 'x'));
  }
}

/// The worker that sleeps in the epoll set is needed for other work.
TEST(net_events, leave_their_sleeper_free_for_other_work) {
  for (const int workers : {1, 2, 8}) {
    runtime rt{{.workers = workers}};
    auto ends = rt.run([] { return unix_stream::pair(); });
    auto reader = rt.spawn([&b = ends.second] { return read_all(b); });
    for (int i = 0; i < 300; ++i) {
      EXPECT_EQ(rt.spawn([i] { return i; }).join(), i);
      if (i % 3 == 0) ends.first.write_all("y");
      if (i % 50 == 0) std::this_thread::sleep_for(1ms);
    }
    ends.first.close();
    EXPECT_EQ(reader.join(), std::string(100, 'y'));
  }
}

/// From all workers' own fibers: each event races with other wake-ups of the same worker.
TEST(net_events, race_with_other_wake_ups_and_none_is_lost) {
  with_workers([] {
    const int rounds = RAMIE_TSAN || RAMIE_ASAN ? 300 : 3000;
    auto [a, b] = unix_stream::pair();
    channel<int> work, done;
    auto worker = spawn([&] {
      for (const int i : work) static_cast<void>(done.send(i));
    });
    auto echo = spawn([&b] {
      std::array<std::byte, 1> one;
      while (b.read_exactly(one)) b.write_all(one);
    });
    for (int i = 0; i < rounds; ++i) {
      const std::byte sent = byte_at(static_cast<std::uint64_t>(i));
      a.write_all(std::span{&sent, 1});
      static_cast<void>(work.send(i));
      EXPECT_EQ(done.recv(), i);
      std::array<std::byte, 1> back;
      ASSERT_TRUE(a.read_exactly(back));
      EXPECT_EQ(back[0], sent);
      if (i % 16 == 0) this_fiber::sleep_for(50us);
    }
    work.close();
    worker.join();
    a.close();
    echo.join();
  });
}

TEST(net_events, timers_fire_while_a_worker_sleeps_in_the_set) {
  with_workers([] {
    auto [a, b] = unix_stream::pair();
    auto reader = spawn([&b] { return read_all(b); });
    for (int i = 0; i < 20; ++i) this_fiber::sleep_for(1ms);
    a.close();
    EXPECT_EQ(reader.join(), "");
  });
}

/// A fiber that computes never lets its worker look; the monitor does.
TEST(net_events, are_seen_while_every_worker_computes) {
  for (const int workers : {1, 2}) {
    runtime rt{{.workers = workers}};
    auto ends = rt.run([] { return unix_stream::pair(); });
    std::atomic<bool> got{false};
    auto reader = rt.spawn([&] {
      std::array<std::byte, 1> one;
      got = ends.second.read_exactly(one);
    });
    std::vector<join_handle<void>> hogs;
    std::atomic<int> started{0};
    for (int i = 0; i < workers; ++i)
      hogs.push_back(rt.spawn([&] {
        ++started;
        while (!got.load(std::memory_order_relaxed)) {
        }
      }));
    while (started != workers) std::this_thread::sleep_for(1ms);
    ends.first.write_all("x");
    for (auto& hog : hogs) hog.join();  // would never return without a look
    reader.join();
  }
}

TEST(net_events, of_one_flood_leave_others_and_timers_their_turn) {
  with_workers([] {
    auto [a, b] = unix_stream::pair();
    std::atomic<bool> enough{false};
    auto flood = spawn([&a, &enough] {
      const std::string much(100'000, 'f');
      while (!enough) a.write_all(much);
      a.shutdown_write();
    });
    auto drain = spawn([&b] {
      std::vector<std::byte> some(100'000);
      while (b.read_some(some) != 0) {
      }
    });
    auto [c, d] = unix_stream::pair();
    auto echo = spawn([&d] {
      std::array<std::byte, 1> one;
      while (d.read_exactly(one)) d.write_all(one);
    });
    for (int i = 0; i < 50; ++i) {
      c.write_all("e");
      std::array<std::byte, 1> one;
      ASSERT_TRUE(c.read_exactly(one));
      this_fiber::sleep_for(100us);
    }
    enough = true;
    c.close();
    flood.join();
    drain.join();
    echo.join();
  });
}

/// Neither a read nor a write of these ever waits, and there is one worker.
TEST(net_events, are_not_needed_for_others_to_run) {
  runtime rt{{.workers = 1, .spare_workers = 0}};
  rt.run([] {
    pipe_reader zeros = pipe_reader::adopt(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
    pipe_writer nothing = pipe_writer::adopt(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    std::atomic<int> stopped{0};
    auto reader = spawn([&] {
      std::array<std::byte, 100> some;
      while (stopped < 2) EXPECT_EQ(zeros.read_some(some), some.size());
    });
    auto writer = spawn([&] {
      while (stopped < 2) nothing.write_all("something");
    });
    for (int i = 0; i < 2; ++i) spawn([&] { ++stopped; }).join();
    reader.join();
    writer.join();
  });
}

TEST(net_events, are_counted) {
  runtime rt{{.workers = 1}};
  rt.run([] {
    auto [a, b] = unix_stream::pair();
    auto reader = spawn([&b] { return read_all(b); });
    while (detail::poller_here().counts().descriptors == 0) this_fiber::yield();  // until the reader is registered
    const ramie::detail::event_counts before = detail::poller_here().counts();
    a.close();
    reader.join();
    EXPECT_GT(detail::poller_here().counts().events, before.events);
    b.close();
    EXPECT_EQ(detail::poller_here().counts().descriptors, before.descriptors - 1);
  });
}

TEST(net_statistics, tell_of_waits_and_bytes) {
  runtime rt{{.workers = 2, .name = "counted"}};
  rt.run([&rt] {
    auto [a, b] = unix_stream::pair();
    auto reader = spawn([&b] { return read_all(b).size(); });
    while (rt.counters().io_waits == 0) this_fiber::yield();
    a.write_all("twelve bytes");
    a.close();
    EXPECT_EQ(reader.join(), 12u);
  });
  const runtime_statistics s = rt.statistics();
  EXPECT_GE(s.counted.io_waits, 1u);
  EXPECT_EQ(s.counted.bytes_read, 12u);
  EXPECT_EQ(s.counted.bytes_written, 12u);
  EXPECT_GE(s.io_polls, 1u);
  EXPECT_GE(s.io_events, 1u);
  EXPECT_EQ(s.io_descriptors, 0u);
  const std::string text = to_prometheus(s);
  EXPECT_NE(text.find("ramie_io_descriptors{runtime=\"counted\"} 0"), std::string::npos) << text;
  EXPECT_NE(text.find("ramie_read_bytes_total{runtime=\"counted\",worker=\"0\"}"), std::string::npos) << text;
}

}  // namespace
}  // namespace ramie::net
