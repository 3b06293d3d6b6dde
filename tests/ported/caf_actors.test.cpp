// Behaviours after the unit tests of CAF, the C++ Actor Framework (libcaf_core/tests/legacy and caf/*.test.cpp), as
// programs for ramie; each names its origin. Cases that do not apply: what tests CAF's own parts (inspectors, settings,
// logger, streams, type ids, intrusive containers), message views and tuples (a message is a C++ type), sequencer and
// adapter (removed from CAF), actor_profiler.
#include <ramie/ramie.hpp>

#include <ramie/fiber/testing.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace ramie {
namespace {

using namespace fiber_tests;

struct get {};
struct put {
  int n = 0;
};
struct fail_now {};
struct leave {};

class cell_of_int : public actor<cell_of_int> {
 public:
  explicit cell_of_int(int n = 0) : n_{n} {}
  void on(put p) { n_ = p.n; }
  int on(get) { return n_; }
  void on(fail_now) { throw std::runtime_error{"failed"}; }
  void on(leave) { stop(); }

 private:
  int n_;
};

template <class... Refs>
void end(const Refs&... refs) {
  (refs.stop(), ...);
  (refs.join(), ...);
}

class caf_tests : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, caf_tests, few_and_many());

// message_lifetime: a message that is passed on and on is copied no more often than it has to be, and none is left.
TEST_P(caf_tests, message_lifetime) {
  struct parcel {
    counted what;
  };
  class postman : public actor<postman> {
   public:
    void on(parcel p) {
      if (next_) next_.tell(std::move(p));
      else last_ = std::move(p.what);
    }
    void on(const actor_ref<postman>& next) { next_ = next; }
    int on(get) { return last_.value; }

   private:
    actor_ref<postman> next_;
    counted last_;
  };
  counted::reset();
  in_runtime([] {
    std::vector<actor_ref<postman>> all;
    for (int i = 0; i < 10; ++i) {
      all.push_back(spawn_actor<postman>());
      if (i != 0) all[static_cast<std::size_t>(i - 1)].tell(all.back());
    }
    all.front().tell(parcel{counted{5}});
    await([&] { return all.back().ask(get{}) == 5; });
    EXPECT_EQ(counted::copies.load(), 0);
    for (const auto& a : all) a.stop();
    for (const auto& a : all) a.join();
  });
  EXPECT_EQ(counted::alive.load(), 0);
}

// request_response, single_awaited_request, single_multiplexed_request, multiple_*, nested requests: continuations of
// an actor that asks run one at a time, interleaved with its other messages.
TEST_P(caf_tests, request_response) {
  struct start {
    actor_ref<cell_of_int> whom;
  };
  class asking : public actor<asking> {
   public:
    void on(const start& s) {
      ask_then(s.whom, get{}, [this, whom = s.whom](answer<int> first) {
        sum_ += first.value();
        ask_then(whom, get{}, [this](answer<int> second) { sum_ += 100 * second.value(); });
      });
    }
    int on(get) { return sum_; }

   private:
    int sum_ = 0;
  };
  in_runtime([] {
    auto c = spawn_actor<cell_of_int>(3);
    auto a = spawn_actor<asking>();
    for (int i = 0; i < 5; ++i) a.tell(start{c});
    await([&] { return a.ask(get{}) == 5 * 303; });
    end(a, c);
  });
}

// An error of a request is a value to a continuation, or ends the one who does not look; and an exception to `ask`.
TEST_P(caf_tests, request_errors) {
  struct start {
    actor_ref<cell_of_int> whom;
    bool looks;
  };
  class asking : public actor<asking> {
   public:
    void on(const start& s) {
      ask_then(s.whom, get{}, [this, looks = s.looks](answer<int> a) {
        if (looks) failed_ = !a;
        else static_cast<void>(a.value());
      });
    }
    bool on(get) { return failed_; }

   private:
    bool failed_ = false;
  };
  in_runtime([] {
    auto dead = spawn_actor<cell_of_int>();
    end(dead);
    auto a = spawn_actor<asking>();
    a.tell(start{dead, true});
    await([&] { return a.ask(get{}); });
    a.tell(start{dead, false});
    EXPECT_EQ(a.join().kind(), exit_kind::failed);
    EXPECT_THROW(std::rethrow_exception(a.reason().exception()), actor_down);
  });
}

