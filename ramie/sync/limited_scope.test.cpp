#include <ramie/sync/limited_scope.hpp>

#include <ramie/fiber/cancellation.hpp>
#include <ramie/fiber/this_fiber.hpp>
#include <ramie/runtime/runtime.hpp>
#include <ramie/sync/latch.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <vector>

namespace ramie {
namespace {

using namespace std::chrono_literals;

class limited_scopes : public ::testing::TestWithParam<int> {
 protected:
  template <class F>
  static void run(F f) {
    runtime rt{{.workers = GetParam()}};
    rt.run(std::move(f));
  }
};
INSTANTIATE_TEST_SUITE_P(on, limited_scopes, ::testing::Values(1, 2, 8));

/// Counts who is inside, and the most ever.
class room {
 public:
  void enter() {
    const int now = ++inside_;
    for (int seen = most_; seen < now && !most_.compare_exchange_weak(seen, now);) {
    }
    ++visits_;
  }
  void leave() { --inside_; }
  [[nodiscard]] int most() const { return most_; }
  [[nodiscard]] int visits() const { return visits_; }

 private:
  std::atomic<int> inside_{0}, most_{0}, visits_{0};
};

TEST_P(limited_scopes, run_so_many_at_once_and_no_more) {
  run([] {
    for (const int limit : {1, 3, 100}) {
      room r;
      limited_scope s{limit};
      latch inside{3};
      for (int i = 0; limit == 3 && i < 3; ++i)
        s.spawn([&] {
          r.enter();
          inside.arrive_and_wait();  // returns only if they run at once
          r.leave();
        });
      for (int i = 0; i < 40; ++i)
        s.spawn([&] {
          r.enter();
          this_fiber::sleep_for(50us);
          r.leave();
        });
      this_fiber::sleep_for(10us);  // those added afterwards are children of the other kind
      for (int i = 0; i < 20; ++i)
        s.spawn([&] {
          r.enter();
          this_fiber::yield();
          r.leave();
        });
      s.join();
      EXPECT_EQ(r.visits(), limit == 3 ? 63 : 60);
      EXPECT_LE(r.most(), limit);
    }
  });
}

TEST_P(limited_scopes, let_children_add_children) {
  run([] {
    room r;
    limited_scope s{2};
    struct adder {
      limited_scope& s;
      room& r;
      void operator()(int depth) const {
        r.enter();
        if (depth > 0)
          for (int i = 0; i < 2; ++i) s.spawn([me = *this, depth] { me(depth - 1); });
        this_fiber::yield();
        r.leave();
      }
    } const add{s, r};
    s.spawn([&] { add(5); });
    s.join();
    EXPECT_EQ(r.visits(), 63);
    EXPECT_LE(r.most(), 2);
  });
}

TEST_P(limited_scopes, drop_who_waits_when_one_fails) {
  run([] {
    std::atomic<int> begun{0};
    limited_scope s{1};
    for (int i = 0; i < 10; ++i)
      s.spawn([&] {
        ++begun;
        this_fiber::sleep_for(100us);
        throw std::runtime_error{"the first"};
      });
    EXPECT_THROW(s.join(), std::runtime_error);
    EXPECT_EQ(begun, 1);
    // It can be used again, and all turns are free.
    room r;
    for (int i = 0; i < 3; ++i) s.spawn([&] { r.enter(), r.leave(); });
    s.join();
    EXPECT_EQ(r.visits(), 3);
  });
}

TEST_P(limited_scopes, give_results_and_obey_deadlines) {
  run([] {
    limited_scope s{2};
    std::vector<child_result<int>> results;
    for (int i = 0; i < 10; ++i) results.push_back(s.spawn([i] { return i * i; }));
    auto named = s.spawn(fiber_options{.name = "named"}, [] { return std::string{this_fiber::name()}; });
    s.join();
    int sum = 0;
    for (const auto& result : results) sum += result.get();
    EXPECT_EQ(sum, 285);
    EXPECT_EQ(named.get(), "named");
    EXPECT_THROW(with_timeout(200us,
                              [&] {
                                limited_scope late{1};
                                for (int i = 0; i < 3; ++i) late.spawn([] { this_fiber::sleep_for(1h); });
                                late.join();
                              }),
                 timeout_error);
  });
}

TEST(limited_scope, needs_a_limit) {
  EXPECT_THROW(limited_scope{0}, invalid_argument);
  limited_scope on_a_thread{1};
  int called = 0;
  on_a_thread.spawn([&] { ++called; });
  on_a_thread.spawn([&] { ++called; });
  on_a_thread.join();
  EXPECT_EQ(called, 2);
}

}  // namespace
}  // namespace ramie
