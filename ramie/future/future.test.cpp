// promise, future, shared_future: a result comes once, to all its waiters.
#include <ramie/future/future.hpp>

#include <ramie/future/promise.hpp>
#include <ramie/sync/testing.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

namespace ramie {
namespace {

using namespace sync_tests;

static_assert(!std::is_copy_constructible_v<future<int>> && std::is_nothrow_move_constructible_v<future<int>>);
static_assert(!std::is_copy_constructible_v<promise<int>> && std::is_nothrow_move_constructible_v<promise<int>>);
static_assert(std::is_copy_constructible_v<shared_future<int>>);

class futures : public everywhere {};
INSTANTIATE_TEST_SUITE_P(with, futures, settings(), ::testing::PrintToStringParamName());

TEST_P(futures, bring_values_references_and_nothing) {
  const auto use = [] {
    promise<std::string> a;
    auto fa = a.get_future();
    EXPECT_TRUE(fa.valid());
    EXPECT_FALSE(fa.is_ready());
    a.set_value("text");
    EXPECT_TRUE(fa.is_ready());
    EXPECT_EQ(fa.get(), "text");
    EXPECT_FALSE(fa.valid());

    int object = 1;
    promise<int&> b;
    b.set_value(object);
    EXPECT_EQ(&b.get_future().get(), &object);

    promise<void> c;
    c.set_value();
    c.get_future().get();

    promise<std::unique_ptr<int>> d;
    d.set_value(std::make_unique<int>(7));
    EXPECT_EQ(*d.get_future().get(), 7);

    promise<const int> e;
    e.set_value(3);
    EXPECT_EQ(e.get_future().get(), 3);
  };
  use();
  in_runtime(use);
}

TEST_P(futures, bring_exceptions) {
  in_runtime([] {
    promise<int> p;
    auto f = p.get_future();
    p.set_exception(std::make_exception_ptr(std::runtime_error{"no"}));
    EXPECT_EQ(message_of<std::runtime_error>([&] { f.get(); }), "no");
    EXPECT_FALSE(f.valid());
  });
}

TEST_P(futures, of_a_promise_that_went_away_say_so) {
  in_runtime([] {
    future<int> f;
    {
      promise<int> p;
      f = p.get_future();
    }
    EXPECT_THROW(f.get(), broken_promise);
    promise<int> p;
    f = p.get_future();
    p = promise<int>{};
    EXPECT_THROW(f.get(), broken_promise);
  });
}

TEST_P(futures, name_misuse) {
  in_runtime([] {
    future<int> none;
    EXPECT_THROW(none.get(), usage_error);
    EXPECT_THROW(none.wait(), usage_error);
    EXPECT_THROW(none.wait_for(1ms), usage_error);
    EXPECT_THROW(static_cast<void>(none.is_ready()), usage_error);
    EXPECT_THROW(shared_future<int>{}.get(), usage_error);
    promise<int> p;
    static_cast<void>(p.get_future());
    EXPECT_THROW(static_cast<void>(p.get_future()), usage_error);
    p.set_value(1);
    EXPECT_THROW(p.set_value(2), usage_error);
    EXPECT_THROW(p.set_exception(std::make_exception_ptr(1)), usage_error);
    promise<int> moved{std::move(p)};
    EXPECT_THROW(p.set_value(1), usage_error);                     // NOLINT(bugprone-use-after-move)
    EXPECT_THROW(static_cast<void>(p.get_future()), usage_error);  // NOLINT(bugprone-use-after-move)
  });
}

TEST_P(futures, stay_open_if_a_value_cannot_be_made) {
  in_runtime([] {
    struct picky {
      explicit picky(int n) {
        if (n < 0) throw std::invalid_argument{"negative"};
      }
      picky(picky&&) = default;
    };
    struct source {
      int n;
      operator picky() const { return picky{n}; }  // NOLINT(google-explicit-constructor)
    };
    promise<picky> p;
    auto f = p.get_future();
    EXPECT_THROW(p.set_value(source{-1}), std::invalid_argument);
    EXPECT_FALSE(f.is_ready());
    p.set_value(source{1});
    f.get();
  });
}

TEST_P(futures, wake_who_waits) {
  runtime rt{options()};
  for (int round = 0; round < rounds(1'000); ++round) {
    promise<int> p;
    auto f = p.get_future();
    auto h = rt.spawn([&] { return f.get(); });
    if (round % 2 == 0) this_fiber::yield();
    p.set_value(round);
    EXPECT_EQ(h.join(), round);
  }
}

TEST_P(futures, bring_exactly_one_of_many_results) {
  runtime rt{options()};
  for (int round = 0; round < rounds(300); ++round) {
    promise<int> p;
    shared_future<int> f = p.get_future();
    std::atomic<int> winner{-1};
    crowd(rt, 6, 2, [&, f](int who) {
      if (who % 2 == 0) {
        f.wait();
        return;
      }
      try {
        p.set_value(who);
        EXPECT_EQ(winner.exchange(who), -1);
      } catch (const usage_error&) {
      }
    });
    EXPECT_EQ(f.get(), winner);
  }
}

TEST_P(futures, that_are_shared_bring_it_to_all) {
  runtime rt{options()};
  promise<std::string> p;
  shared_future<std::string> f = p.get_future().share();
  std::atomic<const std::string*> at{nullptr};
  crowd(rt, 6, 2, [&, f](int who) {
    if (who == 0) p.set_value("one");
    const std::string& s = f.get();
    EXPECT_EQ(s, "one");
    const std::string* seen = at.exchange(&s);
    EXPECT_TRUE(seen == nullptr || seen == &s);
  });
  promise<void> nothing;
  shared_future<void> g{nothing.get_future()};
  nothing.set_exception(std::make_exception_ptr(std::runtime_error{"no"}));
  for (int i = 0; i < 2; ++i) EXPECT_THROW(g.get(), std::runtime_error);
  EXPECT_TRUE(g.valid());
}

TEST_P(futures, wait_no_longer_than_told) {
  const auto use = [] {
    promise<int> p;
    auto f = p.get_future();
    EXPECT_EQ(f.wait_for(2ms), std::future_status::timeout);
    EXPECT_EQ(f.wait_until(std::chrono::system_clock::now() + 1ms), std::future_status::timeout);
    std::thread other{[&] { p.set_value(1); }};
    EXPECT_EQ(f.wait_for(1h), std::future_status::ready);
    EXPECT_EQ(f.wait_for(0s), std::future_status::ready);
    other.join();
  };
  use();
  in_runtime(use);
}

TEST_P(futures, stay_valid_when_the_wait_is_cancelled) {
  in_runtime([] {
    promise<int> p;
    auto f = p.get_future();
    auto h = spawn([&] {
      try {
        f.get();
      } catch (const cancelled&) {
        EXPECT_TRUE(f.valid());
        throw;
      }
    });
    let_others_run();
    h.request_stop();
    EXPECT_THROW(h.join(), cancelled);
    p.set_value(4);
    EXPECT_EQ(f.get(), 4);
  });
}

TEST_P(futures, may_go_before_set_value_returns_and_so_may_the_promise) {
  runtime rt{options()};
  for (int round = 0; round < rounds(1'000); ++round) {
    auto p = std::make_unique<promise<int>>();
    promise<int>* raw = p.get();
    auto h = rt.spawn([f = p->get_future(), owned = std::move(p), round]() mutable {
      int got = 0;
      if (round % 2 == 0) got = f.get();
      else await([&] { return f.is_ready(); });
      {
        const auto gone = std::move(f);
      }
      owned.reset();
      return got;
    });
    raw->set_value(round);
    EXPECT_EQ(h.join(), round % 2 == 0 ? round : 0);
  }
}

TEST_P(futures, destroy_their_results_once) {
  counted::reset();
  in_runtime([] {
    promise<counted> p;
    auto f = p.get_future();
    p.set_value(counted{5});
    EXPECT_EQ(f.get().value, 5);
    promise<counted> dropped;
    dropped.set_value(counted{6});
    promise<counted> never;
    shared_future<counted> s = never.get_future();
    never.set_value(counted{7});
    EXPECT_EQ(s.get().value, 7);
  });
  EXPECT_EQ(counted::alive, 0);
  EXPECT_EQ(counted::copies, 0);
}

}  // namespace
}  // namespace ramie
