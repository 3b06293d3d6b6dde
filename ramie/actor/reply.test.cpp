// Replies that come later: kept, passed on, delegated; answers that come as messages; fiber actors that are asked.
#include <ramie/actor/reply.hpp>

#include <ramie/actor/testing.hpp>
#include <ramie/supervise/supervisor.hpp>
#include <ramie/sync/event.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace ramie {
namespace {

using namespace actor_tests;

class replies : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, replies, few_and_many());

struct take {};
struct put {
  int n;
};
struct fail_next {
  std::string why;
};
struct drop_all {};
struct crash {};
struct waiting {};

/// A handler waits for what another one brings.
class shelf : public actor<shelf> {
 public:
  reply<int> on(take) {
    if (!stock_.empty()) {
      const int n = stock_.front();
      stock_.pop_front();
      return n;  // at once
    }
    reply<int> later;
    wanted_.push_back(later);
    return later;
  }
  void on(put p) {
    if (wanted_.empty()) {
      stock_.push_back(p.n);
      return;
    }
    next().set_value(p.n);
  }
  void on(fail_next f) { next().set_exception(std::make_exception_ptr(std::runtime_error{f.why})); }
  void on(drop_all) { wanted_.clear(); }
  void on(crash) { throw std::logic_error{"crash"}; }
  std::size_t on(waiting) { return wanted_.size(); }

 private:
  reply<int> next() {
    reply<int> r = wanted_.front();
    wanted_.pop_front();
    return r;
  }
  std::deque<reply<int>> wanted_;
  std::deque<int> stock_;
};

void await_waiting(const actor_ref<shelf>& s, std::size_t n) {
  await([&] { return s.ask(waiting{}) == n; });
}

TEST_P(replies, come_when_the_answer_does) {
  in_runtime([] {
    auto s = spawn_actor<shelf>();
    s.tell(put{1});
    EXPECT_EQ(s.ask(take{}), 1);  // answered before it was returned
    auto a = spawn([&] { return s.ask(take{}); });
    await_waiting(s, 1);
    s.tell(put{2});
    EXPECT_EQ(a.join(), 2);
    stop_and_join(s);
  });
}

TEST_P(replies, serve_many_askers_in_the_order_that_the_actor_chooses) {
  in_runtime([] {
    auto s = spawn_actor<shelf>();
    const int n = scaled(1000);
    std::vector<join_handle<int>> askers;
    for (int i = 0; i < n; ++i) askers.push_back(spawn([&] { return s.ask(take{}); }));
    for (int i = 0; i < n; ++i) s.tell(put{i});
    long sum = 0;
    for (auto& a : askers) sum += a.join();
    EXPECT_EQ(sum, static_cast<long>(n) * (n - 1) / 2);
    stop_and_join(s);
  });
}

TEST_P(replies, bring_exceptions_as_they_are) {
  in_runtime([] {
    auto s = spawn_actor<shelf>();
    auto a = spawn([&] { return s.ask(take{}); });
    await_waiting(s, 1);
    s.tell(fail_next{"sold out"});
    EXPECT_THROW(a.join(), std::runtime_error);
    EXPECT_TRUE(s.alive());
    stop_and_join(s);
  });
}

TEST_P(replies, that_are_dropped_say_so) {
  in_runtime([] {
    auto s = spawn_actor<shelf>();
    auto a = spawn([&] { return s.ask(take{}); });
    await_waiting(s, 1);
    s.tell(drop_all{});
    EXPECT_THROW(a.join(), broken_reply);
    stop_and_join(s);
  });
}

TEST_P(replies, end_with_the_actor_that_owes_them) {
  in_runtime([] {
    auto s = spawn_actor<shelf>();
    event watches;
    auto w = spawn_actor<down>([&](mailbox<down>& box) {
      box.monitor(s);
      watches.set();
      static_cast<void>(box.receive());
    });
    watches.wait();
    auto a = spawn([&] {
      try {
        return s.ask(take{});
      } catch (const actor_down& e) {
        return e.reason().kind() == exit_kind::failed ? -1 : -2;
      }
    });
    auto b = s.ask_async(take{});
    await_waiting(s, 2);
    s.tell(crash{});
    EXPECT_EQ(a.join(), -1);
    EXPECT_THROW(b.get(), actor_down);
    s.join();
    w.join();
  });
}

