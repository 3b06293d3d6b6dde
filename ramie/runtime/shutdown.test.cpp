#include <ramie/fiber/blocking.hpp>
#include <ramie/fiber/fork_join.hpp>
#include <ramie/fiber/parallel.hpp>
#include <ramie/fiber/scope.hpp>
#include <ramie/fiber/testing.hpp>
#include <ramie/sched/scheduler.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace ramie {
namespace {

using namespace fiber_tests;

class shutting_down : public with_workers {
 protected:
  void SetUp() override { counted::reset(); }
  void TearDown() override { EXPECT_EQ(counted::alive, 0); }
};
INSTANTIATE_TEST_SUITE_P(workers, shutting_down, few_and_many());

TEST_P(shutting_down, an_idle_runtime) {
  runtime rt{options()};
  rt.shutdown();
  rt.shutdown();
}

TEST_P(shutting_down, wakes_sleepers_and_waiters) {
  runtime rt{options()};
  std::atomic<int> told{0};
  std::atomic<int> begun{0};
  const auto count = [&](auto wait) {
    return [&, wait, c = counted{1}] {
      ++begun;
      try {
        wait();
        ADD_FAILURE() << "went on";
      } catch (const cancelled&) {
        ++told;
        throw;
      }
    };
  };
  std::vector<join_handle<void>> handles;
  event never;
  constexpr int n = 20;
  for (int i = 0; i < n; ++i) {
    handles.push_back(rt.spawn(count([] { this_fiber::sleep_for(1h); })));
    handles.push_back(rt.spawn(count([&] { never.wait(); })));
    handles.push_back(rt.spawn(count([&] { spawn([] { event{}.wait(); }).join(); })));
    handles.push_back(rt.spawn(count([&] { static_cast<void>(spawn([] { event{}.wait(); }).join_for(1h)); })));
    handles.push_back(
        rt.spawn(count([&] { fork_join([] { this_fiber::sleep_for(1h); }, [] { this_fiber::sleep_for(1h); }); })));
    handles.push_back(rt.spawn(count([&] { parallel_for(0, 10, [](int) { this_fiber::sleep_for(1h); }); })));
    handles.push_back(rt.spawn(count([&] {
      scope s;
      for (int k = 0; k < 5; ++k) s.spawn([] { this_fiber::sleep_for(1h); });
      s.join();
    })));
  }
  await([&] { return begun == 7 * n; });
  rt.shutdown();
  EXPECT_EQ(told, 7 * n);
  for (auto& h : handles) EXPECT_THROW(h.join(), cancelled);
}

TEST_P(shutting_down, ends_loops_that_ask_whether_to_stop) {
  runtime rt{options()};
  std::atomic<int> begun{0};
  std::vector<join_handle<void>> handles;
  for (int i = 0; i < 50; ++i) {
    handles.push_back(rt.spawn([&] {
      ++begun;
      while (!this_fiber::stop_requested()) this_fiber::yield();
    }));
    handles.push_back(rt.spawn([&] {
      ++begun;
      for (;;) {
        this_fiber::throw_if_stopped();
        this_fiber::sleep_for(1us);
      }
    }));
  }
  await([&] { return begun == 100; });
  rt.shutdown();
  for (std::size_t i = 0; i < handles.size(); ++i) {
    if (i % 2 == 0) EXPECT_NO_THROW(handles[i].join());
    else EXPECT_THROW(handles[i].join(), cancelled);
  }
}

TEST_P(shutting_down, fibers_not_yet_started_do_not_start) {
  runtime_options o = options();
  o.spare_workers = 0;
  runtime rt{o};
  std::atomic<int> held{0};
  std::atomic<bool> let_go{false};
  std::vector<join_handle<void>> holders;
  for (int i = 0; i < GetParam(); ++i)
    holders.push_back(rt.spawn([&] {
      ++held;
      while (!let_go) std::this_thread::yield();
    }));
  await([&] { return held == GetParam(); });
  std::vector<join_handle<int>> waiting;
  for (int i = 0; i < 100; ++i)
    waiting.push_back(rt.spawn([c = counted{1}] { return ADD_FAILURE() << "was started", 1; }));
  for (int i = 0; i < 100; ++i) rt.spawn([c = counted{1}] { ADD_FAILURE() << "was started"; }).detach();
  event stopping;
  std::thread stopper{[&] {
    stopping.set();
    rt.shutdown();
  }};
  stopping.wait();
  // From then on nothing is accepted.
  for (bool accepts = true; accepts;) {
    try {
      rt.spawn([c = counted{1}] {}).detach();
      std::this_thread::sleep_for(100us);  // none of them runs
    } catch (const usage_error&) {
      accepts = false;
    }
  }
  // And no worker starts what was accepted before.
  await([&] {
    for (int i = 0; i < GetParam(); ++i)
      if (!rt.internals().at(static_cast<std::size_t>(i)).draining.load()) return false;
    return true;
  });
  let_go = true;
  stopper.join();
  for (auto& h : waiting) EXPECT_THROW(h.join(), cancelled);
  for (auto& h : holders) EXPECT_NO_THROW(h.join());
}

// A scope counts the children that were spawned into it as fibers. Those that never start must be uncounted as well.
TEST_P(shutting_down, a_scope_whose_children_do_not_start_any_more) {
  runtime_options o = options();
  o.spare_workers = 0;
  runtime rt{o};
  std::atomic<int> ready{0};
  std::atomic<bool> let_go{false};
  std::vector<join_handle<void>> handles;
  for (int i = 0; i < GetParam(); ++i)
    handles.push_back(rt.spawn([&] {
      scope s;
      fork_join([&] { s.spawn([c = counted{1}] {}); }, [] {});
      ++ready;
      while (!let_go) std::this_thread::yield();  // so that no worker is free to start it
      s.join();
    }));
  await([&] { return ready == GetParam(); });
  std::thread stopper{[&] { rt.shutdown(); }};
  for (bool accepts = true; accepts;) {
    try {
      rt.spawn([] {}).detach();
      std::this_thread::sleep_for(100us);  // none of them runs
    } catch (const usage_error&) {
      accepts = false;
    }
  }
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  let_go = true;
  stopper.join();
  for (auto& h : handles) {
    try {
      h.join();
    } catch (const cancelled&) {
    }
  }
}

TEST_P(shutting_down, waits_for_a_fiber_that_neither_suspends_nor_ends) {
  runtime rt{options()};
  std::atomic<bool> began{false}, over{false};
  bool ended = false;
  auto handle = rt.spawn([&] {
    began = true;
    while (!over) std::this_thread::yield();
    ended = true;
  });
  await([&] { return began.load(); });
  std::thread stopper{[&] { rt.shutdown(); }};
  for (int i = 0; i < 100; ++i) std::this_thread::yield();
  over = true;
  stopper.join();
  EXPECT_TRUE(ended);
  handle.join();
}

TEST_P(shutting_down, waits_for_blocking_calls) {
  runtime rt{options()};
  event inside, go;
  auto handle = rt.spawn([&] {
    return blocking([&] {
      inside.set();
      go.wait();
      return 3;
    });
  });
  inside.wait();
  std::thread stopper{[&] { rt.shutdown(); }};
  for (int i = 0; i < 100; ++i) std::this_thread::yield();
  go.set();
  stopper.join();
  EXPECT_EQ(handle.join(), 3);
}

TEST_P(shutting_down, destructors_that_wait_get_their_time) {
  runtime rt{options()};
  std::atomic<int> cleaned{0};
  struct waits_at_exit {
    std::atomic<int>& n;
    ~waits_at_exit() {
      this_fiber::sleep_for(1ms);
      this_fiber::yield();
      ++n;
    }
  };
  std::atomic<int> begun{0};
  for (int i = 0; i < 20; ++i)
    rt.spawn([&] {
        const waits_at_exit w{cleaned};
        ++begun;
        this_fiber::sleep_for(1h);
      }).detach();
  await([&] { return begun == 20; });
  rt.shutdown();
  EXPECT_EQ(cleaned, 20);
}

TEST_P(shutting_down, a_handler_that_waits_again_is_cancelled_again) {
  runtime rt{options()};
  int met = 0;
  event began;
  auto handle = rt.spawn([&] {
    began.set();
    for (int i = 0; i < 5; ++i) {
      try {
        this_fiber::sleep_for(1h);
      } catch (const cancelled&) {
        ++met;
      }
    }
    return 1;
  });
  began.wait();
  rt.shutdown();
  EXPECT_EQ(met, 5);
  EXPECT_EQ(handle.join(), 1);
}

TEST_P(shutting_down, while_fibers_spawn_fork_park_and_end) {
  for (int round = 0; round < (RAMIE_TSAN != 0 ? 5 : 30); ++round) {
    runtime rt{options()};
    struct storm {
      static void go(int depth) {
        const counted c{1};
        std::vector<join_handle<void>> children;
        for (int i = 0; i < 3 && depth > 0; ++i) children.push_back(spawn(go, depth - 1));
        fork_join([] { this_fiber::yield(); }, [=] { this_fiber::sleep_for(std::chrono::microseconds{depth}); });
        scope s;
        for (int i = 0; i < 3; ++i) s.spawn([] { this_fiber::yield(); });
        s.join();
        for (auto& h : children) h.join();
      }
    };
    std::vector<join_handle<void>> roots;
    for (int i = 0; i < 4; ++i)
      roots.push_back(rt.spawn([] {
        for (;;) storm::go(4);
      }));
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds{round * 100};
    await([=] { return std::chrono::steady_clock::now() >= until; });
    rt.shutdown();
    for (auto& h : roots) EXPECT_ANY_THROW(h.join()) << "cancelled, or spawn refused";
    EXPECT_EQ(counted::alive, 0);
  }
}

TEST_P(shutting_down, while_threads_spawn) {
  for (int round = 0; round < (RAMIE_TSAN != 0 ? 5 : 50); ++round) {
    auto rt = std::make_unique<runtime>(options());
    std::atomic<int> spawning{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] {
        ++spawning;
        try {
          for (;;) {
            rt->spawn([c = counted{1}] { this_fiber::yield(); }).detach();
            rt->run([c = counted{1}] {});
          }
        } catch (const usage_error&) {
        } catch (const cancelled&) {  // a fiber that was not started yet
        }
      });
    await([&] { return spawning == 4; });
    rt->shutdown();
    for (auto& t : threads) t.join();
    rt.reset();
    EXPECT_EQ(counted::alive, 0);
  }
}

