// Behaviours after the tests of OTP's gen_server (lib/stdlib/test/gen_server_SUITE.erl) and of its processes' signals
// (erts/emulator/test: process_SUITE, exit and trap_exit; signal_SUITE), as programs for ramie; each names its origin.
// Cases that do not apply:
//   call_remote*, cast_*_remote, multicall_*, otp_*_remote   several nodes: ramie::cluster
//   spec_init*, otp_5854, undef_*, loop_start_fail           call-backs that are missing, ways to start that are one here
//   hibernate, auto_hibernate                                an idle actor has no stack to give back
//   *_format_status, get_state, replace_state, format_log_*  there is no `sys`, and no logger
//   reply_by_alias_*                                         no aliases: a late answer reaches nobody anyway
#include <ramie/ramie.hpp>

#include <ramie/fiber/testing.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ramie {
namespace {

using namespace fiber_tests;

struct call {
  int n = 0;
};
struct call_late {  // answered after that many casts
  int n = 0;
};
struct cast {};
struct crash {};
struct stop_with_answer {};
struct stop_with {
  std::string why;
};
struct slow_call {};
struct pending {};
struct boom {
  int n;
};

class server : public actor<server> {
 public:
  explicit server(std::shared_ptr<std::atomic<int>> ended = {}) : ended_{std::move(ended)} {}
  ~server() {
    if (ended_) ++*ended_;
  }
  int on(call c) { return c.n + 1; }
  reply<int> on(call_late c) {
    reply<int> later;
    waiting_.emplace_back(c.n, later);
    return later;
  }
  void on(cast) {
    ++casts_;
    std::erase_if(waiting_, [&](auto& w) {
      if (--w.first > 0) return false;
      w.second.set_value(casts_);
      return true;
    });
  }
  int on(crash) { throw std::runtime_error{"crashed"}; }
  int on(boom b) { throw b; }
  int on(stop_with_answer) {
    stop();
    return 1;
  }
  void on(const stop_with& s) { stop(exit_reason::of(s.why)); }
  int on(slow_call) {
    this_fiber::sleep_for(1h);
    return 0;
  }
  std::size_t on(pending) { return waiting_.size(); }

 private:
  std::deque<std::pair<int, reply<int>>> waiting_;
  int casts_ = 0;
  std::shared_ptr<std::atomic<int>> ended_;
};

class otp_servers : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, otp_servers, few_and_many());

// crash: the one who called hears why, and finds it ended.
TEST_P(otp_servers, crash) {
  in_runtime([] {
    for (int i = 0; i < scaled(300); ++i) {
      auto s = spawn_actor<server>();
      auto waits = s.ask_async(call_late{5});
      try {
        if (i % 2 == 0) s.ask(crash{});
        else s.ask(boom{i});
        ADD_FAILURE() << "it answered";
      } catch (const actor_down& down) {
        EXPECT_EQ(down.reason().kind(), exit_kind::failed);
        if (i % 2 == 0) {
          EXPECT_THROW(std::rethrow_exception(down.reason().exception()), std::runtime_error);
        } else {
          EXPECT_THROW(std::rethrow_exception(down.reason().exception()), boom);
        }
      }
      EXPECT_FALSE(s.alive());
      EXPECT_EQ(s.join().kind(), exit_kind::failed);
      EXPECT_THROW(waits.get(), actor_down);
      EXPECT_THROW(s.ask(call{}), actor_down);  // noproc
    }
  });
}

