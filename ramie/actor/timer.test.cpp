// Messages that come later.
#include <ramie/actor/timer.hpp>

#include <ramie/actor/testing.hpp>
#include <ramie/supervise/supervisor.hpp>
#include <ramie/sync/event.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <variant>
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

// ---- while workers are held up, the monitor fires their timers -----------------------------------------------------

/// A message whose copies are counted, by the kind of thread.
struct noted {
  struct counts {
    std::atomic<int> by_workers{0}, by_others{0};
  };
  counts* to;
  explicit noted(counts& c) : to{&c} {}
  noted(const noted& other) : to{other.to} { ++(detail::current_worker() != nullptr ? to->by_workers : to->by_others); }
  noted& operator=(const noted&) = default;
};

struct hold_up {};

/// Ticks by messages of type M; its handler of `hold_up` keeps its worker until some have come.
template <class M>
class ticking : public actor<ticking<M>> {
 public:
  ticking(const M& m, event& enough) : enough_{enough} { this->send_every(200us, m); }
  void on(hold_up) {
    const auto me = this->self();
    while (me.mail_count() < 3) {
    }
    held_up_ = true;
  }
  void on(const M&) {
    if (held_up_ && ++ticks_ == 10) enough_.set();
  }

 private:
  event& enough_;
  bool held_up_ = false;
  int ticks_ = 0;
};

TEST_P(actor_timers, run_no_code_of_the_program_on_the_monitor) {
  in_runtime([] {
    noted::counts copies;
    event enough;
    const noted m{copies};
    auto t = spawn_actor<ticking<noted>>(actor_options{.worker = 0}, m, enough);
    t.tell(hold_up{});
    enough.wait();
    stop_and_join(t);
    EXPECT_GE(copies.by_workers, 10);
    EXPECT_EQ(copies.by_others, 0);
  });
}

TEST_P(actor_timers, go_on_after_their_worker_was_held_up) {
  in_runtime([] {
    for (int i = 0; i < scaled(30); ++i) {
      event enough;
      auto t = spawn_actor<ticking<tick>>(tick{0}, enough);
      t.tell(hold_up{});
      enough.wait();  // nothing else keeps a worker awake
      stop_and_join(t);
    }
  });
}

TEST_P(actor_timers, go_on_when_the_spare_that_started_them_is_not_needed_any_more) {
  runtime_options o = options();
  o.spare_workers = 2;
  o.stall_after = 2ms;
  o.placement =
      placement::stealing_no_affinity;  // whatever the environment says: only where workers steal are spares called
  runtime rt{o};
  for (int i = 0; i < scaled(20); ++i) {
    event enough;
    std::atomic<bool> started{false};
    std::vector<join_handle<void>> hogs;
    for (int w = 0; w < GetParam(); ++w)
      hogs.push_back(rt.spawn([&] {
        while (!started) std::this_thread::yield();
      }));
    auto t = rt.spawn([&] {
      auto made = spawn_actor<ticking<tick>>(tick{0}, enough);
      started = true;
      made.tell(hold_up{});
      return made;
    });
    const auto made = t.join();
    for (auto& h : hogs) h.join();
    enough.wait();
    made.stop();
    made.join();
  }
}

TEST_P(actor_timers, fail_their_actor_where_the_copy_of_a_message_fails) {
  struct fragile {
    bool copied = false;
    fragile() = default;
    fragile(const fragile& other) : copied{true} {
      if (other.copied) throw std::runtime_error{"no copy of a copy"};
    }
    fragile& operator=(const fragile&) = default;
  };
  class holder : public actor<holder> {
   public:
    holder() { send_every(1us, fragile{}); }
    void on(const fragile&) {}
  };
  in_runtime([] {
    supervisor sup{{.max_restarts = 3, .within = 1h, .report = [](const child_report&) {}}};
    auto h = sup.spawn_actor<holder>();
    EXPECT_EQ(h.join().kind(), exit_kind::failed);
  });
}

// ---- timers by key, and for others ---------------------------------------------------------------------------------

enum class alarm { first, second };
struct start_two {};
struct replaced {
  int times;
};
struct ring {
  std::string text;
};
struct heard {};

class alarms : public actor<alarms> {
 public:
  /// The message of the first lies in the mailbox when it is replaced, or cancelled.
  void on(replaced r) {
    for (int i = 0; i < r.times; ++i) {
      start_timer(alarm::first, 0ns, ring{"old " + std::to_string(i)});
      EXPECT_TRUE(has_timer(alarm::first));
    }
    const auto me = self();
    while (me.mail_count() == 0) this_fiber::yield();
    start_timer(alarm::first, 0ns, ring{"new"});
  }
  bool on(cancel_all) {
    start_timer("text", 0ns, ring{"cancelled"});
    const auto me = self();
    while (me.mail_count() == 0) this_fiber::yield();
    const bool was_there = cancel_timer("text");
    return was_there && !cancel_timer("text") && !has_timer("text");
  }
  void on(start_two) {
    start_timer(alarm::second, 1h, ring{"never"});
    repeat_timer(std::string{"again"}, 100us, ring{"tick"});
  }
  void on(ring r) {
    EXPECT_FALSE(has_timer(alarm::first));
    heard_.push_back(std::move(r.text));
    if (heard_.size() == 5) cancel_timer("again");
  }
  void on(crash) { throw std::runtime_error{"crash"}; }
  std::vector<std::string> on(heard) {
    EXPECT_FALSE(has_timer(7));
    return heard_;
  }

 private:
  std::vector<std::string> heard_;
};