TEST_P(shutting_down, from_several_threads) {
  runtime rt{options()};
  event began;
  rt.spawn([&] {
      began.set();
      this_fiber::sleep_for(1h);
    }).detach();
  began.wait();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { rt.shutdown(); });
  for (auto& t : threads) t.join();
  EXPECT_THROW(static_cast<void>(rt.spawn([] {})), usage_error);
}

TEST_P(shutting_down, from_a_fiber_of_another_runtime) {
  runtime outer{options()};
  outer.run([] {
    runtime inner{options()};
    event began;
    auto handle = inner.spawn([&] {
      began.set();
      this_fiber::sleep_for(1h);
    });
    began.wait();
    inner.shutdown();
    EXPECT_THROW(handle.join(), cancelled);
  });
}

TEST_P(shutting_down, leaves_other_runtimes_alone) {
  runtime stays{options()};
  event go;
  std::atomic<int> begun{0};
  std::vector<join_handle<int>> handles;
  for (int i = 0; i < 20; ++i)
    handles.push_back(stays.spawn([&, i] {
      ++begun;
      go.wait();
      this_fiber::sleep_for(1us);
      return i;
    }));
  await([&] { return begun == 20; });
  for (int i = 0; i < 3; ++i) {
    runtime ends{options()};
    for (int k = 0; k < 10; ++k) ends.spawn([] { this_fiber::sleep_for(1h); }).detach();
  }
  go.set();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(handles[static_cast<std::size_t>(i)].join(), i);
}

// A fiber of one runtime that waits for a fiber of another, which ends.
TEST_P(shutting_down, tells_joiners_elsewhere) {
  runtime waits{options()};
  auto ends = std::make_unique<runtime>(options());
  event began;
  auto joiner = waits.spawn([&] {
    return ends->run([&] {
      began.set();
      this_fiber::sleep_for(1h);
      return 1;
    });
  });
  began.wait();
  ends->shutdown();
  EXPECT_THROW(static_cast<void>(joiner.join()), cancelled);
}

}  // namespace
}  // namespace ramie
