// Answers that come as messages, with a time limit.
#include <ramie/actor/actor.hpp>

#include <ramie/actor/testing.hpp>
#include <ramie/supervise/supervisor.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <stdexcept>
#include <utility>

namespace ramie {
namespace {

using namespace actor_tests;

class answers : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, answers, few_and_many());

struct take {};
struct put {
  int n;
};
struct drop_all {};
struct crash {};
struct waiting {};

/// Those who take wait for what others put.
class shelf : public actor<shelf> {
 public:
  reply<int> on(take) {
    reply<int> later;
    if (stock_.empty()) {
      wanted_.push_back(later);
    } else {
      later.set_value(stock_.front());
      stock_.pop_front();
    }
    return later;
  }
  void on(put p) {
    if (wanted_.empty()) {
      stock_.push_back(p.n);
      return;
    }
    wanted_.front().set_value(p.n);
    wanted_.pop_front();
  }
  void on(drop_all) { wanted_.clear(); }
  std::size_t on(waiting) { return wanted_.size(); }

 private:
  std::deque<reply<int>> wanted_;
  std::deque<int> stock_;
};

void await_waiting(const actor_ref<shelf>& s, std::size_t n) {
  await([&] { return s.ask(waiting{}) == n; });
}

/// Asks with a time limit, and counts what comes of it.
class impatient : public actor<impatient> {
 public:
  struct begin {
    std::chrono::nanoseconds timeout;
  };
  struct counts {
    int answers = 0;
    int late = 0;
    int other = 0;
    friend bool operator==(const counts&, const counts&) = default;
  };
  struct look {};
  explicit impatient(actor_ref<shelf> from, std::shared_ptr<int> kept = {})
      : from_{std::move(from)}, kept_{std::move(kept)} {}
  void on(begin b) {
    ask_then_for(b.timeout, from_, take{}, [this, kept = kept_](answer<int> a) {
      EXPECT_THROW(stash(), usage_error);
      try {
        a.value();
        ++seen_.answers;
      } catch (const timeout_error&) {
        ++seen_.late;
      } catch (const error&) {
        ++seen_.other;
      }
    });
  }
  void on(crash) { throw std::runtime_error{"crash"}; }
  counts on(look) { return seen_; }

 private:
  actor_ref<shelf> from_;
  std::shared_ptr<int> kept_;
  counts seen_;
};
using outcome = impatient::counts;

TEST_P(answers, are_awaited_for_a_time) {
  in_runtime([] {
    const auto kept = std::make_shared<int>(1);
    auto s = spawn_actor<shelf>();
    auto a = spawn_actor<impatient>(s, kept);
    const auto sees = [&](outcome wanted) { await([&] { return a.ask(impatient::look{}) == wanted; }); };
    s.tell(put{1});
    a.tell(impatient::begin{1h});
    sees({1, 0, 0});
    a.tell(impatient::begin{1ms});  // nobody answers
    sees({1, 1, 0});
    s.tell(put{2});  // too late: that one is dropped
    a.tell(impatient::begin{std::chrono::nanoseconds::max()});
    await_waiting(s, 1);
    s.tell(put{3});
    sees({2, 1, 0});
    a.tell(impatient::begin{0ns});
    sees({2, 2, 0});
    s.tell(drop_all{});
    a.tell(impatient::begin{1h});
    await_waiting(s, 1);
    s.tell(drop_all{});  // broken_reply
    sees({2, 2, 1});
    stop_and_join(s);
    a.tell(impatient::begin{1h});  // actor_down
    sees({2, 2, 2});
    stop_and_join(a);
    await([&] { return kept.use_count() == 1; });  // no timer of an hour keeps anything
  });
}

TEST_P(answers, that_are_awaited_for_a_time_come_once) {
  in_runtime([] {
    auto s = spawn_actor<shelf>();
    auto a = spawn_actor<impatient>(s);
    const int n = scaled(500);
    for (int i = 0; i < n; ++i) {
      a.tell(impatient::begin{std::chrono::microseconds{i % 50}});
      s.tell(put{i});
    }
    await([&] {
      const outcome o = a.ask(impatient::look{});
      EXPECT_LE(o.answers + o.late, n);
      EXPECT_EQ(o.other, 0);
      return o.answers + o.late == n;
    });
    stop_and_join(s, a);
  });
}

TEST_P(answers, that_are_awaited_for_a_time_do_not_wait_for_room) {
  class busy : public actor<busy> {
   public:
    explicit busy(fiber_tests::event& go) : go_{go} {}
    int on(take) {
      go_.wait();
      return 1;
    }

   private:
    fiber_tests::event& go_;
  };
  class asking : public actor<asking> {
   public:
    explicit asking(actor_ref<busy> b) : busy_{std::move(b)} {}
    int on(take) {
      ask_then_for(1ms, busy_, take{}, [this](answer<int> a) {
        EXPECT_FALSE(a);
        ++failed_;
      });
      return failed_;
    }

   private:
    actor_ref<busy> busy_;
    int failed_ = 0;
  };
  in_runtime([] {
    fiber_tests::event go;
    auto b = spawn_actor<busy>(actor_options{.mailbox_capacity = 1}, go);
    auto running = b.ask_async(take{});
    await([&] { return go.parked() == 1; });
    auto queued = b.ask_async(take{});
    auto a = spawn_actor<asking>(b);
    EXPECT_EQ(a.ask(take{}), 0);
    await([&] { return a.ask(take{}) >= 1; });
    go.set();
    EXPECT_EQ(running.get() + queued.get(), 2);
    stop_and_join(a, b);
  });
}

TEST_P(answers, that_are_awaited_for_a_time_end_with_the_incarnation) {
  in_runtime([] {
    const auto kept = std::make_shared<int>(1);
    auto s = spawn_actor<shelf>();
    {
      supervisor sup{{.max_restarts = 1000, .within = 1h, .report = [](const child_report&) {}}};
      auto a = sup.spawn_actor<impatient>(s, kept);
      a.tell(impatient::begin{1h});
      await_waiting(s, 1);
      a.tell(crash{});
      await([&] { return sup.restarts() == 1; });
      EXPECT_EQ(ask_patiently(a, impatient::look{}), (outcome{0, 0, 0}));
      s.tell(drop_all{});
      a.tell(impatient::begin{1ms});
      await([&] { return a.ask(impatient::look{}) == outcome{0, 1, 0}; });
    }
    stop_and_join(s);
    await([&] { return kept.use_count() == 1; });
  });
}

}  // namespace
}  // namespace ramie