// request_timeout: single, nested, multiplexed: each in its turn, none twice.
TEST_P(caf_tests, request_timeout) {
  class silent : public actor<silent> {
   public:
    reply<int> on(get) {
      reply<int> later;
      kept_.push_back(later);
      return later;
    }

   private:
    std::vector<reply<int>> kept_;
  };
  struct start {
    actor_ref<silent> whom;
  };
  class asking : public actor<asking> {
   public:
    void on(const start& s) {
      for (int i = 0; i < 3; ++i)
        ask_then_for(1ms, s.whom, get{}, [this, whom = s.whom](answer<int> a) {
          if (times_out(std::move(a)) && ++timeouts_ <= 3)
            ask_then_for(1ms, whom, get{}, [this](answer<int> b) { timeouts_ += times_out(std::move(b)) ? 1 : 0; });
        });
    }
    int on(get) { return timeouts_; }

   private:
    static bool times_out(answer<int> a) {
      try {
        a.value();
        return false;
      } catch (const timeout_error&) {
        return true;
      }
    }
    int timeouts_ = 0;
  };
  in_runtime([] {
    auto s = spawn_actor<silent>();
    auto a = spawn_actor<asking>();
    a.tell(start{s});
    await([&] { return a.ask(get{}) >= 5; });
    end(a, s);
  });
}

// response_promise: kept, answered by somebody else, broken, delegated over several actors.
TEST_P(caf_tests, response_promise) {
  struct question {
    int n = 0;
  };
  class adder : public actor<adder> {
   public:
    int on(question q) {
      if (q.n < 0) throw std::runtime_error{"negative"};
      return q.n + 1;
    }
  };
  class passing : public actor<passing> {
   public:
    explicit passing(actor_ref<adder> to) : to_{std::move(to)} {}
    reply<int> on(question q) { return to_.delegate(q); }

   private:
    actor_ref<adder> to_;
  };
  class front : public actor<front> {
   public:
    explicit front(actor_ref<passing> to) : to_{std::move(to)} {}
    reply<int> on(question q) {
      if (q.n == 100) return {};  // broken
      reply<int> mine;
      ask_then(to_, q, [mine](answer<int> a) {
        if (a) mine.set_value(10 * a.value());
        else mine.set_exception(a.failure());
      });
      return mine;
    }

   private:
    actor_ref<passing> to_;
  };
  in_runtime([] {
    auto a = spawn_actor<adder>();
    auto p = spawn_actor<passing>(a);
    auto f = spawn_actor<front>(p);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(f.ask(question{i}), 10 * (i + 1));
    EXPECT_THROW(f.ask(question{100}), broken_reply);
    EXPECT_THROW(f.ask(question{-1}), actor_down);  // the adder failed
    EXPECT_THROW(f.ask(question{1}), actor_down);
    EXPECT_FALSE(a.alive());
    end(f, p);
  });
}

