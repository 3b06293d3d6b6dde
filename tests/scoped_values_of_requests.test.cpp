// The handler of a request sees what its sender has bound, and so does what it starts and asks.
#include <ramie/fiber/scoped_value.hpp>

#include <ramie/actor/actor.hpp>
#include <ramie/actor/testing.hpp>
#include <ramie/fiber/fork_join.hpp>
#include <ramie/fiber/in_scope.hpp>
#include <ramie/fiber/spawn.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace ramie {
namespace {

using namespace actor_tests;

class asked_with : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, asked_with, few_and_many());

struct traced {
  static inline std::atomic<int> alive{0};
  int n;
  explicit traced(int i) : n{i} { ++alive; }
  traced(const traced&) = delete;
  traced& operator=(const traced&) = delete;
  ~traced() { --alive; }
};
const scoped_value<traced> trace{"trace"};
int seen() {
  const traced* const found = trace.find();
  return found == nullptr ? -1 : found->n;
}

struct look {};
struct look_by_others {};
struct look_later {};
struct fail {};
struct note {
  std::atomic<int>* to;
};
struct spawn_one {
  std::atomic<int>* to;
};

class witness : public actor<witness> {
 public:
  int on(look) { return seen(); }
  int on(look_by_others) {
    const int own = seen();
    int left = -2;
    int right = -2;
    fork_join([&] { left = seen(); }, [&] { right = seen(); });
    int child = -2;
    in_scope([&](scope& s) { s.spawn(fiber_options{}, [&] { child = seen(); }); });
    return own == left && own == right && own == child && own == spawn([] { return seen(); }).join() ? own : -3;
  }
  reply<int> on(look_later) {
    reply<int> later;
    spawn([later] {
      this_fiber::yield();
      later.set_value(seen());
    }).detach();
    return later;
  }
  void on(fail) { throw std::runtime_error{std::to_string(seen())}; }
  void on(note n) { *n.to = seen(); }
  void on(spawn_one s) {
    spawn([to = s.to] { *to = seen(); }).detach();
  }
};

class relay : public actor<relay> {
 public:
  explicit relay(actor_ref<witness> last) : last_{std::move(last)} {}
  int on(look_by_others m) { return last_.ask(m); }
  reply<int> on(look m) { return last_.delegate(m); }

 private:
  actor_ref<witness> last_;
};

/// Keeps its first requests until it is told to go on.
class hoarder : public actor<hoarder> {
 public:
  int on(look) {
    if (!open_) {
      stash();
      return -4;
    }
    return seen();
  }
  void on(fail) {
    open_ = true;
    unstash_all();
  }

 private:
  bool open_ = false;
};

TEST_P(asked_with, handlers_see_what_their_askers_bound) {
  in_runtime([] {
    auto w = spawn_actor<witness>();
    EXPECT_EQ(w.ask(look{}), -1);
    std::vector<join_handle<void>> askers;
    for (int i = 0; i < 20; ++i)
      askers.push_back(spawn([w, i] {
        for (int k = 0; k < scaled(100); ++k) {
          trace.with(100 * i + k, [&] {
            EXPECT_EQ(w.ask(look{}), 100 * i + k);
            EXPECT_EQ(w.ask(look_by_others{}), 100 * i + k);
            EXPECT_EQ(w.ask(look_later{}), 100 * i + k);
            EXPECT_EQ(w.ask_for(1min, look{}), 100 * i + k);
            EXPECT_EQ(w.ask_async(look{}).get(), 100 * i + k);
          });
          EXPECT_EQ(w.ask(look{}), -1);
        }
      }));
    for (auto& a : askers) a.join();
    stop_and_join(w);
  });
  EXPECT_EQ(traced::alive.load(), 0);
}

TEST_P(asked_with, requests_that_are_passed_on_take_it_along) {
  in_runtime([] {
    auto w = spawn_actor<witness>();
    auto r = spawn_actor<relay>(w);
    trace.with(8, [&] {
      EXPECT_EQ(r.ask(look_by_others{}), 8);
      EXPECT_EQ(r.ask(look{}), 8);
    });
    stop_and_join(r, w);
  });
  EXPECT_EQ(traced::alive.load(), 0);
}

