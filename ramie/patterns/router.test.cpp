// Routers: one of several, the first of several, all of several.
#include <ramie/patterns/router.hpp>

#include <ramie/patterns/testing.hpp>
#include <ramie/supervise/supervisor.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace ramie {
namespace {

using namespace actor_tests;
using namespace pattern_tests;

struct key_of {
  int key;
};
struct gate {};

/// Does nothing until `go` is set, and then counts what it has got.
class blocked : public actor<blocked> {
 public:
  explicit blocked(fiber_tests::event& go) : go_{go} {}
  void on(gate) { go_.wait(); }
  void on(int) { ++count_; }
  void on(const std::string& s) { text_ += s; }
  int on(count) { return count_; }
  std::string on(news n) { return text_ + n.text; }

 private:
  fiber_tests::event& go_;
  int count_ = 0;
  std::string text_;
};

class routers : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, routers, few_and_many());

TEST_P(routers, take_turns) {
  in_runtime([] {
    router<reader> r;
    EXPECT_EQ(r.tell(news{}), tell_status::down);
    EXPECT_THROW(r.ask(count{}), actor_down);
    std::vector<actor_ref<reader>> all;
    for (int i = 0; i < 4; ++i) {
      all.push_back(spawn_actor<reader>());
      r.add(all.back());
    }
    for (int i = 0; i < 40; ++i) EXPECT_EQ(r.tell(news{}), tell_status::ok);
    for (auto& a : all) EXPECT_EQ(a.ask(count{}), 10);
    stop_and_join(all[0]);
    for (int i = 0; i < 30; ++i) EXPECT_EQ(r.tell(news{}), tell_status::ok);
    EXPECT_EQ(r.size(), 3u);
    int sum = 0;
    for (std::size_t i = 1; i < 4; ++i) sum += all[i].ask(count{});
    EXPECT_EQ(sum, 60);
    EXPECT_TRUE(r.remove(all[1]));
    stop_and_join(all[1], all[2], all[3]);
    EXPECT_EQ(r.tell(news{}), tell_status::down);
  });
}

TEST_P(routers, find_the_one_with_the_least_mail) {
  in_runtime([] {
    fiber_tests::event go;
    auto a = spawn_actor<blocked>(go);
    auto b = spawn_actor<blocked>(go);
    auto c = spawn_actor<blocked>(go);
    router<blocked> r{routing::least_mail, {a, b, c}};
    for (auto& x : {a, b, c}) x.tell(gate{});
    await([&] { return go.parked() == 3; });
    for (int i = 0; i < 6; ++i) a.tell(1);
    for (int i = 0; i < 3; ++i) b.tell(1);
    for (int i = 0; i < 9; ++i) EXPECT_EQ(r.tell(1), tell_status::ok);  // six each afterwards
    EXPECT_EQ(a.mail_count(), 6u);
    EXPECT_EQ(b.mail_count(), 6u);
    EXPECT_EQ(c.mail_count(), 6u);
    go.set();
    stop_and_join(a, b, c);
  });
}

TEST_P(routers, keep_keys_where_they_are) {
  class keeper : public actor<keeper> {
   public:
    void on(key_of k) { ++keys_[k.key]; }
    std::map<int, int> on(count) { return keys_; }

   private:
    std::map<int, int> keys_;
  };
  in_runtime([] {
    std::vector<actor_ref<keeper>> all;
    for (int i = 0; i < 5; ++i) all.push_back(spawn_actor<keeper>());
    router<keeper> r{routing::consistent_hash, all};
    EXPECT_THROW(r.tell(key_of{1}), usage_error);
    const auto send = [&] {
      for (int key = 0; key < 200; ++key)
        for (int i = 0; i < 2; ++i) r.tell(key, key_of{key});
    };
    send();
    std::map<int, std::size_t> where;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto keys = all[i].ask(count{});
      EXPECT_GE(keys.size(), 5u);  // of 40 each on average
      for (const auto& [key, n] : keys) {
        EXPECT_EQ(n, 2);
        EXPECT_TRUE(where.emplace(key, i).second);
      }
    }
    EXPECT_EQ(where.size(), 200u);
    stop_and_join(all[2]);
    send();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i == 2) continue;
      for (const auto& [key, n] : all[i].ask(count{})) {
        const bool moved = where[key] == 2;
        EXPECT_TRUE(moved || where[key] == i) << key;
        EXPECT_EQ(n, moved ? 2 : 4);
      }
    }
    stop_and_join(all[0], all[1], all[3], all[4]);
  });
}