/// A reply that is returned twice is a mistake of the handler's, and the second to ask is told so.
TEST_P(caf_tests, response_promise_of_two_requests) {
  class twice : public actor<twice> {
   public:
    reply<int> on(get) { return one_; }
    void on(put p) { one_.set_value(p.n); }

   private:
    reply<int> one_;
  };
  class asking : public actor<asking> {
   public:
    void on(const actor_ref<twice>& t) {
      for (int i = 0; i < 2; ++i) ask_then(t, get{}, [this](answer<int> a) { failed_ += a ? 0 : 1; });
    }
    int on(get) { return failed_; }

   private:
    int failed_ = 0;
  };
  in_runtime([] {
    {
      auto t = spawn_actor<twice>();
      auto first = t.ask_async(get{});
      EXPECT_THROW(t.ask(get{}), actor_down);
      EXPECT_EQ(t.join().kind(), exit_kind::failed);
      EXPECT_THROW(first.get(), actor_down);
    }
    {
      auto t = spawn_actor<twice>();
      auto first = t.ask_async(get{});
      auto second = t.ask_async(get{});
      EXPECT_THROW(second.get(), actor_down);
      EXPECT_THROW(first.get(), actor_down);
    }
    auto t = spawn_actor<twice>();
    auto a = spawn_actor<asking>();
    a.tell(t);
    await([&] { return a.ask(get{}) == 2; });
    EXPECT_EQ(t.join().kind(), exit_kind::failed);
    end(a);
  });
}

// dynamic_spawn: mirrors, chains of spawned actors, an actor whose children spawn children; all end.
TEST_P(caf_tests, dynamic_spawn) {
  static std::atomic<int> alive;
  alive = 0;
  struct grow {
    int levels = 0;
  };
  class tree : public actor<tree> {
   public:
    tree() { ++alive; }
    ~tree() { --alive; }
    reply<int> on(grow g) {
      reply<int> all;
      if (g.levels == 0) {
        all.set_value(1);
        stop();
        return all;
      }
      for (int i = 0; i < 3; ++i) {
        auto child = spawn_actor<tree>();
        ask_then(child, grow{g.levels - 1}, [this, all](answer<int> a) {
          sum_ += a.value();
          if (++answers_ < 3) return;
          all.set_value(sum_ + 1);
          stop();
        });
      }
      return all;
    }

   private:
    int sum_ = 0;
    int answers_ = 0;
  };
  in_runtime([] {
    auto root = spawn_actor<tree>();
    EXPECT_EQ(root.ask(grow{5}), 364);
    root.join();
    await([] { return alive.load() == 0; });
  });
}

// behavior, or_else, unbecome in a nested behaviour: a stack of behaviours, each of which takes some messages.
TEST_P(caf_tests, behaviours) {
  class changing : public actor<changing> {
   public:
    std::string on(get) { return "first"; }
    void on(put p) {
      if (p.n == 0) return unbecome();
      become([p](get) { return "level " + std::to_string(p.n); },
             [this](put q) {
               if (q.n == 0) unbecome();
               else on(q);
             });
    }
  };
  in_runtime([] {
    auto c = spawn_actor<changing>();
    EXPECT_EQ(c.ask(get{}), "first");
    for (int i = 1; i < 10; ++i) {
      c.tell(put{i});
      EXPECT_EQ(c.ask(get{}), "level " + std::to_string(i));
    }
    c.tell(put{0});
    EXPECT_EQ(c.ask(get{}), "first");
    c.tell(put{});
    EXPECT_EQ(c.ask(get{}), "first");
    end(c);
  });
}

// constructor_attach: what watches an actor from its constructor on hears of an end in it, too.
TEST_P(caf_tests, constructor_attach) {
  class testee : public actor<testee> {
   public:
    testee(const any_actor& buddy, bool leaves) {
      link(buddy);
      if (leaves) stop();
    }
    void on(leave) { stop(); }
  };
  class buddy : public actor<buddy> {
   public:
    void on(const exit_signal& s) { ends_.push_back(s.reason.kind()); }
    std::vector<exit_kind> on(get) { return ends_; }

   private:
    std::vector<exit_kind> ends_;
  };
  in_runtime([] {
    auto b = spawn_actor<buddy>();
    auto one = spawn_actor<testee>(any_actor{b}, true);
    one.join();
    auto two = spawn_actor<testee>(any_actor{b}, false);
    two.tell(leave{});
    two.join();
    EXPECT_EQ(b.ask(get{}), (std::vector<exit_kind>{exit_kind::stopped, exit_kind::stopped}));
    end(b);
  });
}