TEST_P(replies, that_come_too_late_harm_nobody) {
  in_runtime([] {
    auto s = spawn_actor<shelf>();
    EXPECT_THROW(static_cast<void>(s.ask_for(1ms, take{})), timeout_error);
    auto gone = spawn([&] { return s.ask(take{}); });
    await_waiting(s, 2);
    gone.request_stop();
    EXPECT_THROW(gone.join(), cancelled);
    s.tell(put{1});
    s.tell(put{2});
    s.tell(put{3});
    EXPECT_EQ(s.ask(take{}), 3);  // the first two went to askers that had given up
    stop_and_join(s);
  });
}

TEST_P(replies, are_answered_once) {
  in_runtime([] {
    const reply<int> r;
    r.set_value(1);
    EXPECT_THROW(r.set_value(2), usage_error);
    EXPECT_THROW(r.set_exception(std::make_exception_ptr(1)), usage_error);
  });
}

TEST_P(replies, may_be_nothing_or_what_cannot_be_copied) {
  struct ready {};
  struct get_box {};
  class opener : public actor<opener> {
   public:
    reply<void> on(ready) {
      ready_.push_back({});
      return ready_.back();
    }
    reply<std::unique_ptr<int>> on(get_box) {
      for (const auto& r : ready_) r.set_value();
      ready_.clear();
      return std::make_unique<int>(5);
    }

   private:
    std::vector<reply<void>> ready_;
  };
  in_runtime([] {
    auto o = spawn_actor<opener>();
    auto f = o.ask_async(ready{});
    EXPECT_EQ(*o.ask(get_box{}), 5);
    f.get();
    o.tell(ready{});  // nobody asked, nobody is answered
    EXPECT_EQ(*o.ask(get_box{}), 5);
    stop_and_join(o);
  });
}

// ---- passing a request on ------------------------------------------------------------------------------------------

struct price {
  int item;
};

class catalogue : public actor<catalogue> {
 public:
  int on(price p) {
    if (p.item < 0) throw std::out_of_range{"no such item"};
    return p.item * 10;
  }
};

class front : public actor<front> {
 public:
  explicit front(actor_ref<catalogue> behind) : behind_{std::move(behind)} {}
  reply<int> on(price p) { return behind_.delegate(p); }

 private:
  actor_ref<catalogue> behind_;
};

TEST_P(replies, are_delegated) {
  in_runtime([] {
    auto c = spawn_actor<catalogue>();
    auto f = spawn_actor<front>(c);
    EXPECT_EQ(f.ask(price{4}), 40);
    EXPECT_EQ(f.ask_async(price{5}).get(), 50);
    stop_and_join(c);
    EXPECT_THROW(static_cast<void>(f.ask(price{4})), actor_down);
    EXPECT_TRUE(f.alive());
    stop_and_join(f);
  });
}

TEST_P(replies, are_delegated_along_a_chain) {
  class link : public actor<link> {
   public:
    explicit link(std::optional<actor_ref<link>> next) : next_{std::move(next)} {}
    reply<int> on(price p) { return next_ ? next_->delegate(price{p.item + 1}) : reply<int>{p.item}; }

   private:
    std::optional<actor_ref<link>> next_;
  };
  in_runtime([] {
    const int n = scaled(100);
    std::vector<actor_ref<link>> chain{spawn_actor<link>(std::nullopt)};
    for (int i = 0; i < n; ++i) chain.push_back(spawn_actor<link>(chain.back()));
    for (int i = 0; i < n; ++i) EXPECT_EQ(chain.back().ask(price{i}), i + n);
    for (const auto& l : chain) stop_and_join(l);
  });
}

// ---- answers as messages -------------------------------------------------------------------------------------------

