// Groups and routers, names, dead letters.
#include <ramie/patterns/group.hpp>

#include <ramie/actor/dead_letters.hpp>
#include <ramie/actor/registry.hpp>
#include <ramie/actor/testing.hpp>
#include <ramie/supervise/supervisor.hpp>

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <string>
#include <vector>

namespace ramie {
namespace {

using namespace actor_tests;

struct news {
  std::string text;
};
struct count {};
struct key_of {
  int key;
};
struct gate {};

class reader : public actor<reader> {
 public:
  void on(const news&) { ++count_; }
  int on(count) { return count_; }

 private:
  int count_ = 0;
};
class other_reader : public actor<other_reader> {
 public:
  void on(news n) { length_ += n.text.size(); }
  std::size_t on(count) { return length_; }

 private:
  std::size_t length_ = 0;
};

class many : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, many, few_and_many());

TEST_P(many, groups_publish_to_all_who_live) {
  in_runtime([] {
    group<news> g;
    auto a = spawn_actor<reader>();
    auto b = spawn_actor<other_reader>();
    auto c = spawn_actor<reader>();
    g.join(a);
    g.join(a);
    g.join(b);
    g.join(c);
    EXPECT_EQ(g.size(), 3u);
    EXPECT_EQ(g.publish(news{"four"}), 3u);
    stop_and_join(c);
    EXPECT_EQ(g.publish(news{"four"}), 2u);
    EXPECT_EQ(g.size(), 2u);
    EXPECT_EQ(a.ask(count{}), 2);
    EXPECT_EQ(b.ask(count{}), 8u);
    EXPECT_TRUE(g.leave(a));
    EXPECT_FALSE(g.leave(a));
    EXPECT_EQ(g.publish(news{"five!"}), 1u);
    stop_and_join(a, b);
    EXPECT_EQ(g.publish(news{""}), 0u);
  });
}

TEST_P(many, routers_take_turns) {
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

TEST_P(many, routers_find_the_one_with_the_least_mail) {
  class blocked : public actor<blocked> {
   public:
    explicit blocked(fiber_tests::event& e) : go_{e} {}
    void on(gate) { go_.wait(); }
    void on(int) { ++count_; }
    int on(count) { return count_; }

   private:
    fiber_tests::event& go_;
    int count_ = 0;
  };
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

TEST_P(many, routers_keep_keys_where_they_are) {
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

TEST_P(many, names_are_found_while_their_actor_lives) {
  in_runtime([] {
    EXPECT_FALSE(whereis<reader>("news").has_value());
    supervisor sup;
    auto a = spawn_actor<reader>();
    auto b = spawn_actor<reader>();
    auto supervised = sup.spawn_actor<reader>();
    EXPECT_TRUE(register_name("news", a));
    EXPECT_TRUE(register_name("sport", a));
    EXPECT_TRUE(register_name("kept", supervised));
    EXPECT_FALSE(register_name("news", b));
    auto found = whereis<reader>("news");
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(*found, a);
    EXPECT_FALSE(whereis<other_reader>("news").has_value());
    found->tell(news{});
    EXPECT_EQ(a.ask(count{}), 1);
    EXPECT_TRUE(unregister_name("sport"));
    EXPECT_FALSE(unregister_name("sport"));
    stop_and_join(a);
    EXPECT_FALSE(whereis<reader>("news").has_value());
    EXPECT_FALSE(register_name("again", a));
    EXPECT_TRUE(register_name("news", b));
    EXPECT_TRUE(whereis<reader>("kept").has_value());
    stop_and_join(b);
  });
  EXPECT_FALSE(whereis<reader>("kept").has_value());
}

TEST_P(many, dead_letters_are_counted_and_shown) {
  static std::atomic<int> shown{0};
  static std::atomic<bool> right{true};
  shown = 0;
  in_runtime([] {
    auto a = spawn_actor<reader>();
    const dead_letter_counts before = dead_letters();
    on_dead_letter([a](const dead_letter& l) {
      ++shown;
      if (!(l.to == a) || !(*l.type == type_of<news>()) || l.cause != dead_letter_cause::down) right = false;
    });
    a.tell(news{});
    a.stop();
    a.tell(news{"late"});
    a.join();
    a.tell(news{"too late"});
    on_dead_letter({});
    a.tell(news{"nobody looks"});
    EXPECT_EQ(shown.load(), 2);
    EXPECT_TRUE(right.load());
    EXPECT_EQ(dead_letters().down - before.down, 3u);
  });
}

}  // namespace
}  // namespace ramie
