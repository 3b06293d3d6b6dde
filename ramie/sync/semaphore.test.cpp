// Permits are neither lost nor made, in whatever way a wait for one ends.
#include <ramie/sync/semaphore.hpp>

#include <ramie/sync/testing.hpp>

#include <atomic>
#include <memory>
#include <random>

namespace ramie {
namespace {

using namespace sync_tests;

class semaphores : public everywhere {};
INSTANTIATE_TEST_SUITE_P(with, semaphores, settings(), ::testing::PrintToStringParamName());

TEST_P(semaphores, count_permits) {
  const auto use = [] {
    counting_semaphore<5> s{2};
    EXPECT_EQ(s.max(), 5);
    s.acquire();
    EXPECT_TRUE(s.try_acquire());
    EXPECT_FALSE(s.try_acquire());
    s.release(5);
    EXPECT_THROW(s.release(), usage_error);
    EXPECT_THROW(s.release(-1), usage_error);
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(s.try_acquire_for(0s));
    EXPECT_FALSE(s.try_acquire());
    s.release(0);
    EXPECT_FALSE(s.try_acquire());
  };
  use();
  in_runtime(use);
  EXPECT_EQ(binary_semaphore::max(), 1);
}

TEST_P(semaphores, let_in_as_many_as_there_are_permits) {
  runtime rt{options()};
  counting_semaphore<> s{3};
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  const int turns = rounds(3'000);
  crowd(rt, 8, 2, [&](int) {
    for (int i = 0; i < turns; ++i) {
      s.acquire();
      const int n = ++inside;
      if (n > most) most = n;
      if (i % 32 == 0) this_fiber::yield();
      --inside;
      s.release();
    }
  });
  EXPECT_LE(most.load(), 3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(s.try_acquire());
  EXPECT_FALSE(s.try_acquire());
}

TEST_P(semaphores, pass_turns_to_and_fro) {
  runtime rt{options()};
  binary_semaphore ping{0};
  binary_semaphore pong{0};
  int ball = 0;
  const int turns = rounds(3'000);
  crowd(rt, 1, 1, [&](int who) {
    for (int i = 0; i < turns; ++i) {
      if (who == 0) {
        ball = i;
        ping.release();
        pong.acquire();
        EXPECT_EQ(ball, -i);
      } else {
        ping.acquire();
        EXPECT_EQ(ball, i);
        ball = -i;
        pong.release();
      }
    }
  });
}

TEST_P(semaphores, lose_no_permit_to_those_who_run_out_of_time) {
  runtime rt{options()};
  counting_semaphore<> s{0};
  std::atomic<long> given{0};
  std::atomic<long> got{0};
  const int turns = rounds(2'000);
  crowd(rt, 6, 2, [&](int who) {
    std::mt19937 random{static_cast<unsigned>(who)};
    for (int i = 0; i < turns; ++i) {
      if (who % 2 == 0) {
        const int n = static_cast<int>(random() % 3);
        given += n;
        s.release(n);
        if (i % 8 == 0) this_fiber::yield();
      } else if (s.try_acquire_for(std::chrono::microseconds{random() % 30})) {
        ++got;
      }
    }
  });
  long left = 0;
  while (s.try_acquire()) ++left;
  EXPECT_EQ(given.load(), got.load() + left);
}

TEST_P(semaphores, lose_no_permit_to_those_who_are_cancelled) {
  in_runtime([] {
    counting_semaphore<> s{0};
    long got = 0;
    long given = 0;
    for (int round = 0; round < rounds(500); ++round) {
      std::atomic<long> now{0};
      std::vector<join_handle<void>> handles;
      for (int i = 0; i < 4; ++i)
        handles.push_back(spawn([&] {
          s.acquire();
          ++now;
        }));
      for (int i = 0; i < round % 8; ++i) this_fiber::yield();
      std::thread giver{[&] { s.release(2); }};
      given += 2;
      for (auto& h : handles) h.request_stop();
      giver.join();
      for (auto& h : handles) {
        try {
          h.join();
        } catch (const cancelled&) {
        }
      }
      got += now;
    }
    long left = 0;
    while (s.try_acquire()) ++left;
    EXPECT_EQ(given, got + left);
  });
}

TEST(semaphores_on_one_worker, give_to_who_has_waited_longest) {
  // With several workers, spares included, the order of arrival is not known.
  run({.workers = 1, .spare_workers = 0}, [] {
    counting_semaphore<> s{0};
    std::vector<int> order;
    std::vector<join_handle<void>> handles;
    for (int i = 0; i < 5; ++i) {
      handles.push_back(spawn([&, i] {
        s.acquire();
        order.push_back(i);
      }));
      let_others_run();
    }
    s.release(5);
    for (auto& h : handles) h.join();
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
  });
}

TEST_P(semaphores, wait_no_longer_than_told) {
  const auto use = [] {
    counting_semaphore<> s{0};
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_FALSE(s.try_acquire_for(2ms));
    EXPECT_GE(std::chrono::steady_clock::now() - begin, 2ms);
    EXPECT_FALSE(s.try_acquire_until(std::chrono::system_clock::now() + 1ms));
    EXPECT_FALSE(s.try_acquire_until(std::chrono::steady_clock::time_point::min()));
    EXPECT_FALSE(s.try_acquire_until(std::chrono::system_clock::time_point::min()));
    EXPECT_FALSE(s.try_acquire_for(std::chrono::hours::min()));
    std::thread giver{[&] { s.release(); }};
    EXPECT_TRUE(s.try_acquire_until(std::chrono::system_clock::time_point::max()));
    giver.join();
  };
  use();
  in_runtime(use);
}

TEST_P(semaphores, are_cancelled) {
  in_runtime([] {
    counting_semaphore<> s{0};
    expect_cancelled([&] { s.acquire(); });
    expect_cancelled([&] { static_cast<void>(s.try_acquire_for(1h)); });
    s.release();
    EXPECT_TRUE(s.try_acquire());
  });
}

TEST_P(semaphores, may_be_destroyed_by_who_got_the_last_permit) {
  runtime rt{options()};
  for (int round = 0; round < rounds(1'000); ++round) {
    auto s = std::make_unique<binary_semaphore>(0);
    binary_semaphore* raw = s.get();
    auto h = rt.spawn([owned = std::move(s), round]() mutable {
      if (round % 2 == 0) owned->acquire();
      else await([&] { return owned->try_acquire(); });
      owned.reset();
    });
    raw->release();
    h.join();
  }
}

TEST(semaphore_counts, out_of_range_are_refused) {
  EXPECT_TRUE(contains(message_of<invalid_argument>([] { counting_semaphore<>{-1}; }), "semaphore: a count of -1"));
  EXPECT_THROW(binary_semaphore{2}, invalid_argument);
  counting_semaphore<5> most{5};
  EXPECT_THROW(most.release(), usage_error);
}

}  // namespace
}  // namespace ramie