struct compare {
  int item;
};
struct seen_while_waiting {};

/// Asks without waiting, and answers its own asker when the answers are there.
class shopper : public actor<shopper> {
 public:
  shopper(actor_ref<catalogue> a, actor_ref<catalogue> b) : shops_{std::move(a), std::move(b)} {}

  reply<std::string> on(compare c) {
    struct round {
      reply<std::string> to;
      std::vector<std::string> found;
    };
    auto now = std::make_shared<round>();
    for (const auto& shop : shops_)
      ask_then(shop, price{c.item}, [this, now](answer<int> a) {
        ++answers_;
        now->found.push_back(a ? std::to_string(a.value()) : "nothing");
        std::ranges::sort(now->found);
        if (now->found.size() == shops_.size()) now->to.set_value(now->found[0] + " or " + now->found[1]);
      });
    return now->to;
  }
  int on(seen_while_waiting) { return answers_; }

 private:
  std::vector<actor_ref<catalogue>> shops_;
  int answers_ = 0;
};

TEST_P(replies, are_awaited_without_blocking) {
  in_runtime([] {
    auto a = spawn_actor<catalogue>();
    auto b = spawn_actor<catalogue>();
    auto s = spawn_actor<shopper>(a, b);
    EXPECT_EQ(s.ask(compare{3}), "30 or 30");
    stop_and_join(b);
    EXPECT_EQ(s.ask(compare{4}), "40 or nothing");
    EXPECT_EQ(s.ask(seen_while_waiting{}), 4);
    stop_and_join(a, s);
  });
}

struct ping {
  int depth;
};
struct meet {};

/// Two of them ask each other at once; neither waits.
class partner : public actor<partner> {
 public:
  void on(const actor_ref<partner>& other) { other_ = other; }
  reply<int> on(ping p) {
    reply<int> later;
    if (p.depth == 0) {
      later.set_value(0);
    } else {
      ask_then(*other_, ping{p.depth - 1}, [later](answer<int> a) { later.set_value(a.value() + 1); });
    }
    return later;
  }

 private:
  std::optional<actor_ref<partner>> other_;
};

TEST_P(replies, let_two_actors_ask_each_other) {
  in_runtime([] {
    auto a = spawn_actor<partner>();
    auto b = spawn_actor<partner>();
    a.tell(b);
    b.tell(a);
    const int depth = scaled(500);
    auto x = a.ask_async(ping{depth});
    auto y = b.ask_async(ping{depth});
    EXPECT_EQ(x.get(), depth);
    EXPECT_EQ(y.get(), depth);
    a.tell(a);  // itself, too
    EXPECT_EQ(a.ask(ping{5}), 5);
    stop_and_join(a, b);
  });
}

TEST_P(replies, are_not_heard_by_the_next_incarnation) {
  struct begin {};
  struct heard {};
  class hopeful : public actor<hopeful> {
   public:
    hopeful(actor_ref<shelf> from, std::atomic<int>& heard) : from_{std::move(from)}, heard_{heard} {}
    void on(begin) {
      ask_then(from_, take{}, [this](answer<int>) { ++heard_; });
    }
    void on(crash) { throw std::runtime_error{"crash"}; }
    void on(heard) {}

   private:
    actor_ref<shelf> from_;
    std::atomic<int>& heard_;
  };
  in_runtime([] {
    std::atomic<int> heard_count{0};
    auto s = spawn_actor<shelf>();
    supervisor sup{{.max_restarts = 1000, .within = 1h, .report = [](const child_report&) {}}};
    auto h = sup.spawn_actor_by<hopeful>({}, [s, &heard_count] { return hopeful{s, heard_count}; });
    h.tell(begin{});
    await_waiting(s, 1);
    h.tell(crash{});
    await([&] { return sup.restarts() == 1; });
    s.tell(put{1});
    h.tell(begin{});
    await_waiting(s, 1);
    s.tell(put{2});
    await([&] { return heard_count == 1; });
    static_cast<void>(h.tell(heard{}));
    stop_and_join(s);
  });
}