TEST_P(actor_timers, with_a_key_are_replaced_even_when_their_message_waits) {
  in_runtime([] {
    for (int i = 0; i < scaled(50); ++i) {
      auto a = spawn_actor<alarms>();
      a.tell(replaced{3});
      await([&] { return !a.ask(heard{}).empty(); });
      EXPECT_EQ(a.ask(heard{}), std::vector<std::string>{"new"});
      stop_and_join(a);
    }
  });
}

TEST_P(actor_timers, with_a_key_are_cancelled_even_when_their_message_waits) {
  in_runtime([] {
    auto a = spawn_actor<alarms>();
    for (int i = 0; i < scaled(50); ++i) EXPECT_TRUE(a.ask(cancel_all{}));
    EXPECT_TRUE(a.ask(heard{}).empty());
    stop_and_join(a);
  });
}

TEST_P(actor_timers, with_a_key_end_with_their_incarnation) {
  in_runtime([] {
    supervisor sup{{.max_restarts = 100, .within = 1h, .report = [](const child_report&) {}}};
    auto a = sup.spawn_actor<alarms>();
    a.tell(start_two{});
    await([&] { return ask_patiently(a, heard{}).size() == 5; });
    EXPECT_EQ(ask_patiently(a, heard{}), std::vector<std::string>(5, "tick"));
    a.tell(start_two{});
    a.tell(crash{});
    await([&] { return sup.restarts() == 1; });
    EXPECT_TRUE(ask_patiently(a, heard{}).empty());
    a.tell(start_two{});
    await([&] { return ask_patiently(a, heard{}).size() == 5; });
  });
}

TEST_P(actor_timers, are_started_for_others_from_anywhere) {
  runtime rt{options()};
  auto a = rt.spawn([] { return spawn_actor<alarms>(); }).join();
  std::atomic<int> received{0};
  auto f = rt.spawn([&] {
               return spawn_actor<ring, int>([&](mailbox<ring, int>& box) {
                 while (auto m = box.receive())
                   if (m->index() == 0 ? std::get<ring>(*m).text == "fiber" : std::get<int>(*m) == 1) ++received;
               });
             }).join();
  for (int i = 0; i < 2; ++i) {
    // By a plain thread, while the workers sleep or not.
    ramie::send_after(1ms, a, ring{"thread"});
    ramie::send_after(1ms, f, ring{"fiber"});
    ramie::send_after(1ms, f, 1);
    auto cancelled_one = ramie::send_after(1h, a, ring{"never"});
    EXPECT_TRUE(cancelled_one.running());
    cancelled_one.cancel();
    EXPECT_FALSE(cancelled_one.running());
    await([&] { return received == 2 * (i + 1); });
  }
  rt.run([&] {
    ramie::send_after(1ms, a, ring{"fiber"});
    await([&] { return a.ask(heard{}).size() == 3; });
  });
  // From another runtime.
  runtime other{options()};
  other.run([&] {
    ramie::send_after(1ms, a, ring{"other"});
    await([&] { return a.ask(heard{}).size() == 4; });
  });
  auto left = ramie::send_after(1h, a, ring{"never"});
  auto forgotten = ramie::send_after(1h, f, ring{"never"});
  a.stop();
  a.join();
  EXPECT_FALSE(left.running());
  EXPECT_FALSE(ramie::send_after(0ns, a, ring{"to nobody"}).running());
  rt.shutdown();
  EXPECT_FALSE(forgotten.running());
  forgotten.cancel();
}

// ---- receive timeouts ----------------------------------------------------------------------------------------------

struct quiet_times {};
struct set_timeout {
  std::chrono::nanoseconds time;
};
struct end_timeout {};
struct keep_awake {
  std::chrono::nanoseconds time;
};

class sleepy : public actor<sleepy> {
 public:
  void on(set_timeout s) { set_receive_timeout(s.time); }
  /// Sets one, and ends it when its message is in the mailbox already.
  void on(end_timeout) {
    set_receive_timeout(1ms);
    while (self().mail_count() == 0) this_fiber::yield();
    cancel_receive_timeout();
  }
  /// Handles no other message meanwhile; the next one is sent before this one ends.
  void on(keep_awake k) {
    this_fiber::sleep_for(k.time);
    if (++awake_ < 5) self().tell(k);
  }
  void on(receive_timeout) {
    ++times_;
    EXPECT_TRUE(awake_ == 0 || awake_ == 5);
  }
  int on(quiet_times) { return times_; }
  /// Looks from outside, without a message.
  static int look_at(const actor_ref<sleepy>& s, int at_least) {
    int seen = 0;
    await([&] {
      this_fiber::sleep_for(20ms);
      seen = s.ask(quiet_times{});
      return seen >= at_least;
    });
    return seen;
  }

 private:
  int times_ = 0;
  int awake_ = 0;
};

TEST_P(actor_timers, tell_of_quiet_times_until_they_are_cancelled) {
  in_runtime([] {
    auto s = spawn_actor<sleepy>();
    s.tell(set_timeout{1ms});
    sleepy::look_at(s, 2);  // and again
    s.tell(set_timeout{1h});
    const int before = s.ask(quiet_times{});
    s.tell(end_timeout{});
    this_fiber::sleep_for(5ms);
    EXPECT_EQ(s.ask(quiet_times{}), before);
    stop_and_join(s);
  });
}

TEST_P(actor_timers, do_not_take_a_busy_actor_for_a_quiet_one) {
  in_runtime([] {
    auto s = spawn_actor<sleepy>();
    s.tell(keep_awake{2ms});
    s.tell(set_timeout{1ms});  // due whenever one of the others is handled, behind the next
    sleepy::look_at(s, 1);
    stop_and_join(s);
  });
}

}  // namespace
}  // namespace ramie
