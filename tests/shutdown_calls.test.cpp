// Calls while a runtime ends, by any caller: none of them ends the process, and all of them return.
#include <ramie/ramie.hpp>

#include <ramie/fiber/testing.hpp>
#include <ramie/sched/scheduler.hpp>

#include <functional>
#include <optional>
#include <string>
#include <thread>

namespace ramie {
namespace {

using namespace fiber_tests;

struct call {
  const char* name;
  void (*make)();
};

struct quiet : actor<quiet> {
  int on(int n) { return n; }
};

/// Each starts something new, without waiting for anything itself.
const call starts[] = {
    {"spawn", [] { spawn([] {}).detach(); }},
    {"spawn_with_options", [] { spawn(fiber_options{.name = "x", .stack_size = 64 * 1024}, [] {}).detach(); }},
    {"spawn_pinned", [] { spawn(fiber_options{.worker = 0}, [] {}).detach(); }},
    {"spawn_with_a_handle", [] { auto h = spawn([] {}); }},
    {"async", [] { static_cast<void>(async([] { return 1; })); }},
    {"ticker", [] { const ticker t{1h}; }},
    {"spawn_actor", [] { static_cast<void>(spawn_actor<quiet>()); }},
};
/// These complete what they started, which is part of the caller.
const call parts[] = {
    {"scope",
     [] {
       scope s;
       s.spawn([] {});
       s.join();
     }},
    {"scope_after_a_wait",
     [] {
       scope s;
       this_fiber::yield();
       s.spawn([] {});
       s.join();
     }},
    {"scope_without_join",
     [] {
       scope s;
       this_fiber::yield();
       s.spawn([] {});
     }},
    {"fork_join", [] { fork_join([] { this_fiber::yield(); }, [] { this_fiber::yield(); }); }},
    {"parallel_for", [] { parallel_for(0, 100, [](int) { this_fiber::yield(); }); }},
};

class calls : public ::testing::TestWithParam<std::tuple<int, call>> {
 protected:
  [[nodiscard]] static int workers() { return std::get<0>(GetParam()); }
  static void make() { std::get<1>(GetParam()).make(); }
};
class starting : public calls {};
class taking_part : public calls {};
std::string name_of_case(const ::testing::TestParamInfo<std::tuple<int, call>>& i) {
  return std::string{std::get<1>(i.param).name} + "_on_" + std::to_string(std::get<0>(i.param));
}
INSTANTIATE_TEST_SUITE_P(while_it_ends, starting, ::testing::Combine(few_and_many(), ::testing::ValuesIn(starts)),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(while_it_ends, taking_part, ::testing::Combine(few_and_many(), ::testing::ValuesIn(parts)),
                         name_of_case);

TEST_P(starting, ends_a_detached_fiber_by_cancelled) {
  for (int round = 0; round < 10; ++round) {
    std::atomic<int> told{0}, begun{0};
    runtime rt{{.workers = workers()}};
    rt.run([&] {
      for (int i = 0; i < 4; ++i)
        spawn([&] {
          ++begun;
          try {
            // Not without bounds: the end may be long in coming, and what was started may not run before.
            for (int n = 0; n < 100; ++n) {
              make();
              this_fiber::yield();
            }
            await([] { return this_fiber::stop_requested(); });
            for (;;) make();
          } catch (const cancelled&) {
            ++told;
            throw;
          }
        }).detach();
      await([&] { return begun == 4; });
    });
    rt.shutdown();
    EXPECT_EQ(told, 4);
  }
}

TEST_P(starting, is_refused_by_cancelled_only_where_a_wait_would_be) {
  std::atomic<int> refused{0}, shielded{0}, unwinding{0};
  std::atomic<bool> begun{false};
  {
    runtime rt{{.workers = workers()}};
    rt.run([&] {
      spawn([&] {
        begun = true;
        await([] { return this_fiber::why_stopped() == this_fiber::stop_cause::shutdown; });
        detail::scheduler& all = rt.internals();
        await([&] {  // the other workers, too
          for (std::size_t i = 0; i < all.worker_count(); ++i)
            if (!all.at(i).draining.load()) return false;
          return true;
        });
        shield([&] {
          make();
          ++shielded;
        });
        try {
          struct spawns_at_the_end {
            std::atomic<int>& count;
            ~spawns_at_the_end() {
              make();
              ++count;
            }
          } at_the_end{unwinding};
          throw 1;
        } catch (int) {
        }
        try {
          make();
        } catch (const cancelled&) {
          ++refused;
        }
      }).detach();
      await([&] { return begun.load(); });
    });
  }
  EXPECT_EQ(shielded, 1);
  EXPECT_EQ(unwinding, 1);
  EXPECT_EQ(refused, 1);
}

TEST_P(taking_part, goes_through) {
  std::atomic<int> done{0}, begun{0};
  {
    runtime rt{{.workers = workers()}};
    rt.run([&] {
      for (int i = 0; i < 4; ++i)
        spawn([&] {
          ++begun;
          await([] { return this_fiber::stop_requested(); });
          make();
          ++done;
        }).detach();
      await([&] { return begun == 4; });
    });
  }
  EXPECT_EQ(done, 4);
}

// ---- destructors that the library calls ---------------------------------------------------------------------------

template <class T>
struct waits_at_the_end {
  bool armed = false;
  waits_at_the_end() = default;
  waits_at_the_end(waits_at_the_end&& other) noexcept : armed{std::exchange(other.armed, false)} {}
  ~waits_at_the_end() {
    if (!armed) return;
    channel<int> never;
    int late = 0;
    select(on_recv(never, [](std::optional<int>) {}), on_timeout(1ms, [&] { ++late; }));
    this_fiber::sleep_for(1ms);
    spawn([] {}).detach();
    EXPECT_THROW(with_timeout(1ms, [&] { never.recv(); }), timeout_error);
    T::done += late;
  }
};
struct of_locals {
  static inline std::atomic<int> done{0};
};
struct of_closures {
  static inline std::atomic<int> done{0};
};
fiber_local<waits_at_the_end<of_locals>> waiting_local;

class destructors : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, destructors, few_and_many());

TEST_P(destructors, of_fiber_locals_may_wait_while_the_runtime_ends) {
  of_locals::done = 0;
  channel<int> never;
  in_runtime([&] {
    for (int i = 0; i < 5; ++i)
      spawn([&] {
        waiting_local->armed = true;
        never.recv();
      }).detach();
    this_fiber::sleep_for(1ms);
  });
  EXPECT_LE(of_locals::done, 5);
  of_locals::done = 0;
  in_runtime([&] {
    auto h = spawn([&] {
      waiting_local->armed = true;
      never.recv();
    });
    this_fiber::sleep_for(1ms);
    h.request_stop();
    EXPECT_THROW(h.join(), child_cancelled);
    EXPECT_EQ(of_locals::done, 1) << "before the join sees the end";
  });
}

TEST_P(destructors, of_closures_may_wait_while_the_runtime_ends) {
  of_closures::done = 0;
  {
    runtime rt{options()};
    rt.run([&] {
      // The first are stopped in their sleep; some of the last have not begun by then.
      for (int i = 0; i < 100; ++i) {
        waits_at_the_end<of_closures> armed;
        armed.armed = true;
        spawn([guard = std::move(armed)] { this_fiber::sleep_for(1h); }).detach();
        if (i == 49) this_fiber::sleep_for(1ms);
      }
    });
  }
  EXPECT_EQ(of_closures::done, 100);
}

// ---- plain threads that end ---------------------------------------------------------------------------------------

struct ends_late {
  channel<int>* from = nullptr;
  std::atomic<int>* got = nullptr;
  ~ends_late() {
    if (from != nullptr) *got += from->recv().value_or(0);
  }
};

/// Each thread waits once while it runs, or not at all, and again after its descriptor was given back.
TEST(ending_threads, wait_in_destructors_of_thread_locals_each_for_itself) {
  for (int round = 0; round < 20; ++round) {
    constexpr int n = 6;
    channel<int> first, last;
    std::atomic<int> got{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < n; ++i)
      threads.emplace_back([&, i] {
        static thread_local ends_late at_the_end;
        at_the_end.from = &last;
        at_the_end.got = &got;
        if (i % 2 == 0) first.recv();
      });
    for (int i = 0; i < n / 2; ++i) static_cast<void>(first.send(1));
    for (int i = 0; i < n; ++i) static_cast<void>(last.send(1));
    for (auto& t : threads) t.join();
    EXPECT_EQ(got, n);
  }
}

fiber_local<counted> counted_local{[] { return counted{3}; }};
struct uses_a_local {
  bool armed = false;
  ~uses_a_local() { EXPECT_EQ(armed ? (*counted_local).value : 3, 3); }
};

TEST(ending_threads, use_fiber_locals_in_destructors_of_thread_locals) {
  counted::reset();
  for (const bool before : {false, true})
    std::thread{[before] {
      static thread_local uses_a_local at_the_end;
      at_the_end.armed = true;
      EXPECT_EQ(before ? (*counted_local).value : 3, 3);
    }}.join();
  EXPECT_EQ(counted::alive, 0);
}

}  // namespace
}  // namespace ramie