TEST_P(replies, whose_continuation_throws_end_the_actor) {
  struct begin {};
  class careless : public actor<careless> {
   public:
    explicit careless(actor_ref<shelf> from) : from_{std::move(from)} {}
    void on(begin) {
      ask_then(from_, take{}, [this](answer<int> a) {
        EXPECT_THROW(stash(), usage_error);
        static_cast<void>(a.value());
      });
    }

   private:
    actor_ref<shelf> from_;
  };
  in_runtime([] {
    auto s = spawn_actor<shelf>();
    supervisor sup{{.report = [](const child_report&) {}}};
    auto c = sup.spawn_actor<careless>(child_options{.lifetime = child_lifetime::temporary}, s);
    c.tell(begin{});
    await_waiting(s, 1);
    s.tell(drop_all{});
    EXPECT_EQ(c.join().kind(), exit_kind::failed);
    stop_and_join(s);
  });
}

// ---- fiber actors --------------------------------------------------------------------------------------------------

struct add {
  int n;
};
struct total {};
struct never {};
using sum_box = mailbox<add, request<total, int>, request<never, int>>;

actor_ref<sum_box> spawn_sum(const actor_options& options = {}) {
  return spawn_actor<add, request<total, int>, request<never, int>>(options, [](sum_box& box) {
    int sum = 0;
    while (auto m = box.receive()) {
      if (auto* a = std::get_if<add>(&*m)) sum += a->n;
      else if (auto* r = std::get_if<request<total, int>>(&*m)) r->reply.set_value(sum);
    }
  });
}

TEST_P(replies, are_given_by_fiber_actors) {
  in_runtime([] {
    auto s = spawn_sum();
    for (int i = 1; i <= 10; ++i) s.tell(add{i});
    EXPECT_EQ(s.ask(total{}), 55);
    EXPECT_EQ(s.ask_for(1h, total{}), 55);
    EXPECT_EQ(s.ask_async(total{}).get(), 55);
    EXPECT_THROW(static_cast<void>(s.ask(never{})), broken_reply);
    stop_and_join(s);
    EXPECT_THROW(static_cast<void>(s.ask(total{})), actor_down);
    EXPECT_THROW(static_cast<void>(s.ask_async(total{}).get()), actor_down);
  });
}

TEST_P(replies, of_fiber_actors_wait_for_room_and_are_refused) {
  in_runtime([] {
    auto blocking_one = spawn_sum({.mailbox_capacity = 1});
    std::vector<join_handle<int>> askers;
    for (int i = 0; i < scaled(100); ++i) askers.push_back(spawn([&] { return blocking_one.ask(total{}); }));
    for (auto& a : askers) EXPECT_EQ(a.join(), 0);
    stop_and_join(blocking_one);

    event go_on;
    auto failing = spawn_actor<request<total, int>>(actor_options{.mailbox_capacity = 1, .overflow = overflow::fail},
                                                    [&](mailbox<request<total, int>>& box) {
                                                      go_on.wait();
                                                      while (auto m = box.receive()) std::get<0>(*m).reply.set_value(1);
                                                    });
    auto first = failing.ask_async(total{});
    EXPECT_THROW(static_cast<void>(failing.ask(total{})), mailbox_full);
    go_on.set();
    EXPECT_EQ(first.get(), 1);
    stop_and_join(failing);
  });
}

TEST_P(replies, of_fiber_actors_are_asked_for_by_class_actors) {
  struct begin {};
  class reader : public actor<reader> {
   public:
    explicit reader(actor_ref<sum_box> from) : from_{std::move(from)} {}
    reply<int> on(begin) { return from_.delegate(total{}); }

   private:
    actor_ref<sum_box> from_;
  };
  in_runtime([] {
    auto s = spawn_sum();
    s.tell(add{7});
    auto r = spawn_actor<reader>(s);
    EXPECT_EQ(r.ask(begin{}), 7);
    stop_and_join(s, r);
  });
}

}  // namespace
}  // namespace ramie