TEST_P(routers, pass_over_members_that_are_full) {
  in_runtime([] {
    for (const routing policy : {routing::round_robin, routing::random, routing::least_mail}) {
      fiber_tests::event go;
      auto slow = spawn_actor<blocked>(actor_options{.mailbox_capacity = 2}, go);
      auto refusing = spawn_actor<blocked>(actor_options{.mailbox_capacity = 2, .overflow = overflow::fail}, go);
      auto free = spawn_actor<blocked>(go);
      router<blocked> r{policy, {slow, refusing, free}};
      slow.tell(gate{});
      refusing.tell(gate{});
      await([&] { return go.parked() == 2; });
      for (int i = 0; i < 30; ++i) EXPECT_EQ(r.tell(std::string{"a longer text, kept by the heap."}), tell_status::ok);
      EXPECT_LE(slow.mail_count(), 2u);
      EXPECT_LE(refusing.mail_count(), 2u);
      // Requests, too.
      for (std::size_t i = slow.mail_count(); i < 2; ++i) slow.tell(1);
      for (std::size_t i = refusing.mail_count(); i < 2; ++i) refusing.tell(1);
      for (int i = 0; i < 3; ++i) EXPECT_GE(r.ask(news{"x"}).size(), 26u * 32 + 1);
      go.set();
      await([&] { return refusing.mail_count() == 0; });
      const auto text = [](auto& a) { return a.ask(news{""}).size(); };
      EXPECT_EQ(text(slow) + text(refusing) + text(free), 30u * 32);  // none is lost, none is empty
      stop_and_join(slow, refusing, free);
    }
  });
}

TEST_P(routers, wait_when_all_are_full) {
  in_runtime([] {
    fiber_tests::event go;
    auto a = spawn_actor<blocked>(actor_options{.mailbox_capacity = 1}, go);
    router<blocked> r{routing::round_robin, {a}};
    r.tell(gate{});
    await([&] { return go.parked() == 1; });
    r.tell(1);
    auto sender = spawn([&] { return r.tell(1); });
    await([&] { return sender.has_ended() || a.mail_count() == 1; });
    EXPECT_FALSE(sender.has_ended());
    go.set();
    EXPECT_EQ(sender.join(), tell_status::ok);
    EXPECT_EQ(a.ask(count{}), 2);
    stop_and_join(a);
  });
}

TEST_P(routers, choose_at_random) {
  in_runtime([] {
    std::vector<actor_ref<reader>> all;
    for (int i = 0; i < 4; ++i) all.push_back(spawn_actor<reader>());
    router<reader> r{routing::random, all};
    for (int i = 0; i < 400; ++i) r.tell(news{});
    int sum = 0;
    std::vector<int> counts;
    for (auto& a : all) {
      counts.push_back(a.ask(count{}));
      sum += counts.back();
      EXPECT_GT(counts.back(), 50);  // of 100 on average; the same numbers in each run
    }
    EXPECT_EQ(sum, 400);
    EXPECT_NE(counts, std::vector<int>(4, 100));
    for (auto& a : all) stop_and_join(a);
  });
}