// call, call_with_huge_message_queue, cast: order from one sender is kept between casts and calls, whatever waits.
TEST_P(otp_servers, call_with_huge_message_queue) {
  in_runtime([] {
    auto s = spawn_actor<server>();
    auto late = s.ask_async(call_late{scaled(100'000)});
    for (int i = 0; i < scaled(100'000) - 1; ++i) s.tell(cast{});
    EXPECT_EQ(s.ask(pending{}), 1u);
    s.tell(cast{});
    EXPECT_EQ(s.ask(pending{}), 0u);
    EXPECT_EQ(late.get(), scaled(100'000));
    EXPECT_EQ(s.ask(call{1}), 2);
    s.stop();
    s.join();
  });
}

// call with a time-out: the caller goes on, the late answer reaches nobody, the server is as before.
TEST_P(otp_servers, call_timeouts) {
  in_runtime([] {
    auto s = spawn_actor<server>();
    for (int i = 0; i < 20; ++i) EXPECT_THROW(s.ask_for(0ns, call_late{1}), timeout_error);
    EXPECT_EQ(s.ask(pending{}), 20u);
    s.tell(cast{});
    EXPECT_EQ(s.ask(pending{}), 0u);
    EXPECT_EQ(s.ask(call{5}), 6);
    s.stop();
    s.join();
  });
}

// send_request, send_request_receive_reqid_collection: many requests under way, whose answers come in another order.
TEST_P(otp_servers, send_request) {
  in_runtime([] {
    auto s = spawn_actor<server>();
    std::vector<future<int>> all;
    for (int i = 1; i <= 10; ++i) all.push_back(s.ask_async(call_late{11 - i}));
    for (int i = 0; i < 10; ++i) s.tell(cast{});
    for (int i = 1; i <= 10; ++i) EXPECT_EQ(all[static_cast<std::size_t>(i - 1)].get(), 11 - i);
    auto never = s.ask_async(call_late{100});
    s.stop();
    s.join();
    EXPECT_THROW(never.get(), actor_down);
  });
}

// stop1 to stop10, start*, terminate: its destructor has run, once, when the waiter for its end goes on.
TEST_P(otp_servers, stop) {
  in_runtime([] {
    for (int how = 0; how < 6; ++how) {
      const auto ended = std::make_shared<std::atomic<int>>(0);
      auto s = spawn_actor<server>(ended);
      exit_kind kind = exit_kind::stopped;
      if (how == 0) s.stop();
      if (how == 1) {
        EXPECT_EQ(s.ask(stop_with_answer{}), 1);
      }
      if (how == 2) {
        s.stop(exit_reason{exit_kind::shutdown});
        kind = exit_kind::shutdown;
      }
      if (how == 3) {
        s.tell(stop_with{"done"});
        kind = exit_kind::custom;
      }
      if (how == 4) {
        s.kill();
        kind = exit_kind::killed;
      }
      if (how == 5) {
        s.exit(exit_reason{exit_kind::stopped});  // normal: nothing happens
        EXPECT_EQ(s.ask(call{1}), 2);
        s.exit(exit_reason::of(5));
        kind = exit_kind::custom;
      }
      EXPECT_EQ(s.join().kind(), kind);
      EXPECT_EQ(ended->load(), 1);
      if (how == 5) {
        EXPECT_EQ(*s.reason().as<int>(), 5);
      }
    }
  });
}

// A call of one that is killed while it is at work: the caller is told that it was killed.
TEST_P(otp_servers, call_of_one_that_is_killed) {
  in_runtime([] {
    auto s = spawn_actor<server>();
    auto slow = s.ask_async(slow_call{});
    auto behind = s.ask_async(call{});
    await([&] { return s.mail_count() == 1; });
    s.kill();
    for (auto* f : {&slow, &behind}) {
      try {
        f->get();
        ADD_FAILURE() << "it answered";
      } catch (const actor_down& down) {
        EXPECT_EQ(down.reason().kind(), exit_kind::killed);
      }
    }
  });
}

// continue: what a constructor tells itself urgently is handled before anything that others can have sent.
class continuing : public actor<continuing> {
 public:
  continuing() { self().tell_urgent(cast{}); }
  void on(cast) { ready_ = true; }
  bool on(call) { return ready_; }

 private:
  bool ready_ = false;
};
TEST_P(otp_servers, continue_after_init) {
  in_runtime([] {
    for (int i = 0; i < scaled(200); ++i) {
      auto c = spawn_actor<continuing>();
      EXPECT_TRUE(c.ask(call{}));
      c.stop();
      c.join();
    }
  });
}

// multicall, abcast: by a router; those that have ended do not answer.
TEST_P(otp_servers, abcast_and_multicall) {
  in_runtime([] {
    std::vector<actor_ref<server>> all;
    for (int i = 0; i < 5; ++i) all.push_back(spawn_actor<server>());
    router<server> every{routing::round_robin, all};
    auto late = all[3].ask_async(call_late{1});
    all[1].kill();
    all[1].join();
    EXPECT_EQ(every.broadcast(cast{}).taken, 4u);
    EXPECT_EQ(late.get(), 1);
    for (const auto& s : every.members()) EXPECT_EQ(s.ask(call{1}), 2);
    EXPECT_EQ(every.ask_first(call{1}), 2);
    for (const auto& s : all) s.stop();
    for (const auto& s : all) s.join();
    EXPECT_THROW(every.ask_first(call{1}), actor_down);
    EXPECT_EQ(every.tell(cast{}), tell_status::down);
  });
}

// ---- signals -----------------------------------------------------------------------------------------------------

struct tie_to {
  any_actor whom;
};
struct untie {
  any_actor whom;
};
struct told {};
using signals = std::vector<std::pair<any_actor, exit_kind>>;
class trapping : public actor<trapping> {
 public:
  void on(const tie_to& t) { link(t.whom); }
  void on(const untie& t) { unlink(t.whom); }
  void on(const exit_signal& s) { heard_.emplace_back(s.who, s.reason.kind()); }
  signals on(told) { return heard_; }

 private:
  signals heard_;
};
/// What it has heard, once that is something.
signals first_heard(const actor_ref<trapping>& t) {
  await([&] { return !t.ask(told{}).empty(); });
  return t.ask(told{});
}
class linked : public actor<linked> {
 public:
  void on(const tie_to& t) { link(t.whom); }
  int on(call) { return 1; }
  void on(crash) { throw cancelled{}; }
};

// link to a process that is dead (noproc), trap_exit_badarg and the like: with the reason of its end here.
TEST_P(otp_servers, link_to_what_has_ended) {
  in_runtime([] {
    for (const bool normal : {true, false}) {
      auto dead = spawn_actor<server>();
      if (normal) dead.stop();
      else dead.kill();
      dead.join();
      auto t = spawn_actor<trapping>();
      t.tell(tie_to{dead});
      const auto heard = first_heard(t);
      ASSERT_EQ(heard.size(), 1u);
      EXPECT_EQ(heard[0].second, normal ? exit_kind::stopped : exit_kind::killed);
      auto l = spawn_actor<linked>();
      l.tell(tie_to{dead});
      if (normal) {
        EXPECT_EQ(l.ask(call{}), 1);
        l.stop();
      }
      EXPECT_EQ(l.join().kind(), normal ? exit_kind::stopped : exit_kind::linked);
      t.stop();
      t.join();
    }
  });
}

// exit signals go through a chain, up to one that traps them; it hears of its neighbour alone.
TEST_P(otp_servers, exits_go_along_a_chain_until_they_are_trapped) {
  in_runtime([] {
    for (int i = 0; i < scaled(50); ++i) {
      std::vector<actor_ref<linked>> chain;
      for (int n = 0; n < 20; ++n) {
        chain.push_back(spawn_actor<linked>());
        if (n != 0) chain.back().tell(tie_to{chain[static_cast<std::size_t>(n - 1)]});
      }
      auto last = spawn_actor<trapping>();
      last.tell(tie_to{chain.back()});
      last.ask(told{});
      for (const auto& l : chain) l.ask(call{});
      chain.front().tell(crash{});
      for (const auto& l : chain) l.join();
      EXPECT_EQ(chain.front().reason().kind(), exit_kind::failed);
      EXPECT_EQ(chain.back().reason().kind(), exit_kind::linked);
      const auto heard = first_heard(last);
      ASSERT_EQ(heard.size(), 1u);
      EXPECT_EQ(heard[0].first, chain.back());
      EXPECT_TRUE(last.alive());
      last.stop();
      last.join();
    }
  });
}

// unlink: after it has been handled nothing is heard of an end that comes later.
TEST_P(otp_servers, unlink) {
  in_runtime([] {
    for (int i = 0; i < scaled(200); ++i) {
      auto s = spawn_actor<server>();
      auto t = spawn_actor<trapping>();
      t.tell(tie_to{s});
      t.tell(untie{s});
      EXPECT_TRUE(t.ask(told{}).empty());
      s.kill();
      s.join();
      EXPECT_TRUE(t.ask(told{}).empty());
      t.stop();
      t.join();
    }
  });
}

// A link and an end that cross: heard of exactly once, with the right reason, whichever came first.
TEST_P(otp_servers, link_and_exit_race) {
  in_runtime([] {
    for (int i = 0; i < scaled(2000); ++i) {
      auto s = spawn_actor<server>();
      auto t = spawn_actor<trapping>();
      fork_join([&] { t.tell(tie_to{s}); }, [&] { s.stop(); });
      s.join();
      const auto heard = first_heard(t);
      ASSERT_EQ(heard.size(), 1u);
      EXPECT_EQ(heard[0].second, exit_kind::stopped);
      t.stop();
      t.join();
    }
  });
}

}  // namespace
}  // namespace ramie