// custom_exception_handler: by the supervisor's `decide`.
TEST_P(caf_tests, custom_exception_handler) {
  struct fails_with {
    int what;
  };
  class failing : public actor<failing> {
   public:
    void on(fails_with f) {
      if (f.what == 0) throw std::runtime_error{"whatever"};
      throw std::logic_error{"mine"};
    }
  };
  in_runtime([] {
    supervisor sup{{.decide =
                        [](const child_report& r) {
                          try {
                            std::rethrow_exception(r.why.exception());
                          } catch (const std::logic_error&) {
                            return child_decision::forget;
                          } catch (...) {
                            return child_decision::as_usual;
                          }
                        },
                    .report = [](const child_report&) {}}};
    auto a = sup.spawn_actor<failing>();
    a.tell(fails_with{0});
    a.tell(fails_with{1});
    EXPECT_THROW(std::rethrow_exception(a.join().exception()), std::logic_error);
    EXPECT_EQ(sup.restarts(), 1u);
    EXPECT_TRUE(sup.children().empty());
  });
}

// blocking_actor: catch_all, receive with a condition, timeouts between messages; what is left over comes later.
TEST_P(caf_tests, blocking_actor) {
  in_runtime([] {
    std::vector<std::string> got;
    auto f = spawn_actor<int, std::string, put>([&](mailbox<int, std::string, put>& box) {
      const auto text = box.receive_if<std::string>([](const std::string& s) { return s.size() > 1; });
      got.push_back(*text);
      const auto big = box.receive_if_for<int>(1h, [](int n) { return n > 2; });
      got.push_back(std::to_string(*big));
      if (!box.receive_if_for<int>(1ms, [](int n) { return n > 100; })) got.push_back("timeout");
      while (auto m = box.receive()) {
        if (const int* n = std::get_if<int>(&*m)) got.push_back(std::to_string(*n));
        if (const auto* s = std::get_if<std::string>(&*m)) got.push_back(*s);
        if (std::holds_alternative<put>(*m)) return;
      }
    });
    for (int i = 1; i < 5; ++i) f.tell(i);
    f.tell(std::string{"x"});
    f.tell(std::string{"xyz"});
    f.tell(put{});
    EXPECT_EQ(f.join().kind(), exit_kind::stopped);
    EXPECT_EQ(got, (std::vector<std::string>{"xyz", "3", "timeout", "1", "2", "4", "x"}));
  });
}

// actor_pool (round robin, random, broadcast, split): by a router; a member that ends is left out, also while it is
// used.
TEST_P(caf_tests, actor_pool) {
  in_runtime([] {
    for (const routing policy : {routing::round_robin, routing::random, routing::least_mail}) {
      router<cell_of_int> all{policy};
      std::vector<actor_ref<cell_of_int>> members;
      for (int i = 0; i < 6; ++i) {
        members.push_back(spawn_actor<cell_of_int>(i));
        all.add(members.back());
      }
      std::atomic<int> answers{0};
      scope asking;
      for (int i = 0; i < 8; ++i)
        asking.spawn([&] {
          for (int n = 0; n < 50; ++n) {
            try {
              all.ask(get{});
              ++answers;
            } catch (const actor_down&) {  // it ended just then
            }
          }
        });
      members[0].kill();
      members[3].tell(fail_now{});
      asking.join();
      members[0].join();
      members[3].join();
      EXPECT_GE(answers.load(), 8 * 50 - 100);
      EXPECT_EQ(all.members().size(), 4u);
      for (int i = 0; i < 100; ++i) all.ask(get{});
      for (const auto& m : all.members()) end(m);
      EXPECT_THROW(all.ask(get{}), actor_down);
    }
  });
}

