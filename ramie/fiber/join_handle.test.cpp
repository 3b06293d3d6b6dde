#include <ramie/fiber/join_handle.hpp>

#include <ramie/fiber/fork_join.hpp>
#include <ramie/fiber/testing.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <unordered_set>

namespace ramie {
namespace {

using namespace fiber_tests;

static_assert(!std::is_copy_constructible_v<join_handle<int>> && !std::is_copy_assignable_v<join_handle<int>>);
static_assert(std::is_nothrow_move_constructible_v<join_handle<int>> &&
              std::is_nothrow_default_constructible_v<join_handle<void>>);

class joining : public with_workers {
 protected:
  void SetUp() override { counted::reset(); }
  void TearDown() override { EXPECT_EQ(counted::alive, 0); }
};
INSTANTIATE_TEST_SUITE_P(workers, joining, few_and_many());

TEST_P(joining, a_handle_is_joinable_until_joined) {
  in_runtime([] {
    auto handle = spawn([] { return 1; });
    EXPECT_TRUE(handle.joinable());
    EXPECT_EQ(handle.join(), 1);
    EXPECT_FALSE(handle.joinable());
    EXPECT_EQ(handle.get_id(), fiber_id{});
  });
}

TEST_P(joining, moves_with_the_handle) {
  in_runtime([] {
    auto a = spawn([] { return 1; });
    const fiber_id id = a.get_id();
    auto b = std::move(a);
    EXPECT_FALSE(a.joinable());
    EXPECT_EQ(b.get_id(), id);
    join_handle<int> c;
    c = std::move(b);
    EXPECT_FALSE(b.joinable());
    auto& alias = c;
    c = std::move(alias);
    ASSERT_TRUE(c.joinable()) << "moved to itself";
    EXPECT_EQ(c.join(), 1);
  });
}

TEST_P(joining, assigning_over_a_handle_ends_its_fiber) {
  in_runtime([] {
    std::atomic<bool> ended{false};
    auto a = spawn([&ended] {
      const std::unique_ptr<std::atomic<bool>, void (*)(std::atomic<bool>*)> at_end{
          &ended, [](std::atomic<bool>* e) { *e = true; }};
      event{}.wait();
    });
    a = spawn([] {});
    EXPECT_TRUE(ended);
    a.join();
  });
}

TEST_P(joining, the_destructor_asks_to_stop_and_waits) {
  in_runtime([] {
    std::atomic<int> ended{0};
    struct at_exit {
      std::atomic<int>& n;
      ~at_exit() { ++n; }
    };
    event started;
    {
      auto sleeper = spawn([&] {
        const at_exit e{ended};
        started.set();
        this_fiber::sleep_for(1h);
      });
      auto unstarted = spawn([&] {
        const at_exit e{ended};
        this_fiber::sleep_for(1h);
      });
      auto looper = spawn([&] {
        const at_exit e{ended};
        while (!this_fiber::stop_requested()) this_fiber::yield();
      });
      auto finished = spawn([&] { const at_exit e{ended}; });
      started.wait();
    }
    EXPECT_EQ(ended, 4);
  });
}

TEST_P(joining, the_destructor_works_on_a_plain_thread_too) {
  runtime rt{options()};
  std::atomic<bool> ended{false};
  {
    auto handle = rt.spawn([&] {
      try {
        this_fiber::sleep_for(1h);
      } catch (const cancelled&) {
        ended = true;
        throw;
      }
    });
  }
  EXPECT_TRUE(ended);
}

TEST_P(joining, the_destructor_drops_the_result) {
  in_runtime([] {
    {
      auto h = spawn([] { return counted{1}; });
    }
    EXPECT_EQ(counted::alive, 0);
    {
      auto h = spawn([] { return counted{1}; });
      await([] { return counted::alive > 0; });
    }
    EXPECT_EQ(counted::alive, 0);
  });
}

// With a time limit.

TEST_P(joining, join_for_gives_up_and_the_handle_stays) {
  in_runtime([] {
    event go;
    auto handle = spawn([&] {
      go.wait();
      return 5;
    });
    EXPECT_EQ(handle.join_for(1ms), std::nullopt);
    EXPECT_EQ(handle.join_for(0s), std::nullopt);
    EXPECT_EQ(handle.join_for(-1h), std::nullopt);
    EXPECT_EQ(handle.join_for(std::chrono::duration<double, std::milli>{0.1}), std::nullopt);
    EXPECT_EQ(handle.join_until(std::chrono::steady_clock::now() - 1s), std::nullopt);
    EXPECT_TRUE(handle.joinable());
    go.set();
    EXPECT_EQ(handle.join_for(24h), 5);
    EXPECT_FALSE(handle.joinable());
  });
}

TEST_P(joining, join_for_on_a_plain_thread) {
  runtime rt{options()};
  event go;
  auto handle = rt.spawn([&] { go.wait(); });
  EXPECT_EQ(handle.join_for(1ms), std::nullopt);
  EXPECT_EQ(handle.join_for(-1ms), std::nullopt);
  go.set();
  EXPECT_EQ(handle.join_for(24h), std::monostate{});
}

TEST_P(joining, join_until_a_point_of_any_clock) {
  in_runtime([] {
    using clock = std::chrono::system_clock;
    event go_on;
    auto handle = spawn([&] {
      go_on.wait();
      return 7;
    });
    const auto early = clock::now() + 2ms;
    EXPECT_EQ(handle.join_until(early), std::nullopt);
    EXPECT_GE(clock::now(), early);
    EXPECT_EQ(handle.join_until(clock::now() - 1h), std::nullopt);
    go_on.set();
    EXPECT_EQ(handle.join_until(clock::time_point::max()), 7);
  });
}

TEST_P(joining, join_until_the_end_of_time) {
  runtime rt{options()};
  const auto never = std::chrono::steady_clock::time_point::max();
  EXPECT_EQ(rt.spawn([] {
                this_fiber::sleep_for(1ms);
                return 2;
              }).join_until(never),
            2);
  rt.run([=] {
    EXPECT_EQ(spawn([] {
                this_fiber::sleep_for(1ms);
                return 2;
              }).join_until(never),
              2);
  });
}

TEST_P(joining, join_for_longer_than_the_clock_can_tell) {
  runtime rt{options()};
  const auto nap = [] {
    this_fiber::sleep_for(1ms);
    return 2;
  };
  EXPECT_EQ(rt.spawn(nap).join_for(std::chrono::hours::max()), 2);
  EXPECT_EQ(rt.spawn(nap).join_for(std::chrono::nanoseconds::max()), 2);
  rt.run([&] {
    EXPECT_EQ(spawn(nap).join_for(std::chrono::hours::max()), 2);
    EXPECT_EQ(spawn(nap).join_for(std::chrono::nanoseconds::max()), 2);
  });
}

TEST_P(joining, join_for_moves_results_and_rethrows) {
  in_runtime([] {
    EXPECT_EQ(**spawn([] { return std::make_unique<int>(3); }).join_for(24h), 3);
    EXPECT_EQ(spawn([] {}).join_for(24h), std::monostate{});
    const std::optional<std::optional<int>> nested =
        spawn([]() -> std::optional<int> { return std::nullopt; }).join_for(24h);
    ASSERT_TRUE(nested.has_value());
    EXPECT_FALSE(nested->has_value());
    auto failing = spawn([]() -> int { throw std::runtime_error{"x"}; });
    EXPECT_THROW(static_cast<void>(failing.join_for(24h)), std::runtime_error);
    EXPECT_FALSE(failing.joinable());
  });
}

TEST_P(joining, a_time_limit_against_the_end) {
  in_runtime([] {
    int in_time = 0;
    for (int i = 0; i < scaled(3000); ++i) {
      auto handle = spawn([i] {
        this_fiber::sleep_for(std::chrono::microseconds{i % 50});
        return i;
      });
      std::optional<int> result = handle.join_for(std::chrono::microseconds{(i * 7) % 50});
      if (result) ++in_time;
      else result = handle.join();
      ASSERT_EQ(result, i);
    }
    EXPECT_GE(in_time, 0);
  });
}

// Detached.

TEST_P(joining, a_detached_fiber_goes_on) {
  runtime rt{options()};
  event go;
  event done;
  rt.run([&] {
    auto handle = spawn([&, c = counted{1}] {
      go.wait();
      done.set();
    });
    handle.detach();
    EXPECT_FALSE(handle.joinable());
  });
  go.set();
  done.wait();
  await([] { return counted::alive == 0; });
}

TEST_P(joining, detaching_what_has_ended_frees_it) {
  in_runtime([] {
    for (int i = 0; i < 100; ++i) {
      event done;
      auto handle = spawn([&] {
        done.set();
        return counted{1};
      });
      if (i % 2 == 0) done.wait();
      if (i % 4 == 0) this_fiber::yield();
      handle.detach();
      done.wait();
    }
    await([] { return counted::alive == 0; });
  });
}

TEST_P(joining, detaching_against_the_end) {
  runtime rt{options()};
  std::atomic<int> ran{0};
  const int n = scaled(20'000);
  for (int i = 0; i < n; ++i)
    rt.spawn([&] {
        ++ran;
        return counted{1};
      }).detach();
  await([&] { return ran == n && counted::alive == 0; });
}

// Asked to stop.

TEST_P(joining, request_stop_wakes_a_sleeper) {
  in_runtime([] {
    event started;
    auto handle = spawn([&] {
      started.set();
      this_fiber::sleep_for(1h);
    });
    started.wait();
    handle.request_stop();
    handle.request_stop();
    EXPECT_TRUE(handle.joinable());
    EXPECT_THROW(handle.join(), cancelled);
  });
}

TEST_P(joining, request_stop_before_the_start_is_met_at_the_first_wait) {
  runtime rt{options()};
  for (int i = 0; i < scaled(1000); ++i) {
    bool began = false;
    auto handle = rt.spawn([&] {
      began = true;
      this_fiber::yield();  // no point of cancellation
      this_fiber::sleep_for(1h);
      ADD_FAILURE() << "slept";
    });
    handle.request_stop();
    EXPECT_THROW(handle.join(), cancelled);
    EXPECT_TRUE(began) << "a fiber that was asked to stop still starts";
  }
}

TEST_P(joining, request_stop_is_met_at_every_wait) {
  in_runtime([] {
    auto handle = spawn([] {
      int met = 0;
      for (int i = 0; i < 3; ++i) {
        try {
          this_fiber::sleep_for(1h);
        } catch (const cancelled&) {
          ++met;
        }
        EXPECT_THROW(this_fiber::throw_if_stopped(), cancelled);
        EXPECT_THROW(spawn([] { this_fiber::sleep_for(1h); }).join_until(std::chrono::steady_clock::time_point::max()),
                     cancelled);
      }
      return met;
    });
    handle.request_stop();
    EXPECT_EQ(handle.join(), 3) << "a fiber may end well though it was asked to stop";
  });
}

TEST_P(joining, request_stop_against_parking_and_ending) {
  runtime rt{options()};
  for (int i = 0; i < scaled(5000); ++i) {
    std::atomic<int> begun{0};
    auto handle = rt.spawn([&begun, i] {
      begun = 1;
      for (int k = 0; k < i % 5; ++k) this_fiber::yield();
      if (i % 3 != 0) event{}.wait();
    });
    if (i % 2 == 0) await([&] { return begun == 1; });
    handle.request_stop();
    if (i % 3 != 0) EXPECT_THROW(handle.join(), cancelled);
    else EXPECT_NO_THROW(handle.join());
  }
}

// A fork's functions share the identity of the fiber, so they are asked to stop as well, wherever they wait.
TEST_P(joining, request_stop_reaches_what_a_fork_has_running_elsewhere) {
  runtime rt{options()};
  event in_right;
  auto handle = rt.spawn([&] {
    fork_join([&] { in_right.wait(); },  // parks, so the other can run elsewhere
              [&] {
                in_right.set();
                this_fiber::sleep_for(1h);
              });
  });
  in_right.wait();
  // Let the left side end, so that only the right one is there to be woken.
  for (int i = 0; i < 100; ++i) std::this_thread::yield();
  handle.request_stop();
  EXPECT_THROW(handle.join(), cancelled);
}

TEST_P(joining, a_joiner_that_is_cancelled_leaves_the_handle_joinable) {
  in_runtime([] {
    event go;
    auto inner = spawn([&] {
      go.wait();
      return 3;
    });
    event waiting;
    auto joiner = spawn([&] {
      waiting.set();
      static_cast<void>(inner.join());
    });
    waiting.wait();
    joiner.request_stop();
    EXPECT_THROW(joiner.join(), cancelled);
    auto timed = spawn([&] { return inner.join_for(1h).has_value(); });
    timed.request_stop();
    EXPECT_THROW(timed.join(), cancelled);
    EXPECT_TRUE(inner.joinable());
    go.set();
    EXPECT_EQ(inner.join(), 3);
  });
}

TEST_P(joining, cancelling_the_joiner_against_the_end) {
  in_runtime([] {
    for (int i = 0; i < scaled(3000); ++i) {
      event go;
      auto inner = spawn([&, i] {
        go.wait();
        return i;
      });
      int got = -1;
      auto joiner = spawn([&] {
        try {
          got = inner.join();
        } catch (const cancelled&) {
          EXPECT_TRUE(inner.joinable());
        }
      });
      if (i % 2 == 0) this_fiber::yield();
      auto setter = spawn([&] { go.set(); });
      joiner.request_stop();
      joiner.join();
      setter.join();
      ASSERT_EQ(got == -1 ? inner.join() : got, i);
    }
  });
}

// The joiners.

TEST_P(joining, handles_may_be_joined_by_anybody) {
  runtime rt{options()};
  runtime other{options()};
  auto from_thread = rt.spawn([] {
    this_fiber::yield();
    return 1;
  });
  EXPECT_EQ(other.run([&] { return from_thread.join(); }), 1);
  auto handle = rt.run([] {
    return spawn([] {
      this_fiber::yield();
      return 2;
    });
  });
  int got = 0;
  std::thread{[&] { got = handle.join(); }}.join();
  EXPECT_EQ(got, 2);
  rt.run([] {
    auto first = spawn([] { return 3; });
    EXPECT_EQ(spawn([h = std::move(first)]() mutable { return h.join(); }).join(), 3);
  });
}

TEST_P(joining, a_handle_may_outlive_its_runtime) {
  join_handle<std::string> result;
  join_handle<void> failure;
  join_handle<counted> dropped;
  {
    runtime rt{options()};
    std::atomic<int> begun{0};  // a fiber that has started and does not wait runs to its end
    result = rt.spawn([&] {
      ++begun;
      return std::string(100, 'r');
    });
    failure = rt.spawn([&] {
      ++begun;
      throw std::runtime_error{"late"};
    });
    dropped = rt.spawn([&] {
      ++begun;
      return counted{1};
    });
    await([&] { return begun == 3; });
  }
  EXPECT_EQ(result.join(), std::string(100, 'r'));
  EXPECT_TRUE(failure.joinable());
  EXPECT_THROW(failure.join(), std::runtime_error);
  EXPECT_EQ(counted::alive, 1);
  dropped = {};
}

// Identities.

TEST_P(joining, ids_tell_fibers_apart) {
  in_runtime([] {
    event go;
    std::vector<join_handle<fiber_id>> handles;
    std::set<fiber_id> ordered;
    std::unordered_set<fiber_id> hashed;
    for (int i = 0; i < 50; ++i)
      handles.push_back(spawn([&] {
        go.wait();
        return this_fiber::get_id();
      }));
    for (auto& h : handles) {
      ordered.insert(h.get_id());
      hashed.insert(h.get_id());
    }
    ordered.insert(this_fiber::get_id());
    EXPECT_EQ(ordered.size(), 51u);
    EXPECT_EQ(hashed.size(), 50u);
    EXPECT_EQ(ordered.count(fiber_id{}), 0u);
    go.set();
    for (auto& h : handles) {
      const fiber_id id = h.get_id();
      std::ostringstream a, b;
      a << id;
      EXPECT_FALSE(a.str().empty());
      EXPECT_EQ(h.join(), id);
      b << id;
      EXPECT_EQ(a.str(), b.str());
    }
  });
}

}  // namespace
}  // namespace ramie
