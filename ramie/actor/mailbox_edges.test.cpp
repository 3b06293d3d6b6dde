// Mailboxes at their edges: bounds with urgent mail, with timers, with messages that receive_if passed over.
#include <ramie/actor/mailbox.hpp>

#include <ramie/actor/testing.hpp>
#include <ramie/supervise/supervisor.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace ramie {
namespace {

using namespace actor_tests;

struct ping {};

class mailbox_edges : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, mailbox_edges, few_and_many());

TEST_P(mailbox_edges, drop_the_oldest_though_it_was_passed_over) {
  in_runtime([] {
    fiber_tests::event go;
    fiber_tests::event looked;
    fiber_tests::event all_sent;
    auto f = spawn_actor<int, std::string>(
        actor_options{.mailbox_capacity = 4, .overflow = overflow::drop_oldest}, [&](mailbox<int, std::string>& box) {
          go.wait();
          EXPECT_FALSE(box.receive_if_for<std::string>(1ms, [](const std::string&) { return true; }).has_value());
          looked.set();
          all_sent.wait();
          std::vector<int> seen;
          while (auto m = box.receive()) {
            if (std::holds_alternative<std::string>(*m)) break;
            seen.push_back(std::get<int>(*m));
          }
          EXPECT_EQ(seen, (std::vector<int>{98, 99, 100}));
        });
    for (int i = 1; i <= 4; ++i) f.tell(i);
    go.set();
    looked.wait();
    for (int i = 5; i <= 100; ++i) {
      f.tell(i);
      EXPECT_LE(f.mail_count(), 4u);
    }
    f.tell(std::string{"end"});
    all_sent.set();
    f.join();
  });
}

TEST_P(mailbox_edges, keep_the_order_of_urgent_mail) {
  for (const std::size_t capacity : {0u, 100u}) {
    in_runtime([capacity] {
      fiber_tests::event go;
      std::vector<int> seen;
      auto f = spawn_actor<int>(actor_options{.mailbox_capacity = capacity}, [&](mailbox<int>& box) {
        auto first = box.receive_if<int>([](const int& n) { return n == 1; });
        seen.push_back(*first);
        go.wait();
        while (auto m = box.receive()) {
          seen.push_back(std::get<int>(*m));
          if (seen.size() == 2) box.self().tell_urgent(4);
          if (seen.size() == 6) return;
        }
      });
      f.tell(10);
      f.tell_urgent(1);
      await([&] { return go.parked() == 1; });
      f.tell(11);
      f.tell_urgent(2);
      f.tell_urgent(3);
      go.set();
      f.join();
      EXPECT_EQ(seen, (std::vector<int>{1, 2, 3, 4, 10, 11}));
    });
  }
}

TEST_P(mailbox_edges, bound_urgent_mail_too) {
  in_runtime([] {
    fiber_tests::event go;
    class busy : public actor<busy> {
     public:
      explicit busy(fiber_tests::event& go) : go_{go} {}
      void on(ping) { go_.wait(); }
      void on(int n) { seen_.push_back(n); }
      std::vector<int> on(std::string) { return seen_; }

     private:
      fiber_tests::event& go_;
      std::vector<int> seen_;
    };
    auto b = spawn_actor<busy>(actor_options{.mailbox_capacity = 4, .overflow = overflow::drop_oldest}, go);
    b.tell(ping{});
    await([&] { return go.parked() == 1; });
    b.tell(-1);
    for (int i = 1; i <= 50; ++i) {
      b.tell_urgent(i);
      EXPECT_LE(b.mail_count(), 4u);
    }
    go.set();
    await([&] { return b.mail_count() == 0; });
    EXPECT_EQ(b.ask(std::string{}), (std::vector<int>{47, 48, 49, 50}));
    stop_and_join(b);
  });
}

TEST_P(mailbox_edges, lose_nothing_that_was_sent_before_stop) {
  for (const std::size_t capacity : {0u, 100u}) {
    in_runtime([capacity] {
      std::vector<int> seen;
      bool found = true;
      auto f = spawn_actor<int>(actor_options{.mailbox_capacity = capacity}, [&](mailbox<int>& box) {
        found = box.receive_if<int>([](const int& n) { return n == 7; }).has_value();
        EXPECT_FALSE(box.stopped());
        while (auto m = box.receive()) seen.push_back(std::get<int>(*m));
        EXPECT_TRUE(box.stopped());
      });
      for (int i = 1; i <= 3; ++i) f.tell(i);
      f.stop();
      f.tell(7);  // too late
      f.join();
      EXPECT_FALSE(found);
      EXPECT_EQ(seen, (std::vector<int>{1, 2, 3}));
    });
  }
}