// prioritized mailboxes (mailbox_policy, policy/*): urgent mail overtakes, whatever is put aside meanwhile.
TEST_P(caf_tests, urgent_messages_and_a_stash) {
  struct urgent_one {
    int n;
  };
  class keeping : public actor<keeping> {
   public:
    void on(leave) { go_.wait(); }
    void on(put p) {
      if (!open_) return stash();
      seen_.push_back(p.n);
    }
    void on(urgent_one u) {
      seen_.push_back(u.n);
      if (u.n == 2) {
        open_ = true;
        unstash_all();
      }
    }
    std::vector<int> on(get) { return seen_; }
    explicit keeping(ramie::event& go) : go_{go} {}

   private:
    ramie::event& go_;
    bool open_ = false;
    std::vector<int> seen_;
  };
  in_runtime([] {
    ramie::event go;
    auto k = spawn_actor<keeping>(std::ref(go));
    k.tell(put{10});
    k.tell(put{11});
    k.tell(leave{});
    k.tell(put{12});
    k.tell_urgent(urgent_one{1});
    k.tell_urgent(urgent_one{2});
    k.tell_urgent(urgent_one{3}, 5);
    go.set();
    auto seen = k.ask(get{});
    std::vector<int> of_puts;
    for (const int n : seen)
      if (n >= 10) of_puts.push_back(n);
    EXPECT_EQ(of_puts, (std::vector<int>{10, 11, 12}));
    EXPECT_EQ(seen.size(), 6u);
    end(k);
  });
}

// actor_lifetime, actor_termination: each state is destroyed once, also of those that nobody knows any more.
TEST_P(caf_tests, actor_lifetime) {
  static std::atomic<int> alive;
  alive = 0;
  class testee : public actor<testee> {
   public:
    testee() { ++alive; }
    ~testee() { --alive; }
    void on(put) {}
    void on(const any_actor& other) { monitor(other); }
    void on(const down&) { stop(); }
  };
  in_runtime([] {
    for (int i = 0; i < scaled(200); ++i) {
      auto watched = spawn_actor<testee>();
      auto watching = spawn_actor<testee>();
      watching.tell(any_actor{watched});
      if (i % 2 == 0) watched.stop();
      else watched.kill();
      watched = {};
      watching.join();
    }
    await([] { return alive.load() == 0; });
    for (int i = 0; i < 100; ++i) spawn_actor<testee>().tell(put{});
  });
  EXPECT_EQ(alive.load(), 0);
}

// actor_registry: a name is given once, and is free when its actor has ended.
TEST_P(caf_tests, actor_registry) {
  in_runtime([] {
    auto a = spawn_actor<cell_of_int>(1);
    auto b = spawn_actor<cell_of_int>(2);
    EXPECT_TRUE(register_name("foo", a));
    EXPECT_FALSE(register_name("foo", b));
    EXPECT_EQ(whereis<cell_of_int>("foo")->ask(get{}), 1);
    EXPECT_TRUE(unregister_name("foo"));
    EXPECT_FALSE(whereis<cell_of_int>("foo"));
    EXPECT_TRUE(register_name("foo", b));
    EXPECT_THROW(b.ask(fail_now{}), actor_down);
    EXPECT_TRUE(register_name("foo", a));
    end(a);
  });
}

// simple_timeout, inactivity timeouts: told again and again, until something else comes in between.
TEST_P(caf_tests, simple_timeout) {
  class pinging : public actor<pinging> {
   public:
    pinging() { set_receive_timeout(100us); }
    void on(const receive_timeout&) {
      if (++quiet_ == 5) cancel_receive_timeout();
    }
    int on(get) { return quiet_; }

   private:
    int quiet_ = 0;
  };
  in_runtime([] {
    auto p = spawn_actor<pinging>();
    for (int quiet = 0; quiet != 5; quiet = p.ask(get{})) this_fiber::sleep_for(1ms);
    this_fiber::sleep_for(2ms);
    EXPECT_EQ(p.ask(get{}), 5);
    end(p);
  });
}

}  // namespace
}  // namespace ramie
