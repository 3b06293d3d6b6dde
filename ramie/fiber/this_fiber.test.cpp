#include <ramie/fiber/this_fiber.hpp>

#include <ramie/fiber/testing.hpp>
#include <ramie/sched/scheduler.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <thread>
#include <vector>

namespace ramie {
namespace {

using namespace fiber_tests;
using clock = std::chrono::steady_clock;

class this_fiber_ : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, this_fiber_, few_and_many());

// Sleep.

TEST_P(this_fiber_, sleeps_at_least_as_long_as_asked) {
  in_runtime([] {
    for (const auto d : {0us, 1us, 100us, 5000us}) {
      const auto before = clock::now();
      this_fiber::sleep_for(d);
      EXPECT_GE(clock::now() - before, d);
    }
    const auto until = clock::now() + 2ms;
    this_fiber::sleep_until(until);
    EXPECT_GE(clock::now(), until);
    const auto wall = std::chrono::system_clock::now() + 2ms;
    this_fiber::sleep_until(wall);
    EXPECT_GE(std::chrono::system_clock::now(), wall);
    this_fiber::sleep_for(std::chrono::duration<double>{0.001});
    // Over already.
    this_fiber::sleep_for(-5s);
    this_fiber::sleep_until(clock::now() - 1h);
    this_fiber::sleep_until(clock::time_point::min());
    this_fiber::sleep_until(std::chrono::system_clock::now() - 1h);
  });
}

TEST_P(this_fiber_, sleeps_across_the_whole_range_of_durations) {
  in_runtime([] {
    this_fiber::sleep_for(std::chrono::nanoseconds::min());
    this_fiber::sleep_for(std::chrono::hours::min());
    this_fiber::sleep_for(std::chrono::duration<double>{-1e300});
    this_fiber::sleep_until(std::chrono::system_clock::time_point::min());
    std::vector<join_handle<void>> handles;
    handles.push_back(spawn([] { this_fiber::sleep_for(std::chrono::hours::max()); }));
    handles.push_back(spawn([] { this_fiber::sleep_for(std::chrono::nanoseconds::max()); }));
    handles.push_back(spawn([] { this_fiber::sleep_for(std::chrono::duration<double>{1e300}); }));
    handles.push_back(spawn([] { this_fiber::sleep_until(clock::time_point::max()); }));
    handles.push_back(spawn([] { this_fiber::sleep_until(std::chrono::system_clock::time_point::max()); }));
    for (int i = 0; i < 100; ++i) this_fiber::yield();
    this_fiber::sleep_for(1ms);
    for (auto& h : handles) {
      EXPECT_EQ(h.join_for(0s), std::nullopt);
      h.request_stop();
      EXPECT_THROW(h.join(), cancelled);
    }
  });
}

/// `n` fibers sleep with deadlines so far apart. Did they wake in order?
bool wake_in_order(int n, std::chrono::microseconds spacing) {
  const auto start = clock::now() + n * spacing;
  std::vector<int> woken;
  std::vector<join_handle<void>> handles;
  for (int i = 0; i < n; ++i) {
    const int place = (i * 37) % n;
    handles.push_back(spawn([&, place] {
      this_fiber::sleep_until(start + place * spacing);
      woken.push_back(place);
    }));
  }
  for (auto& h : handles) h.join();
  EXPECT_EQ(woken.size(), static_cast<std::size_t>(n));
  return std::is_sorted(woken.begin(), woken.end());
}

TEST(this_fiber_order, sleepers_wake_in_the_order_of_their_deadlines) {
  runtime rt{{.workers = 1, .spare_workers = 0}};
  rt.run([] {
    // Late timers on a slow machine are fired by two threads, and close ones may change places. Distant ones do
    // not, unless a thread is held up for as long.
    auto spacing = 20us;
    while (!wake_in_order(50, spacing)) spacing = std::min<std::chrono::microseconds>(4 * spacing, 200ms);
  });
}

TEST_P(this_fiber_, many_sleep_at_once) {
  in_runtime([] {
    std::vector<join_handle<void>> handles;
    for (int i = 0; i < scaled(20'000); ++i)
      handles.push_back(spawn([i] {
        const auto until = clock::now() + std::chrono::microseconds{i % 1000};
        this_fiber::sleep_until(until);
        EXPECT_GE(clock::now(), until);
      }));
    for (auto& h : handles) h.join();
  });
}

TEST_P(this_fiber_, sleep_is_cut_short_by_a_request_to_stop) {
  in_runtime([] {
    std::vector<join_handle<void>> handles;
    for (int i = 0; i < 50; ++i) {
      handles.push_back(spawn([] { this_fiber::sleep_for(1h); }));
      handles.push_back(spawn([] { this_fiber::sleep_until(std::chrono::system_clock::now() + 1h); }));
    }
    for (int i = 0; i < 3; ++i) this_fiber::yield();
    for (auto& h : handles) h.request_stop();
    for (auto& h : handles) EXPECT_THROW(h.join(), cancelled);
  });
}

TEST_P(this_fiber_, timers_against_requests_to_stop) {
  in_runtime([] {
    for (int i = 0; i < scaled(3000); ++i) {
      auto handle = spawn([i] { this_fiber::sleep_for(std::chrono::microseconds{i % 30}); });
      this_fiber::sleep_for(std::chrono::microseconds{i % 17});
      handle.request_stop();
      try {
        handle.join();
      } catch (const cancelled&) {
      }
    }
  });
}

// Stop.

TEST_P(this_fiber_, knows_whether_it_is_to_stop) {
  in_runtime([] {
    EXPECT_FALSE(this_fiber::stop_requested());
    EXPECT_NO_THROW(this_fiber::throw_if_stopped());
    auto handle = spawn([] {
      await([] { return this_fiber::stop_requested(); });
      this_fiber::throw_if_stopped();
      ADD_FAILURE() << "went on";
    });
    handle.request_stop();
    EXPECT_THROW(handle.join(), cancelled);
    EXPECT_FALSE(this_fiber::stop_requested()) << "that was another one";
  });
}

// Plain threads.

TEST(this_fiber_on_a_plain_thread, all_of_it_works) {
  EXPECT_EQ(this_fiber::name(), "");
  EXPECT_FALSE(this_fiber::stop_requested());
  EXPECT_NO_THROW(this_fiber::throw_if_stopped());
  this_fiber::yield();
  const auto before = clock::now();
  this_fiber::sleep_for(1ms);
  EXPECT_GE(clock::now() - before, 1ms);
  this_fiber::sleep_until(clock::now() - 1s);
  this_fiber::sleep_for(-1s);
  const fiber_id mine = this_fiber::get_id();
  EXPECT_EQ(mine, this_fiber::get_id());
  EXPECT_NE(mine, fiber_id{});
  std::thread{[&] { EXPECT_NE(this_fiber::get_id(), mine); }}.join();
  runtime rt{{.workers = 1}};
  EXPECT_NE(rt.run([] { return this_fiber::get_id(); }), mine);
  EXPECT_EQ(mine, this_fiber::get_id());
}

// Fairness, counted in turns, not in time. One worker and no spare, so that all compete for it.

TEST(fairness, those_who_yield_take_turns) {
  runtime rt{{.workers = 1, .spare_workers = 0}};
  rt.run([] {
    constexpr int n = 100;
    constexpr int turns = 1000;
    std::vector<int> count(n, 0);
    int most_apart = 0;
    event go;
    std::vector<join_handle<void>> handles;
    for (std::size_t i = 0; i < n; ++i)
      handles.push_back(spawn([&, i] {
        go.wait();
        for (int k = 0; k < turns; ++k) {
          ++count[i];
          if (i == 0) {
            const auto [least, most] = std::minmax_element(count.begin(), count.end());
            // Those that ended keep their count; before that none falls behind.
            most_apart = std::max(most_apart, *most - *least);
          }
          this_fiber::yield();
        }
      }));
    await([&] { return go.parked() == n; });
    go.set();
    for (auto& h : handles) h.join();
    EXPECT_LE(most_apart, 2);
  });
}

/// Other fibers keep the worker busy by yielding; how many turns until `f`, which the caller starts, runs?
template <class Start>
long turns_until_run(int yielders, Start start) {
  runtime rt{{.workers = 1, .spare_workers = 0}};
  std::atomic<bool> ran{false};
  std::atomic<bool> begin{false};
  std::atomic<long> turns{0};
  std::atomic<int> yielding{0};
  return rt.run([&] {
    std::vector<join_handle<void>> busy;
    for (int i = 0; i < yielders; ++i)
      busy.push_back(spawn([&] {
        ++yielding;
        while (!ran) {
          if (begin) ++turns;
          this_fiber::yield();
        }
      }));
    await([&] { return yielding == yielders; });
    start(rt, begin, ran);
    for (auto& h : busy) h.join();
    return turns.load();
  });
}

// What sched/next_work.hpp promises.
constexpr long tick = detail::scheduler::tick_every;
constexpr long spawned_tick = tick * detail::scheduler::oldest_every_ticks;

TEST(fairness, a_new_fiber_starts_within_a_bounded_number_of_turns) {
  for (const int yielders : {1, 2, 50, 300}) {
    join_handle<void> fresh;
    const long turns = turns_until_run(yielders, [&](runtime&, std::atomic<bool>& begin, std::atomic<bool>& ran) {
      begin = true;
      fresh = spawn([&] { ran = true; });
    });
    fresh.join();
    EXPECT_LE(turns, 2 * spawned_tick) << yielders << " yielders";
  }
}

TEST(fairness, the_kth_of_many_new_fibers_starts_within_k_times_as_many) {
  constexpr int k = 20;
  std::vector<join_handle<void>> fresh;
  const long turns = turns_until_run(20, [&](runtime&, std::atomic<bool>& begin, std::atomic<bool>& ran) {
    begin = true;
    for (int i = 0; i < k; ++i)
      fresh.push_back(spawn([&, last = i == k - 1] {
        if (last) ran = true;
      }));
  });
  for (auto& h : fresh) h.join();
  EXPECT_LE(turns, (k + 1) * spawned_tick);
}

TEST(fairness, a_fiber_from_outside_starts_within_a_bounded_number_of_turns) {
  join_handle<void> fresh;
  const long turns = turns_until_run(50, [&](runtime& rt, std::atomic<bool>& begin, std::atomic<bool>& ran) {
    std::thread{[&] {
      fresh = rt.spawn([&] { ran = true; });
      begin = true;
    }}.join();
  });
  fresh.join();
  EXPECT_LE(turns, 4 * tick);
}

TEST(fairness, a_fiber_woken_from_outside_runs_within_a_bounded_number_of_turns) {
  event wake_up;
  join_handle<void> sleeper;
  const long turns = turns_until_run(50, [&](runtime&, std::atomic<bool>& begin, std::atomic<bool>& ran) {
    sleeper = spawn([&] {
      wake_up.wait();
      ran = true;
    });
    await([&] { return wake_up.parked() == 1; });
    std::thread{[&] {
      wake_up.set();
      begin = true;
    }}.join();
  });
  sleeper.join();
  EXPECT_LE(turns, 4 * tick + 2 * 50);
}

TEST(fairness, a_woken_fiber_runs_after_those_ready_before_it) {
  event wake_up;
  join_handle<void> sleeper;
  const long turns = turns_until_run(50, [&](runtime&, std::atomic<bool>& begin, std::atomic<bool>& ran) {
    sleeper = spawn([&] {
      wake_up.wait();
      ran = true;
    });
    await([&] { return wake_up.parked() == 1; });
    begin = true;
    wake_up.set();
  });
  sleeper.join();
  EXPECT_LE(turns, 3 * 50);
}

// Memory.

#if !RAMIE_ASAN && !RAMIE_TSAN
std::size_t resident_below(char* high, std::size_t size) {
  constexpr std::size_t page = 4096;
  auto* const low = reinterpret_cast<char*>(reinterpret_cast<std::uintptr_t>(high - size) / page * page);
  std::array<unsigned char, 64> pages;
  EXPECT_EQ(::mincore(low, size / page * page, pages.data()), 0);
  return static_cast<std::size_t>(
      std::count_if(pages.begin(), pages.begin() + size / page, [](auto p) { return (p & 1) != 0; }));
}

[[gnu::noinline]] char touch(std::size_t bytes) {
  auto* const deep = static_cast<volatile char*>(__builtin_alloca(bytes));
  for (std::size_t i = 0; i < bytes; i += 512) deep[i] = 1;
  return deep[0];
}

TEST_P(this_fiber_, gives_unused_pages_of_its_stack_back) {
  in_runtime([] {
    char here = 1;
    constexpr std::size_t size = 32 * 4096;
    EXPECT_EQ(touch(size), 1);
    EXPECT_GE(resident_below(&here, size), 30u);
    this_fiber::trim_stack();
    EXPECT_LE(resident_below(&here, size), 3u);  // what was called since
    EXPECT_EQ(here, 1);
    EXPECT_EQ(touch(size), 1);
  });
  this_fiber::trim_stack();  // a plain thread
}
#endif

TEST(fairness, a_timer_fires_though_others_never_stop_yielding) {
  join_handle<void> sleeper;
  turns_until_run(20, [&](runtime&, std::atomic<bool>&, std::atomic<bool>& ran) {
    sleeper = spawn([&] {
      this_fiber::sleep_for(1ms);
      ran = true;
    });
  });
  sleeper.join();
}

TEST(fairness, a_flood_of_new_fibers_does_not_hold_up_a_ready_one) {
  runtime rt{{.workers = 1, .spare_workers = 0}};
  rt.run([] {
    std::atomic<bool> done{false};
    std::atomic<long> spawned{0};
    // Each starts the next before it ends: there is always a newest one.
    struct flood {
      std::atomic<bool>& done;
      std::atomic<long>& spawned;
      void operator()() const {
        ++spawned;
        if (!done) spawn(*this).detach();
      }
    };
    spawn(flood{done, spawned}).detach();
    auto oldest = spawn([&] {
      const long before = spawned;
      for (int i = 0; i < 10; ++i) this_fiber::yield();
      return spawned - before;
    });
    for (int i = 0; i < 10; ++i) spawn(flood{done, spawned}).detach();
    const long others = oldest.join();
    done = true;
    EXPECT_LE(others, 10 * 2 * spawned_tick);
  });
}

}  // namespace
}  // namespace ramie
