// Behaviours after the tests of OTP's gen_statem (lib/stdlib/test/gen_statem_SUITE.erl), as programs for ramie; each
// names its origin. Where ramie means something else the case says so. Cases that do not apply:
//   start3 to start12, enter_loop, undef_*, undef_in_*    names of nodes and modules, call-backs that are missing
//   code_change, push_pop_callback_module, pop_too_many   no code is replaced at run time
//   sys1, call_format, *_format_status, get_state, replace_state, get_many   there is no `sys`
//   hibernate, auto_hibernate                             an idle actor has no stack to give back
//   format_log_*, reply_by_alias_*                        no logger, no aliases
#include <ramie/ramie.hpp>

#include <ramie/fiber/testing.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

namespace ramie {
namespace {

using namespace fiber_tests;
using words = std::vector<std::string>;

/// What a machine did, in this order.
class diary {
 public:
  void note(const std::string& what) {
    std::lock_guard guard{lock_};
    all_.push_back(what);
  }
  [[nodiscard]] words all() {
    std::lock_guard guard{lock_};
    return all_;
  }

 private:
  std::mutex lock_;
  words all_;
};

class otp_statems : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, otp_statems, few_and_many());

// ---- the suite's own machine: idle, then somebody wants something, then connected --------------------------------

enum class phase { idle, wanted, connected };
struct connect {};
struct answer_call {};
struct hang_up {};
struct what_phase {};
struct fail_now {};
struct sleep_now {};
struct leave_with {
  int code;
};
struct stop_and_tell {};
struct ping {};

class line : public state_machine<line, phase> {
 public:
  explicit line(bool fails = false) : state_machine{phase::idle} {
    if (fails) throw std::runtime_error{"no line"};
  }
  void on(connect) {
    if (state() == phase::idle) next_state(phase::wanted);
  }
  void on(answer_call) {
    if (state() == phase::idle) postpone();
    else if (state() == phase::wanted) next_state(phase::connected);
  }
  void on(hang_up) { next_state(phase::idle); }
  phase on(what_phase) { return state(); }
  void on(fail_now) { throw std::runtime_error{"crash"}; }
  int on(sleep_now) {
    this_fiber::sleep_for(1h);
    return 0;
  }
  void on(leave_with l) { stop(exit_reason::of(l.code)); }
  int on(stop_and_tell) {
    stop(exit_reason::of(7));
    return 42;
  }
  int on(ping) {
    if (state() != phase::connected) postpone();
    return 1;
  }
};

// start1, start2, start3: it runs and answers; what its start throws comes to the caller.
TEST_P(otp_statems, start) {
  in_runtime([] {
    auto l = spawn_actor<line>();
    EXPECT_EQ(l.ask(what_phase{}), phase::idle);
    EXPECT_THROW(spawn_actor<line>(true), std::runtime_error);
    l.stop();
    EXPECT_EQ(l.join().kind(), exit_kind::stopped);
  });
}

// stop1 to stop10: normally, by shutdown, for a reason of one's own; what has ended stays so.
TEST_P(otp_statems, stop) {
  in_runtime([] {
    auto l = spawn_actor<line>();
    l.stop();
    EXPECT_TRUE(l.join().normal());
    l = spawn_actor<line>();
    l.stop(exit_reason{exit_kind::shutdown});
    EXPECT_EQ(l.join().kind(), exit_kind::shutdown);
    l = spawn_actor<line>();
    l.stop(exit_reason::of("other"));
    EXPECT_EQ(*l.join().as<std::string>(), "other");
    l.stop();
    EXPECT_EQ(*l.join().as<std::string>(), "other");
    EXPECT_THROW(l.ask(what_phase{}), actor_down);
    EXPECT_EQ(l.tell(connect{}), tell_status::down);
  });
}

// abnormal1, abnormal1clean, abnormal1dirty: a call that times out ends the caller's wait, not the machine.
TEST_P(otp_statems, abnormal1) {
  in_runtime([] {
    auto l = spawn_actor<line>();
    EXPECT_THROW(l.ask_for(1ms, ping{}), timeout_error);  // postponed
    l.tell(connect{});
    l.tell(answer_call{});
    EXPECT_EQ(l.ask(what_phase{}), phase::connected);
    EXPECT_EQ(l.ask(ping{}), 1);
    EXPECT_THROW(l.ask_for(1ms, sleep_now{}), timeout_error);
    EXPECT_TRUE(l.alive());
    l.kill();
    EXPECT_EQ(l.join().kind(), exit_kind::killed);
  });
}

// abnormal2, abnormal3: a failure ends it; the one who called is told why.
TEST_P(otp_statems, abnormal2) {
  in_runtime([] {
    auto l = spawn_actor<line>();
    try {
      l.ask(fail_now{});
      ADD_FAILURE() << "it answered";
    } catch (const actor_down& down) {
      EXPECT_EQ(down.reason().kind(), exit_kind::failed);
      EXPECT_THROW(std::rethrow_exception(down.reason().exception()), std::runtime_error);
    }
    EXPECT_FALSE(l.alive());
    EXPECT_EQ(l.reason().kind(), exit_kind::failed);
  });
}

// shutdown, stop_and_reply: the answer comes, and then the end, with its reason.
TEST_P(otp_statems, stop_and_reply) {
  in_runtime([] {
    auto l = spawn_actor<line>();
    EXPECT_EQ(l.ask(stop_and_tell{}), 42);
    EXPECT_EQ(*l.join().as<int>(), 7);
    l = spawn_actor<line>();
    l.tell(leave_with{3});
    EXPECT_EQ(*l.join().as<int>(), 3);
  });
}

// The postponed calls of the suite's own machine: those who call early are answered when it is connected, in order, and
// before those who called later.
TEST_P(otp_statems, postponed_calls) {
  in_runtime([] {
    auto l = spawn_actor<line>();
    std::vector<future<int>> early;
    for (int i = 0; i < 5; ++i) early.push_back(l.ask_async(ping{}));
    l.tell(answer_call{});  // too early, too
    EXPECT_EQ(l.ask(what_phase{}), phase::idle);
    l.tell(connect{});
    EXPECT_EQ(l.ask(what_phase{}), phase::connected);  // what was postponed came before this
    for (auto& e : early) EXPECT_EQ(e.get(), 1);
    l.tell(hang_up{});
    auto late = l.ask_async(ping{});
    l.stop();
    EXPECT_THROW(late.get(), actor_down);
  });
}

// ---- enter calls -------------------------------------------------------------------------------------------------

enum class step { one, two, three };
struct go {
  step to;
};
struct again {};

class entering : public state_machine<entering, step> {
 public:
  explicit entering(std::shared_ptr<diary> d) : state_machine{step::one}, diary_{std::move(d)} {}
  void on(go g) { next_state(g.to); }
  void on(again) { repeat_state(); }
  int on(ping) { return 0; }
  void enter(step from) {
    diary_->note(std::to_string(static_cast<int>(from)) + ">" + std::to_string(static_cast<int>(state())));
    if (state() == step::two) next_state(step::three);  // OTP forbids that in an enter call
  }

