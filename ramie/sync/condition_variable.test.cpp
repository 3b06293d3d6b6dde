// No notification is lost, whatever the waiter and the lock; and the lock is held again however a wait ends.
#include <ramie/sync/condition_variable.hpp>

#include <ramie/fiber/cancellation.hpp>
#include <ramie/sync/mutex.hpp>
#include <ramie/sync/recursive_mutex.hpp>
#include <ramie/sync/semaphore.hpp>
#include <ramie/sync/shared_mutex.hpp>
#include <ramie/sync/testing.hpp>

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <shared_mutex>
#include <stop_token>

namespace ramie {
namespace {

using namespace sync_tests;

class condition : public everywhere {};
INSTANTIATE_TEST_SUITE_P(with, condition, settings(), ::testing::PrintToStringParamName());

TEST_P(condition, lets_one_or_all_go_on) {
  in_runtime([] {
    mutex m;
    condition_variable changed;
    int waiting = 0;
    int permits = 0;
    int gone = 0;
    const auto wait = [&] {
      std::unique_lock lock{m};
      ++waiting;
      changed.wait(lock, [&] { return permits > 0; });
      --permits;
      ++gone;
    };
    std::vector<join_handle<void>> handles;
    for (int i = 0; i < 5; ++i) handles.push_back(spawn(wait));
    std::thread other{wait};
    const auto is = [&](int& what, int value) {
      std::lock_guard guard{m};
      return what == value;
    };
    await([&] { return is(waiting, 6); });
    {
      std::lock_guard guard{m};
      ++permits;
      changed.notify_one();
    }
    await([&] { return is(gone, 1); });
    {
      std::lock_guard guard{m};
      permits += 5;
    }
    changed.notify_all();
    for (auto& h : handles) h.join();
    other.join();
    EXPECT_EQ(gone, 6);
  });
}

/// A bounded buffer, the classic.
template <class Mutex>
class buffer {
 public:
  void put(int value) {
    std::unique_lock lock{m_};
    not_full_.wait(lock, [&] { return values_.size() < 3; });
    values_.push_back(value);
    not_empty_.notify_one();
  }
  int take() {
    std::unique_lock lock{m_};
    not_empty_.wait(lock, [&] { return !values_.empty(); });
    const int value = values_.front();
    values_.pop_front();
    lock.unlock();
    not_full_.notify_one();
    return value;
  }