TEST_P(mailbox_edges, have_room_for_a_timer_that_comes_once) {
  struct alarm {};
  class sleeper : public actor<sleeper> {
   public:
    sleeper(fiber_tests::event& full, fiber_tests::event& go) : full_{full}, go_{go} {}
    void on(ping) {
      full_.wait();
      send_after(1ms, alarm{});
      go_.wait();
    }
    void on(alarm) { ++alarms_; }
    void on(int) {}
    int on(std::string) { return alarms_; }

   private:
    fiber_tests::event& full_;
    fiber_tests::event& go_;
    int alarms_ = 0;
  };
  for (const overflow what : {overflow::block_sender, overflow::fail, overflow::drop_newest}) {
    in_runtime([what] {
      fiber_tests::event full;
      fiber_tests::event go;
      auto s = spawn_actor<sleeper>(actor_options{.mailbox_capacity = 2, .overflow = what}, full, go);
      s.tell(ping{});
      await([&] { return full.parked() == 1; });
      s.tell(1);
      s.tell(1);
      full.set();
      await([&] { return s.mail_count() == 3; });  // one too many
      go.set();
      await([&] { return s.mail_count() == 0; });
      EXPECT_EQ(s.ask(std::string{}), 1);
      stop_and_join(s);
    });
  }
}

/// Ends that are told of come beside the bound: they take no room, and leave none when they are taken out.
TEST_P(mailbox_edges, count_nothing_that_ramie_sent) {
  class mortal : public actor<mortal> {
   public:
    void on(ping) { stop(); }
  };
  struct counts {
    fiber_tests::event go;
    std::atomic<int> watched{0}, told{0}, numbers{0};
  };
  class watcher : public actor<watcher> {
   public:
    explicit watcher(counts& c) : c_{c} {}
    void on(const any_actor& whom) {
      monitor(whom);
      ++c_.watched;
    }
    void on(const down&) { ++c_.told; }
    void on(ping) { c_.go.wait(); }
    void on(int) { ++c_.numbers; }

   private:
    counts& c_;
  };
  in_runtime([] {
    counts c;
    auto w = spawn_actor<watcher>(actor_options{.mailbox_capacity = 3, .overflow = overflow::fail}, c);
    std::vector<actor_ref<mortal>> mortals;
    for (int i = 0; i < 4; ++i) {
      mortals.push_back(spawn_actor<mortal>());
      w.tell(any_actor{mortals.back()});
      await([&] { return c.watched == i + 1; });
    }
    w.tell(ping{});
    await([&] { return c.go.parked() == 1; });
    for (auto& m : mortals) {
      m.tell(ping{});
      m.join();
    }
    for (int i = 0; i < 3; ++i) EXPECT_EQ(w.tell(i), tell_status::ok);
    EXPECT_EQ(w.tell(3), tell_status::full);
    EXPECT_EQ(w.mail_count(), 3u);
    c.go.set();
    await([&] { return c.told == 4 && c.numbers == 3; });
    EXPECT_EQ(w.mail_count(), 0u);
    EXPECT_EQ(w.tell(3), tell_status::ok);
    stop_and_join(w);
  });
}

TEST_P(mailbox_edges, let_asks_time_out_while_there_is_no_room) {
  in_runtime([] {
    fiber_tests::event go;
    class stuck : public actor<stuck> {
     public:
      explicit stuck(fiber_tests::event& go) : go_{go} {}
      int on(ping) {
        go_.wait();
        return 1;
      }

     private:
      fiber_tests::event& go_;
    };
    auto s = spawn_actor<stuck>(actor_options{.mailbox_capacity = 1}, go);
    s.tell(ping{});
    await([&] { return go.parked() == 1; });
    s.tell(ping{});
    EXPECT_THROW(s.ask_for(1ms, ping{}), timeout_error);
    go.set();
    EXPECT_EQ(s.ask(ping{}), 1);
    stop_and_join(s);
  });
}

TEST_P(mailbox_edges, do_not_hold_up_who_only_tries) {
  in_runtime([] {
    fiber_tests::event go;
    std::vector<std::string> seen;
    auto f = spawn_actor<std::string>(actor_options{.mailbox_capacity = 2}, [&](mailbox<std::string>& box) {
      go.wait();
      while (auto m = box.receive()) seen.push_back(std::get<0>(*m));
    });
    EXPECT_EQ(f.try_tell(std::string{"a"}), tell_status::ok);
    EXPECT_EQ(f.try_tell(std::string{"b"}), tell_status::ok);
    std::string kept = "a string that is too long to be stored in place";
    const std::string copy = kept;
    EXPECT_EQ(f.try_tell(std::move(kept)), tell_status::full);
    EXPECT_EQ(kept, copy);  // NOLINT(bugprone-use-after-move): that is the promise
    EXPECT_EQ(f.try_tell(kept), tell_status::full);
    EXPECT_EQ(f.try_tell(std::string{"c"}), tell_status::full);
    go.set();
    await([&] { return f.try_tell(std::move(kept)) == tell_status::ok; });
    stop_and_join(f);
    EXPECT_EQ(seen, (std::vector<std::string>{"a", "b", copy}));
    EXPECT_EQ(f.try_tell(std::string{"d"}), tell_status::down);
  });
}