 private:
  std::shared_ptr<diary> diary_;
};

// state_enter: called after each change, with the state before; for repeat_state with itself; not for keep_state. (Not
// called for the first state here.)
TEST_P(otp_statems, state_enter) {
  in_runtime([] {
    const auto d = std::make_shared<diary>();
    auto m = spawn_actor<entering>(d);
    m.tell(go{step::one});
    m.tell(again{});
    m.tell(go{step::two});
    m.tell(go{step::one});
    m.ask(ping{});
    EXPECT_EQ(d->all(), (words{"0>0", "0>1", "1>2", "2>0"}));
    m.stop();
    m.join();
  });
}

// ---- the order of events -----------------------------------------------------------------------------------------

struct number {
  int n;
};
struct open_up {};
struct close_up {};
enum class gate { closed, open };

class ordering : public state_machine<ordering, gate> {
 public:
  explicit ordering(std::shared_ptr<diary> d) : state_machine{gate::closed}, diary_{std::move(d)} {}
  void on(number n) {
    if (state() == gate::closed && n.n % 2 == 1) return postpone();
    diary_->note(std::to_string(n.n));
    if (n.n == 2) {
      self().tell_urgent(number{10});  // next_event
      self().tell_urgent(number{12});
    }
  }
  void on(open_up) { next_state(gate::open); }
  void on(close_up) { next_state(gate::closed); }
  int on(ping) { return 0; }

 private:
  std::shared_ptr<diary> diary_;
};

// event_order: what was postponed comes in the order in which it came, before what waits; events that the machine
// makes itself (next_event) come before both.
TEST_P(otp_statems, event_order) {
  in_runtime([] {
    const auto d = std::make_shared<diary>();
    auto m = spawn_actor<ordering>(d);
    for (int i = 1; i <= 6; ++i) m.tell(number{i});
    m.tell(open_up{});
    m.tell(number{7});
    m.tell(number{8});
    m.tell(close_up{});
    m.tell(number{9});
    m.tell(number{14});
    m.tell(open_up{});
    m.ask(ping{});
    EXPECT_EQ(d->all(), (words{"2", "10", "12", "4", "6", "1", "3", "5", "7", "8", "14", "9"}));
    m.stop();
    m.join();
  });
}

/// A message that is postponed in each of many states comes when its own is there.
class counting_up : public state_machine<counting_up, int> {
 public:
  explicit counting_up(std::shared_ptr<diary> d) : state_machine{0}, diary_{std::move(d)} {}
  void on(number n) {
    if (n.n != state()) return postpone();
    diary_->note(std::to_string(n.n));
    next_state(state() + 1);
  }
  int on(ping) {
    if (state() < 50) postpone();
    return state();
  }