TEST_P(asked_with, neither_tells_nor_later_messages_see_it) {
  in_runtime([] {
    std::atomic<int> told{-2};
    std::atomic<int> spawned{-2};
    trace.with(9, [&] {
      auto w = spawn_actor<witness>();
      w.tell(note{&told});
      EXPECT_EQ(w.ask(look{}), 9);
      EXPECT_EQ(told.load(), -1);
      told = -2;
      w.tell(note{&told});
      EXPECT_EQ(w.ask(look{}), 9);
      EXPECT_EQ(told.load(), -1);
      w.ask(spawn_one{&spawned});
      await([&] { return spawned.load() != -2; });
      EXPECT_EQ(spawned.load(), 9);
      stop_and_join(w);
    });
  });
  EXPECT_EQ(traced::alive.load(), 0);
}

TEST_P(asked_with, stashed_requests_keep_it) {
  in_runtime([] {
    auto h = spawn_actor<hoarder>();
    std::vector<future<int>> later;
    for (int i = 0; i < 5; ++i) trace.with(i, [&] { later.push_back(h.ask_async(look{})); });
    h.ask(fail{});
    for (int i = 0; i < 5; ++i) EXPECT_EQ(later[static_cast<std::size_t>(i)].get(), i);
    // One is stashed when the actor ends.
    auto other = spawn_actor<hoarder>();
    trace.with(6, [&] { EXPECT_THROW(static_cast<void>(other.ask_for(20ms, look{})), timeout_error); });
    EXPECT_EQ(traced::alive.load(), 1);
    stop_and_join(h, other);
  });
  EXPECT_EQ(traced::alive.load(), 0);
}

/// Waits in its handler for as long as it is told.
struct hold {
  std::atomic<bool>* go;
};
class holder : public actor<holder> {
 public:
  int on(hold h) {
    while (!h.go->load()) this_fiber::sleep_for(100us);
    return seen();
  }
};

TEST_P(asked_with, nothing_is_kept_of_requests_that_are_not_handled) {
  in_runtime([] {
    std::atomic<bool> go{false};
    auto h = spawn_actor<holder>(actor_options{.mailbox_capacity = 1});
    std::vector<join_handle<void>> askers;
    for (int i = 0; i < 6; ++i)
      askers.push_back(trace.with(i, [&] {
        return spawn([&, h, i] {
          try {
            EXPECT_EQ(h.ask_for(i % 2 == 0 ? 1h : 20ms, hold{&go}), i);
          } catch (const timeout_error&) {
          }
        });
      }));
    for (std::size_t i = 1; i < askers.size(); i += 2) askers[i].join();
    askers[4].request_stop();
    EXPECT_THROW(askers[4].join(), child_cancelled);
    go = true;
    askers[0].join();
    askers[2].join();
    stop_and_join(h);
  });
  EXPECT_EQ(traced::alive.load(), 0);
}

struct started_at {
  static inline std::atomic<int> seen_at_start{-2};
};
class starts : public actor<starts> {
 public:
  starts() { started_at::seen_at_start = seen(); }
  void on(fail) { throw std::runtime_error{"restarted"}; }
  int on(look) { return seen(); }
};

TEST_P(asked_with, constructors_see_what_their_callers_do) {
  in_runtime([] {
    auto s = trace.with(3, [] { return spawn_actor<starts>(); });
    EXPECT_EQ(started_at::seen_at_start.load(), 3);
    EXPECT_EQ(s.ask(look{}), -1);
    stop_and_join(s);
  });
  EXPECT_EQ(traced::alive.load(), 0);
}

TEST_P(asked_with, nothing_is_kept_of_requests_that_fail) {
  in_runtime([] {
    auto w = spawn_actor<witness>();
    trace.with(10, [&] {
      try {
        w.ask(fail{});
        ADD_FAILURE() << "its handler threw";
      } catch (const actor_down& e) {
        EXPECT_THROW(std::rethrow_exception(e.reason().exception()), std::runtime_error);
      }
      EXPECT_THROW(static_cast<void>(w.ask(look{})), actor_down);
      EXPECT_THROW(static_cast<void>(w.ask_async(look{}).get()), actor_down);
    });
    static_cast<void>(w.join());
  });
  EXPECT_EQ(traced::alive.load(), 0);
}

}  // namespace
}  // namespace ramie