TEST_P(routers, tell_all) {
  in_runtime([] {
    fiber_tests::event go;
    auto a = spawn_actor<blocked>(actor_options{.mailbox_capacity = 1}, go);
    auto b = spawn_actor<blocked>(go);
    auto c = spawn_actor<blocked>(go);
    router<blocked> r{routing::round_robin, {a, b, c}};
    a.tell(gate{});
    await([&] { return go.parked() == 1; });
    a.tell(1);
    stop_and_join(c);
    const published became = r.broadcast(5);
    EXPECT_EQ(became.taken, 1u);
    EXPECT_EQ(became.refused, 1u);
    EXPECT_EQ(r.size(), 2u);
    EXPECT_EQ(b.ask(count{}), 1);
    go.set();
    stop_and_join(a, b);
    EXPECT_EQ(r.broadcast(5).taken, 0u);
  });
}

/// Answers with its number when it may, or fails.
class oracle : public actor<oracle> {
 public:
  oracle(int number, fiber_tests::event& go) : number_{number}, go_{go} {}
  int on(int question) {
    if (question < 0) throw std::runtime_error{"no"};
    if (question != number_) go_.wait();
    return number_;
  }
  void on(gate) { go_.wait(); }
  void on(const news&) {}

 private:
  int number_;
  fiber_tests::event& go_;
};

TEST_P(routers, ask_all_and_take_the_first_answer) {
  in_runtime([] {
    fiber_tests::event go;
    router<oracle> r;
    EXPECT_THROW(r.ask_first(1), actor_down);
    std::vector<actor_ref<oracle>> all;
    for (int i = 0; i < 4; ++i) {
      all.push_back(spawn_actor<oracle>(i, go));
      r.add(all.back());
    }
    EXPECT_EQ(r.ask_first(2), 2);  // the others wait
    await([&] { return go.parked() == 3; });
    EXPECT_EQ(r.ask_first_for(1h, 2), 2);
    EXPECT_THROW(r.ask_first_for(1ms, 7), timeout_error);
    // One that fails is no answer.
    auto first = spawn([&] { return r.ask_first(1); });
    for (const std::size_t i : {0u, 2u, 3u}) all[i].kill();
    go.set();
    EXPECT_EQ(first.join(), 1);
    for (auto& a : all) a.kill();
    for (auto& a : all) a.join();
    EXPECT_THROW(r.ask_first(1), actor_down);
  });
}

TEST_P(routers, tell_why_there_is_no_first_answer) {
  in_runtime([] {
    fiber_tests::event go;
    auto failing = spawn_actor<oracle>(0, go);
    auto full = spawn_actor<oracle>(actor_options{.mailbox_capacity = 1}, 1, go);
    full.tell(gate{});
    await([&] { return go.parked() == 1; });
    full.tell(news{});
    router<oracle> r{routing::round_robin, {full}};
    EXPECT_THROW(r.ask_first(1), mailbox_full);  // nobody waits for room
    class knows : public actor<knows> {
     public:
      explicit knows(const any_actor& a) { monitor(a); }
      void on(const down&) {}
    };
    auto k = spawn_actor<knows>(failing);
    r.add(failing);
    EXPECT_THROW(r.ask_first(-1), actor_down);
    go.set();
    stop_and_join(full, k);
  });
}

TEST_P(routers, change_their_size) {
  in_runtime([] {
    supervisor sup;
    router<reader> r;
    int made = 0;
    const auto make = [&] {
      ++made;
      return sup.spawn_actor<reader>({.lifetime = child_lifetime::temporary});
    };
    r.resize(5, make);
    EXPECT_EQ(r.size(), 5u);
    const auto five = r.members();
    for (int i = 0; i < 50; ++i) r.tell(news{});
    r.resize(2, make);
    EXPECT_EQ(r.members(), (std::vector{five[0], five[1]}));
    for (std::size_t i = 2; i < 5; ++i) EXPECT_EQ(five[i].join().kind(), exit_kind::stopped);
    for (int i = 0; i < 10; ++i) r.tell(news{});
    EXPECT_EQ(five[0].ask(count{}), 15);
    stop_and_join(five[0]);
    r.resize(3, make);  // the one that has ended does not count
    EXPECT_EQ(r.size(), 3u);
    EXPECT_EQ(made, 7);
    r.resize(0, make);
    EXPECT_EQ(r.tell(news{}), tell_status::down);
  });
}

}  // namespace
}  // namespace ramie