struct job {
  int urgency;
  int number;
  friend bool operator==(const job&, const job&) = default;
};
using jobs = std::vector<job>;

/// Held up by a first message until `go` is set.
class doer : public actor<doer> {
 public:
  explicit doer(fiber_tests::event& go) : go_{go} {}
  void on(ping) { go_.wait(); }
  void on(job j) { done_.push_back(j); }
  jobs on(std::string) { return std::exchange(done_, {}); }

 private:
  fiber_tests::event& go_;
  jobs done_;
};

/// Random ones, sent to `to`: in the order in which they are to be done. 0: by tell.
template <class Ref>
jobs send_random(const Ref& to, int first, int count, std::mt19937& random) {
  jobs sent;
  for (int n = first; n < first + count; ++n) {
    const job j{static_cast<int>(random() % static_cast<unsigned>(urgency_most + 1)), n};
    if (j.urgency == 0) to.tell(j);
    else to.tell_urgent(j, j.urgency);
    sent.push_back(j);
  }
  std::stable_sort(sent.begin(), sent.end(), [](const job& a, const job& b) { return a.urgency > b.urgency; });
  return sent;
}

TEST_P(mailbox_edges, hand_out_the_most_urgent_first) {
  for (const std::size_t capacity : {0u, 1000u}) {
    in_runtime([capacity] {
      std::mt19937 random{1};
      for (int round = 0; round < scaled(20); ++round) {
        fiber_tests::event go;
        auto a = spawn_actor<doer>(actor_options{.mailbox_capacity = capacity}, go);
        a.tell(ping{});
        await([&] { return go.parked() == 1; });
        if (round % 2 == 0) a.tell_urgent(job{1, -1});  // before there are levels
        jobs expected = send_random(a, 0, 100, random);
        if (round % 2 == 0) {
          const auto place =
              std::find_if(expected.begin(), expected.end(), [](const job& j) { return j.urgency <= 1; });
          expected.insert(place, job{1, -1});
        }
        go.set();
        await([&] { return a.mail_count() == 0; });
        EXPECT_EQ(a.ask(std::string{}), expected);
        stop_and_join(a);
      }
    });
  }
}

/// Some are taken in already when more come.
TEST_P(mailbox_edges, hand_the_most_urgent_to_fiber_actors_first) {
  for (const std::size_t capacity : {0u, 1000u}) {
    in_runtime([capacity] {
      std::mt19937 random{2};
      fiber_tests::event go, go_on;
      jobs done;
      auto f = spawn_actor<job>(actor_options{.mailbox_capacity = capacity}, [&](mailbox<job>& box) {
        go.wait();
        for (int i = 0; i < 50; ++i) done.push_back(*box.receive_if<job>([](const job&) { return true; }));
        go_on.wait();
        while (auto m = box.receive()) done.push_back(std::get<job>(*m));
      });
      await([&] { return go.parked() == 1; });
      jobs waiting = send_random(f, 0, 100, random);
      jobs expected{waiting.begin(), waiting.begin() + 50};
      waiting.erase(waiting.begin(), waiting.begin() + 50);
      go.set();
      await([&] { return go_on.parked() == 1; });
      const jobs more = send_random(f, 100, 100, random);
      waiting.insert(waiting.end(), more.begin(), more.end());
      std::stable_sort(waiting.begin(), waiting.end(),
                       [](const job& a, const job& b) { return a.urgency > b.urgency; });
      expected.insert(expected.end(), waiting.begin(), waiting.end());
      f.stop();
      go_on.set();
      f.join();
      EXPECT_EQ(done, expected);
    });
  }
}

TEST_P(mailbox_edges, drop_the_oldest_of_the_least_urgent) {
  in_runtime([] {
    fiber_tests::event go;
    auto a = spawn_actor<doer>(actor_options{.mailbox_capacity = 4, .overflow = overflow::drop_oldest}, go);
    a.tell(ping{});
    await([&] { return go.parked() == 1; });
    a.tell_urgent(job{7, 0}, 7);
    a.tell_urgent(job{2, 1}, 2);
    a.tell_urgent(job{2, 2}, 2);
    a.tell(job{0, 3});
    a.tell_urgent(job{7, 4}, 7);  // in place of the ordinary one
    a.tell_urgent(job{1, 5}, 1);  // of the oldest of urgency 2
    a.tell_urgent(job{3, 6}, 3);  // of itself, were it not the newest: of urgency 1
    go.set();
    await([&] { return a.mail_count() == 0; });
    EXPECT_EQ(a.ask(std::string{}), (jobs{{7, 0}, {7, 4}, {3, 6}, {2, 2}}));
    EXPECT_THROW(a.tell_urgent(job{}, 0), invalid_argument);
    EXPECT_EQ(fiber_tests::message_of<invalid_argument>([&] { a.tell_urgent(job{}, 8); }),
              "ramie: tell_urgent: the urgency 8 is outside 1 to 7");
    stop_and_join(a);
  });
}

}  // namespace
}  // namespace ramie
