// The life of a fiber that does next to nothing: created, run, ended; and with a wait in between.
#include <lab/harness/session.hpp>
#include <lab/workloads/chain.hpp>
#include <lab/workloads/plain_calls.hpp>
#include <lab/workloads/registry.hpp>

#include <ramie/ramie.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace ramie::lab {
namespace {

run_result by_plain(session& s) { return run_plain_calls(s, s.parameter("count")); }

/// Spawns detached fibers and waits until each has run. Each fiber sets a flag of its own: a counter common to all
/// would cost as much as the fiber does.
class detached_batch {
 public:
  static constexpr std::size_t size_max = 1000;  // fibers spawned before any is waited for, which keeps memory flat

  void run(std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) {
      has_run_[i].store(0, std::memory_order_relaxed);
      ramie::spawn([flag = &has_run_[i]] { flag->store(1, std::memory_order_release); }).detach();
    }
    for (std::size_t i = 0; i < size; ++i) {
      while (has_run_[i].load(std::memory_order_acquire) == 0) ramie::this_fiber::yield();
    }
  }

 private:
  std::array<std::atomic<unsigned char>, size_max> has_run_;
};

/// `count` fibers, one full batch after the other.
template <class Batch>
run_result by_batches(session& s) {
  const std::int64_t count = s.parameter("count");
  std::int64_t done = 0;
  const double seconds = s.time([&] {
    Batch batch;
    while (done < count) {
      const std::int64_t size = std::min<std::int64_t>(count - done, Batch::size_max);
      batch.run(static_cast<std::size_t>(size));
      done += size;
    }
  });
  return {.seconds = seconds, .units = count, .ok = done == count};
}

/// The same with system threads. They take hundreds of times as long, so there are a hundredth as many.
run_result by_threads(session& s) {
  const std::int64_t count = std::max<std::int64_t>(1, s.parameter("count") / 100);
  std::int64_t sum = 0;
  const double seconds = s.time([&] {
    for (std::int64_t i = 0; i < count; ++i) std::thread{[&sum, i] { sum += i; }}.join();
  });
  return {.seconds = seconds, .units = count, .ok = sum == count * (count - 1) / 2};
}

run_result one_by_one(session& s) {
  const std::int64_t count = s.parameter("count");
  std::int64_t sum = 0;
  const double seconds = s.time([&] {
    for (std::int64_t i = 0; i < count; ++i) sum += ramie::spawn([i] { return i; }).join();
  });
  return {.seconds = seconds, .units = count, .ok = sum == count * (count - 1) / 2};
}

run_result in_batches(session& s) {
  constexpr std::int64_t batch_size = 100;
  const std::int64_t count = s.parameter("count");
  std::int64_t sum = 0;
  const double seconds = s.time([&] {
    std::vector<ramie::join_handle<std::int64_t>> handles;
    handles.reserve(batch_size);
    for (std::int64_t first = 0; first < count; first += batch_size) {
      const std::int64_t end = std::min(count, first + batch_size);
      for (std::int64_t i = first; i < end; ++i) handles.push_back(ramie::spawn([i] { return i; }));
      for (auto& handle : handles) sum += handle.join();
      handles.clear();
    }
  });
  return {.seconds = seconds, .units = count, .ok = sum == count * (count - 1) / 2};
}

/// Spawns detached fibers that all wait for one event, sets it when they do, and waits until each has ended.
class parked_batch {
 public:
  static constexpr std::size_t size_max = 100;

  void run(std::size_t size) {
    ramie::event gate;
    for (std::size_t i = 0; i < size; ++i) {
      stage_[i].store(0, std::memory_order_relaxed);
      ramie::spawn([&gate, stage = &stage_[i]] {
        stage->store(1, std::memory_order_release);
        gate.wait();
        stage->store(2, std::memory_order_release);
      }).detach();
    }
    await(size, 1);
    gate.set();
    await(size, 2);
  }

 private:
  void await(std::size_t size, unsigned char stage) {
    for (std::size_t i = 0; i < size; ++i) {
      while (stage_[i].load(std::memory_order_acquire) < stage) ramie::this_fiber::yield();
    }
  }
  std::array<std::atomic<unsigned char>, size_max> stage_;
};

run_result chained(session& s) {
  constexpr std::int64_t links_each_max = 100;
  const std::int64_t count = s.parameter("count");
  const std::int64_t links_each = std::min(count, links_each_max);
  const std::int64_t batches = (count + links_each - 1) / links_each;
  fiber_chain chain{batches, links_each};
  std::int64_t links = 0;
  s.time([&] { links = chain.run(); });
  return {.seconds = chain.seconds(), .units = batches * links_each, .ok = links == batches * links_each};
}

}  // namespace

workload spawn_workload() {
  return {
      .name = "spawn",
      .summary = "the price of starting, running and ending a fiber",
      .unit = "fiber",
      .parameters = {{.name = "count", .help = "fibers", .standard = 1'000'000, .min = 1, .max = 1'000'000'000}},
      .styles =
          {
              {"plain", "a noinline function call in place of each fiber, the yardstick", false, by_plain},
              {"detached", "spawn, run, end; detached, never blocking, up to 1000 alive", true,
               by_batches<detached_batch>},
              {"join", "spawn and join, one after the other", true, one_by_one},
              {"batch_join", "100 spawned, then the 100 joined", true, in_batches},
              {"park", "spawn, park at an event, wake, end; detached, 100 parked at once", true,
               by_batches<parked_batch>},
              {"chain", "spawn, park in a join, wake, end, 100 parked at once; plus one yield of the spawner", true,
               chained},
              {"thread", "std::thread made and joined, one after the other; a hundredth of the count", false,
               by_threads},
          },
      .standard_workers = "1",
  };
}

}  // namespace ramie::lab