 private:
  Mutex m_;
  condition_variable not_full_;
  condition_variable not_empty_;
  std::deque<int> values_;
};

template <class Mutex>
void pass_through_a_buffer(const runtime_options& options, int each) {
  runtime rt{options};
  buffer<Mutex> b;
  std::atomic<long> sum{0};
  crowd(rt, 6, 2, [&](int who) {
    for (int i = 1; i <= each; ++i) {
      if (who % 2 == 0) b.put(i);
      else sum += b.take();
    }
  });
  EXPECT_EQ(sum.load(), 4L * each * (each + 1) / 2);
}

TEST_P(condition, loses_no_notification) { pass_through_a_buffer<mutex>(options(), rounds(2'000)); }
TEST_P(condition, works_with_a_recursive_mutex) { pass_through_a_buffer<recursive_mutex>(options(), rounds(500)); }
TEST_P(condition, works_with_a_shared_mutex) { pass_through_a_buffer<shared_mutex>(options(), rounds(500)); }

/// Its unlock suspends.
struct slow_lock {
  mutex m;
  void lock() { m.lock(); }
  void unlock() {
    m.unlock();
    if (detail::current_worker() != nullptr) this_fiber::sleep_for(1us);
  }
};
TEST_P(condition, works_with_a_lock_that_suspends) { pass_through_a_buffer<slow_lock>(options(), rounds(200)); }

TEST_P(condition, works_with_a_shared_lock) {
  in_runtime([] {
    shared_mutex m;
    condition_variable changed;
    bool go = false;
    auto reader = spawn([&] {
      std::shared_lock lock{m};
      changed.wait(lock, [&] { return go; });
      return lock.owns_lock();
    });
    let_others_run();
    {
      std::lock_guard guard{m};
      go = true;
    }
    changed.notify_all();
    EXPECT_TRUE(reader.join());
  });
}

TEST_P(condition, waits_no_longer_than_told) {
  const auto use = [] {
    mutex m;
    condition_variable changed;
    std::unique_lock lock{m};
    EXPECT_EQ(changed.wait_for(lock, 1ms), std::cv_status::timeout);
    EXPECT_EQ(changed.wait_for(lock, -1h), std::cv_status::timeout);
    EXPECT_EQ(changed.wait_until(lock, std::chrono::system_clock::now() + 1ms), std::cv_status::timeout);
    EXPECT_FALSE(changed.wait_for(lock, 1ms, [] { return false; }));
    EXPECT_TRUE(changed.wait_for(lock, 0s, [] { return true; }));
    const auto begin = std::chrono::steady_clock::now();
    int looks = 0;
    EXPECT_FALSE(changed.wait_until(lock, begin + 3ms, [&] { return ++looks == 1000; }));
    EXPECT_GE(std::chrono::steady_clock::now() - begin, 3ms);
    EXPECT_TRUE(m.is_mine());
  };
  use();
  in_runtime(use);
}

TEST_P(condition, passes_a_notification_on_when_its_receiver_runs_out_of_time) {
  // One of two waiters has a deadline at about the time of the only notification; if one times out, the other must have
  // got the notification.
  in_runtime([] {
    for (int round = 0; round < rounds(300); ++round) {
      mutex m;
      condition_variable changed;
      int permits = 0;
      int waiting = 0;
      const auto wait = [&](std::optional<std::chrono::microseconds> patience) {
        std::unique_lock lock{m};
        ++waiting;
        if (!patience) changed.wait(lock, [&] { return permits > 0; });
        else if (!changed.wait_for(lock, *patience, [&] { return permits > 0; })) return false;
        --permits;
        return true;
      };
      auto hasty = spawn([&] { return wait(std::chrono::microseconds{round % 50}); });
      auto patient = spawn([&] { return wait(std::nullopt); });
      await([&] {
        std::lock_guard guard{m};
        return waiting == 2;
      });
      {
        std::lock_guard guard{m};
        permits = 1;
        changed.notify_one();
      }
      const bool first = hasty.join();
      if (first) {
        std::lock_guard guard{m};
        permits = 1;
        changed.notify_one();
      }
      EXPECT_TRUE(patient.join());
    }
  });
}

TEST_P(condition, locks_again_before_it_is_cancelled) {
  in_runtime([] {
    mutex m;
    condition_variable changed;
    expect_cancelled([&] {
      std::unique_lock lock{m};
      try {
        changed.wait(lock, [] { return false; });
      } catch (const cancelled&) {
        EXPECT_TRUE(m.is_mine());
        throw;
      }
    });
    expect_cancelled([&] {
      std::unique_lock lock{m};
      changed.wait_for(lock, 1h, [] { return false; });
    });
    std::lock_guard guard{m};
  });
}

TEST_P(condition, passes_a_notification_on_when_its_receiver_is_cancelled) {
  in_runtime([] {
    for (int round = 0; round < rounds(300); ++round) {
      mutex m;
      condition_variable changed;
      bool go = false;
      int waiting = 0;
      const auto wait = [&] {
        std::unique_lock lock{m};
        ++waiting;
        changed.wait(lock, [&] { return go; });
        changed.notify_one();  // each in its turn
      };
      auto a = spawn(wait);
      auto b = spawn(wait);
      await([&] {
        std::lock_guard guard{m};
        return waiting == 2;
      });
      std::thread stopper{[&] { a.request_stop(); }};
      {
        std::lock_guard guard{m};
        go = true;
      }
      changed.notify_one();
      b.join();
      stopper.join();
      try {
        a.join();
      } catch (const cancelled&) {
      }
    }
  });
}

TEST_P(condition, may_be_destroyed_when_all_were_notified) {
  runtime rt{options()};
  for (int round = 0; round < rounds(500); ++round) {
    mutex m;
    auto changed = std::make_unique<condition_variable>();
    int waiting = 0;
    bool go = false;
    const auto wait = [&] {
      std::unique_lock lock{m};
      ++waiting;
      changed->wait(lock);
      while (!go) std::abort();  // there is no other notifier
    };
    auto a = rt.spawn(wait);
    auto b = rt.spawn(wait);
    await([&] {
      std::lock_guard guard{m};
      return waiting == 2;
    });
    {
      std::lock_guard guard{m};
      go = true;
      changed->notify_all();
      changed.reset();
    }
    a.join();
    b.join();
  }
}

TEST_P(condition, passes_on_what_a_predicate_throws) {
  in_runtime([] {
    mutex m;
    condition_variable changed;
    std::unique_lock lock{m};
    EXPECT_THROW(changed.wait(lock, []() -> bool { throw std::runtime_error{"no"}; }), std::runtime_error);
    EXPECT_TRUE(m.is_mine());
  });
}

TEST_P(condition, waits_end_by_a_stop_token) {
  in_runtime([] {
    mutex m;
    condition_variable changed;
    bool done = false;
    const auto is_done = [&] { return done; };
    std::stop_source stopped;
    stopped.request_stop();
    std::unique_lock lock{m};
    EXPECT_FALSE(changed.wait(lock, stopped.get_token(), is_done));
    EXPECT_FALSE(changed.wait_for(lock, stopped.get_token(), 1h, is_done));
    EXPECT_TRUE(changed.wait(lock, stopped.get_token(), [] { return true; })) << "the condition is asked once more";
    EXPECT_FALSE(changed.wait_for(lock, std::stop_token{}, 1us, is_done));
    lock.unlock();

    constexpr int n = 5;
    std::vector<std::stop_source> sources(n);
    std::atomic<int> waiting{0}, gone{0};
    const auto wait = [&](int i) {
      std::unique_lock own{m};
      ++waiting;
      const auto token = sources[static_cast<std::size_t>(i)].get_token();
      EXPECT_EQ(i % 2 == 0 ? changed.wait(own, token, is_done) : changed.wait_for(own, token, 1h, is_done), i > 1);
      EXPECT_TRUE(own.owns_lock());
      ++gone;
    };
    std::vector<join_handle<void>> handles;
    for (int i = 0; i < n - 1; ++i) handles.push_back(spawn(wait, i));
    std::thread other{wait, n - 1};
    await([&] {
      const std::lock_guard guard{m};
      return waiting == n;
    });
    for (const int i : {0, 1}) {
      sources[static_cast<std::size_t>(i)].request_stop();
      handles[static_cast<std::size_t>(i)].join();
      EXPECT_EQ(gone, i + 1) << "the others go on waiting";
    }
    {
      const std::lock_guard guard{m};
      done = true;
    }
    changed.notify_all();
    for (auto& h : handles)
      if (h.joinable()) h.join();
    other.join();
  });
}

TEST_P(condition, a_stop_is_not_missed_and_takes_no_notification) {
  in_runtime([] {
    for (int round = rounds(1000); round > 0; --round) {
      mutex m;
      condition_variable changed;
      bool given = false;
      std::stop_source source;
      const auto wait = [&](const std::stop_token& token) {
        std::unique_lock lock{m};
        return changed.wait(lock, token, [&] { return std::exchange(given, false); });
      };
      auto stopped = spawn([&] { return wait(source.get_token()); });
      auto notified = spawn([&] { return wait(std::stop_token{}); });
      auto stopping = spawn([&] { source.request_stop(); });
      if (round % 2 == 0) this_fiber::yield();
      {
        const std::lock_guard guard{m};
        given = true;
      }
      changed.notify_one();
      stopping.join();
      if (stopped.join()) {  // it has taken what was given before it heard of the stop
        const std::lock_guard guard{m};
        given = true;
        changed.notify_one();
      } else {
        changed.notify_one();  // one that went to it is passed on by the program, as with std
      }
      EXPECT_TRUE(notified.join());
    }
  });
}

TEST_P(condition, the_tokens_of_fibers_end_waits) {
  in_runtime([] {
    mutex m;
    condition_variable changed;
    auto h = spawn([&](const std::stop_token& token) {
      return shield([&] {
        std::unique_lock lock{m};
        return changed.wait(lock, token, [] { return false; });
      });
    });
    this_fiber::yield();
    h.request_stop();
    EXPECT_FALSE(h.join());
  });
}

}  // namespace
}  // namespace ramie
