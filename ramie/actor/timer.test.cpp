// Messages that come later.
#include <ramie/actor/timer.hpp>

#include <ramie/actor/testing.hpp>
#include <ramie/supervise/supervisor.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <vector>

namespace ramie {
namespace {

using namespace actor_tests;
using clock_type = std::chrono::steady_clock;

struct once {
  std::chrono::nanoseconds delay;
  int id;
};
struct every {
  std::chrono::nanoseconds period;
};
struct cancel_all {};
struct tick {
  int id;
};
struct ticks {};
struct crash {};

class clockwork : public actor<clockwork> {
 public:
  void on(once o) { handles_.push_back(send_after(o.delay, tick{o.id})); }
  void on(every e) { handles_.push_back(send_every(e.period, tick{-1})); }
  void on(cancel_all) {
    for (auto& h : handles_) h.cancel();
  }
  void on(tick t) { seen_.push_back(t.id); }
  std::vector<int> on(ticks) { return seen_; }
  void on(crash) { throw std::runtime_error{"crash"}; }

 private:
  std::vector<timer_handle> handles_;
  std::vector<int> seen_;
};

class actor_timers : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, actor_timers, few_and_many());

TEST_P(actor_timers, fire_once_and_not_early) {
  in_runtime([] {
    auto c = spawn_actor<clockwork>();
    const auto start = clock_type::now();
    c.tell(once{30ms, 3});
    c.tell(once{10ms, 1});
    c.tell(once{20ms, 2});
    c.tell(once{0ms, 0});
    c.tell(once{1000h, 9});
    await([&] { return c.ask(ticks{}).size() == 4; });
    EXPECT_GE(clock_type::now() - start, 30ms);
    // In any order: where a thread that fires one is kept from its processor for long, others fire the next.
    std::vector<int> fired = c.ask(ticks{});
    std::ranges::sort(fired);
    EXPECT_EQ(fired, (std::vector<int>{0, 1, 2, 3}));
    stop_and_join(c);
  });
}

TEST_P(actor_timers, fire_again_and_again_until_cancelled) {
  in_runtime([] {
    auto c = spawn_actor<clockwork>();
    c.tell(every{1ms});
    await([&] { return c.ask(ticks{}).size() >= 5; });
    c.tell(cancel_all{});
    c.ask(ticks{});  // they are cancelled; what fired before that may be in the mailbox behind this question
    const std::size_t after = c.ask(ticks{}).size();
    this_fiber::sleep_for(20ms);
    EXPECT_LE(c.ask(ticks{}).size(), after + 1);  // one may have been on its way
    stop_and_join(c);
  });
}

TEST_P(actor_timers, end_with_their_actor) {
  in_runtime([] {
    for (int i = 0; i < scaled(100); ++i) {
      auto c = spawn_actor<clockwork>();
      c.tell(every{1us});
      c.tell(once{1us, 1});
      c.tell(once{1000h, 1});
      if (i % 2 == 0) this_fiber::sleep_for(10us);
      if (i % 3 == 0) c.kill();
      else c.stop();
      c.join();
    }
  });
}

TEST_P(actor_timers, do_not_outlast_a_restart) {
  in_runtime([] {
    supervisor sup{{.max_restarts = 100, .within = 1h}};
    auto c = sup.spawn_actor<clockwork>();
    c.tell(every{1ms});
    await([&] { return c.ask(ticks{}).size() >= 2; });
    c.tell(crash{});
    ask_patiently(c, ticks{});  // it has restarted; more ticks may stand behind this question
    const std::size_t fresh = ask_patiently(c, ticks{}).size();
    // Those that were in the mailbox behind the crash count for the new one; no more are added.
    this_fiber::sleep_for(10ms);
    EXPECT_LE(c.ask(ticks{}).size(), fresh + 1);
  });
}

TEST_P(actor_timers, are_cancelled_by_anybody) {
  // Races the firing with the cancelling.
  class racer : public actor<racer> {
   public:
    timer_handle on(once o) { return send_after(o.delay, tick{0}); }
    timer_handle on(every e) { return send_every(e.period, tick{0}); }
    void on(tick) { ++count_; }
    int on(ticks) { return count_; }

   private:
    int count_ = 0;
  };
  in_runtime([] {
    auto r = spawn_actor<racer>();
    for (int i = 0; i < scaled(300); ++i) {
      auto a = r.ask(once{std::chrono::microseconds{i % 7}, 0});
      auto b = r.ask(every{1us});
      if (i % 2 == 0) this_fiber::yield();
      a.cancel();
      b.cancel();
      b.cancel();
    }
    stop_and_join(r);
  });
}

}  // namespace
}  // namespace ramie