 private:
  std::shared_ptr<diary> diary_;
};
TEST_P(otp_statems, event_order_of_many_states) {
  in_runtime([] {
    const auto d = std::make_shared<diary>();
    auto m = spawn_actor<counting_up>(d);
    auto done = m.ask_async(ping{});
    words should;
    for (int i = 0; i < 50; ++i) {
      m.tell(number{49 - i});
      should.push_back(std::to_string(i));
    }
    EXPECT_EQ(done.get(), 50);
    EXPECT_EQ(d->all(), should);
    m.stop();
    m.join();
  });
}

// ---- timeouts ----------------------------------------------------------------------------------------------------

struct expired {
  std::string which;
};
struct arm {
  std::string which;
  std::chrono::nanoseconds after;
};
struct disarm {
  std::string which;
};
struct arm_state {};
struct move_on {};
struct armed {
  std::string which;
};

class timing : public state_machine<timing, int> {
 public:
  explicit timing(std::shared_ptr<diary> d) : state_machine{0}, diary_{std::move(d)} {}
  void on(const expired& e) { diary_->note(e.which); }
  void on(const arm& a) { start_timer(a.which, a.after, expired{a.which}); }
  void on(const disarm& a) { diary_->note(cancel_timer(a.which) ? "cancelled" : "none"); }
  bool on(const armed& a) { return has_timer(a.which); }
  void on(arm_state) {
    state_timeout(0ns, expired{"lost"});
    next_state(state() + 1);
    state_timeout(0ns, expired{"replaced"});
    state_timeout(0ns, expired{"cancelled"});
    cancel_state_timeout();
    state_timeout(1h, expired{"late"});
    state_timeout(0ns, expired{"kept"});
  }
  void on(move_on) { next_state(state() + 1); }
  int on(ping) { return state(); }

 private:
  std::shared_ptr<diary> diary_;
};

// state_timeout: ends with its state; the next one replaces it; one of no time at all comes.
TEST_P(otp_statems, state_timeout) {
  in_runtime([] {
    const auto d = std::make_shared<diary>();
    auto m = spawn_actor<timing>(d);
    m.tell(arm_state{});
    await([&] { return !d->all().empty(); });
    m.ask(ping{});
    EXPECT_EQ(d->all(), words{"kept"});
    m.stop();
    m.join();
  });
}

// timeout_cancel_and_update, generic_timer_events: timers with keys are told apart, and go on over changes of state;
// cancelling one that is not there is no error.
TEST_P(otp_statems, timeout_cancel_and_update) {
  in_runtime([] {
    const auto d = std::make_shared<diary>();
    auto m = spawn_actor<timing>(d);
    m.tell(disarm{"a"});
    m.tell(arm{"a", 1h});
    m.tell(arm{"b", 1h});
    m.tell(move_on{});
    EXPECT_TRUE(m.ask(armed{"a"}));
    EXPECT_TRUE(m.ask(armed{"b"}));
    m.tell(disarm{"a"});
    m.tell(disarm{"a"});
    EXPECT_FALSE(m.ask(armed{"a"}));
    EXPECT_EQ(d->all(), (words{"none", "cancelled", "none"}));
    m.tell(arm{"b", 0ns});  // sooner now
    await([&] { return d->all().size() == 4; });
    EXPECT_FALSE(m.ask(armed{"b"}));
    EXPECT_EQ(d->all().back(), "b");
    m.stop();
    m.join();
  });
}

// event_types: a state's timeout, a timer with a key and a receive timeout do not get in each other's way.
class all_timers : public state_machine<all_timers, int> {
 public:
  explicit all_timers(std::shared_ptr<diary> d) : state_machine{0}, diary_{std::move(d)} {
    set_receive_timeout(1ms);
    start_timer("keyed", 1ms, expired{"keyed"});
    state_timeout(1ms, expired{"state"});
  }
  void on(const expired& e) { diary_->note(e.which); }
  void on(const receive_timeout&) {
    diary_->note("quiet");
    cancel_receive_timeout();
  }
  int on(ping) { return 0; }

 private:
  std::shared_ptr<diary> diary_;
};
TEST_P(otp_statems, event_types) {
  in_runtime([] {
    const auto d = std::make_shared<diary>();
    auto m = spawn_actor<all_timers>(d);
    await([&] { return d->all().size() == 3; });
    words all = d->all();
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, (words{"keyed", "quiet", "state"}));
    m.stop();
    m.join();
  });
}

// ---- under a supervisor ------------------------------------------------------------------------------------------

// What a restart makes of a machine: a first state, no timers of the one before; what it had postponed comes again, but
// for calls. (In OTP mail goes with the process.)
TEST_P(otp_statems, restarts) {
  in_runtime([] {
    supervisor sup{{.max_restarts = 100, .within = 1h, .report = [](const child_report&) {}}};
    auto l = sup.spawn_actor<line>();
    l.tell(answer_call{});  // postponed
    auto call = l.ask_async(ping{});
    l.tell(fail_now{});
    EXPECT_THROW(call.get(), actor_down);
    l.tell(connect{});
    const auto phase_of = [&] {
      for (;;) {
        try {
          return l.ask(what_phase{});
        } catch (const actor_down&) {
          this_fiber::yield();
        }
      }
    };
    await([&] { return phase_of() == phase::connected; });
    EXPECT_EQ(sup.restarts(), 1u);
  });
}

}  // namespace
}  // namespace ramie
