// Names of actors.
#include <ramie/patterns/registry.hpp>

#include <ramie/fiber/fork_join.hpp>
#include <ramie/patterns/testing.hpp>
#include <ramie/supervise/supervisor.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace ramie {
namespace {

using namespace actor_tests;
using namespace pattern_tests;

using words = std::vector<std::string>;

class names : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, names, few_and_many());

TEST_P(names, are_found_while_their_actor_lives) {
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
}

words sorted(words all) {
  std::sort(all.begin(), all.end());
  return all;
}

TEST_P(names, are_of_one_runtime) {
  in_runtime([] {
    auto here = spawn_actor<reader>();
    EXPECT_TRUE(register_name("same", here));
    EXPECT_TRUE(register_name("here", here));
    {
      runtime other{{.workers = 1}};
      auto there = other
                       .spawn([] {
                         auto a = spawn_actor<reader>();
                         EXPECT_FALSE(whereis_any("same"));
                         EXPECT_TRUE(register_name("same", a));
                         EXPECT_EQ(whereis<reader>("same"), a);
                         EXPECT_EQ(registered_names(), words{"same"});
                         EXPECT_FALSE(whereis_any("here"));
                         return a;
                       })
                       .join();
      EXPECT_EQ(whereis<reader>("same"), here);
      EXPECT_EQ(whereis<reader>(other, "same"), there);
      EXPECT_EQ(whereis_any(other, "same"), there);
      EXPECT_FALSE(whereis_any(other, "here"));
      EXPECT_EQ(registered_names(other), words{"same"});
      EXPECT_EQ(sorted(registered_names()), (words{"here", "same"}));
      // A name is of the runtime of its actor, not of the caller.
      EXPECT_TRUE(register_name("more", there));
      EXPECT_FALSE(whereis_any("more"));
      EXPECT_EQ(whereis_any(other, "more"), there);
      EXPECT_TRUE(unregister_name(other, "same"));
      EXPECT_FALSE(unregister_name(other, "same"));
      EXPECT_EQ(whereis<reader>("same"), here);
    }
    EXPECT_EQ(sorted(registered_names()), (words{"here", "same"}));
    stop_and_join(here);
  });
}

TEST(registry, are_looked_up_by_plain_threads_that_say_where) {
  EXPECT_THROW(static_cast<void>(whereis_any("a")), usage_error);
  EXPECT_THROW(static_cast<void>(whereis<reader>("a")), usage_error);
  EXPECT_THROW(static_cast<void>(registered_names()), usage_error);
  EXPECT_THROW(unregister_name("a"), usage_error);
  runtime rt{{.workers = 1}};
  const auto a = rt.run([] {
    auto made = spawn_actor<reader>();
    EXPECT_TRUE(register_name("a", made));
    return made;
  });
  EXPECT_EQ(whereis<reader>(rt, "a"), a);
  EXPECT_FALSE(whereis<other_reader>(rt, "a").has_value());
  EXPECT_TRUE(register_name("b", a));
  EXPECT_EQ(names_of(a), (words{"b", "a"}));
  EXPECT_TRUE(unregister_name(rt, "a"));
  EXPECT_EQ(registered_names(rt), words{"b"});
  a.kill();
  a.join();
  EXPECT_EQ(registered_names(rt), words{});
  EXPECT_EQ(names_of(a), words{});
}

/// An actor ends while its names are given, taken away and listed.
TEST_P(names, go_with_their_actor_whatever_else_happens) {
  in_runtime([] {
    for (int i = 0; i < scaled(100); ++i) {
      auto a = spawn_actor<reader>();
      auto b = spawn_actor<reader>();
      for (int n = 0; n < 10; ++n) register_name(std::to_string(n), n % 2 == 0 ? a : b);
      fork_join([&] { a.kill(); },
                [&] {
                  fork_join(
                      [&] {
                        for (int n = 0; n < 10; ++n) unregister_name(std::to_string(n));
                      },
                      [&] {
                        for (int n = 10; n < 20; ++n) register_name(std::to_string(n), a);
                        EXPECT_LE(names_of(a).size(), 20u);
                      });
                });
      a.join();
      EXPECT_EQ(names_of(a), words{});
      EXPECT_EQ(registered_names(), words{});
      stop_and_join(b);
    }
  });
}

/// Given, taken back, looked up and listed at random, by actors that come and go; beside a map. The names of those that
/// end stay in their tables for a while, struck out: they are given again before and after they have been taken out,
/// and the tables grow meanwhile.
TEST_P(names, are_those_of_a_map_whatever_is_struck_out) {
  in_runtime([] {
    std::mt19937 random{11};
    const auto below = [&](std::size_t n) { return random() % n; };
    for (const std::size_t many : {3u, 40u, 3000u}) {
      std::vector<actor_ref<reader>> all;
      for (int i = 0; i < 30; ++i) all.push_back(spawn_actor<reader>());
      std::map<std::string, std::size_t> given;
      const auto names_given_to = [&](std::size_t who) {
        words w;
        for (const auto& [name, of] : given)
          if (of == who) w.push_back(name);
        return w;
      };
      const int steps = scaled(20'000);
      for (int i = 0; i < steps; ++i) {
        const std::string name = std::to_string(below(many));
        const std::size_t who = below(all.size());
        const auto found = given.find(name);
        switch (below(many > 1000 ? 40 : 8)) {
          case 0:
            stop_and_join(all[who]);
            std::erase_if(given, [&](const auto& g) { return g.second == who; });
            EXPECT_EQ(names_of(all[who]), words{});
            EXPECT_FALSE(register_name(name, all[who]));
            all[who] = spawn_actor<reader>();
            break;
          case 1:
            EXPECT_EQ(unregister_name(name), found != given.end());
            given.erase(name);
            break;
          case 2: EXPECT_EQ(sorted(names_of(all[who])), names_given_to(who)); break;
          case 3:
            if (below(20) == 0) {
              words w;
              for (const auto& g : given) w.push_back(g.first);
              EXPECT_EQ(sorted(registered_names()), w);
            }
            break;
          default:
            EXPECT_EQ(whereis_any(name), found == given.end() ? any_actor{} : any_actor{all[found->second]});
            EXPECT_EQ(register_name(name, all[who]), given.emplace(name, who).second);
        }
        if (HasFailure()) return;
      }
      for (const auto& a : all) stop_and_join(a);
      EXPECT_EQ(registered_names(), words{});
    }
  });
}

/// A runtime that has ended leaves names behind that are struck out only; the next may have its address.
TEST(registry, forgets_the_names_of_a_runtime_that_has_ended) {
  for (int i = 0; i < 20; ++i) {
    runtime rt{{.workers = 2}};
    rt.run([&] {
      EXPECT_EQ(registered_names(), words{});
      for (int n = 0; n < 100; ++n) {
        const std::string name = std::to_string(n);
        EXPECT_FALSE(whereis_any(name));
        EXPECT_FALSE(unregister_name(name));
        auto a = spawn_actor<reader>();
        EXPECT_TRUE(register_name(name, a));
        EXPECT_TRUE(register_name(name + " more", a));
        if (n % 3 == i % 3) stop_and_join(a);
      }
    });
  }
}

struct fail_now {};
class primary : public actor<primary> {
 public:
  explicit primary(std::string name) { EXPECT_TRUE(register_name(std::move(name), self())); }
  void on(fail_now) { throw cancelled{}; }
};
/// Takes the name as soon as it hears that the one who had it has ended.
template <int how>
class standby : public actor<standby<how>> {
 public:
  standby(const any_actor& whom, std::string name) : name_{std::move(name)} {
    if (how == 0) this->link(whom);
    if (how == 1) this->monitor(whom);
    if (how == 2) this->monitor(whom, monitoring::incarnation);
  }
  void on(const exit_signal& s) { take(s.who); }
  void on(const down& d) { take(d.who); }

 private:
  void take(const any_actor& who) {
    EXPECT_FALSE(who.alive());
    EXPECT_NE(who.reason().kind(), exit_kind::alive);
    EXPECT_FALSE(whereis_any(name_));
    EXPECT_TRUE(register_name(name_, this->self()));
    EXPECT_EQ(names_of(who), words{});
    this->stop();
  }
  std::string name_;
};
template <int how>
void hand_over() {
  for (int i = 0; i < scaled(300); ++i) {
    const auto first = spawn_actor<primary>("the one");
    const auto second = spawn_actor<standby<how>>(any_actor{first}, "the one");
    if (i % 3 == 0) first.kill();
    else if (i % 3 == 1) first.stop();
    else first.tell(fail_now{});
    second.join();
    first.join();
  }
}

/// Those who are told of an end, in whatever way, find the name free.
TEST_P(names, are_free_when_the_end_is_heard_of) {
  in_runtime([] {
    hand_over<0>();
    hand_over<1>();
    hand_over<2>();
    for (int i = 0; i < scaled(1000); ++i) {
      const auto first = spawn_actor<primary>("the one");
      if (i % 2 == 0) {
        EXPECT_THROW(first.ask(fail_now{}), actor_down);
      } else {
        EXPECT_THROW(first.ask_async(fail_now{}).get(), actor_down);
      }
      EXPECT_FALSE(first.alive());
      EXPECT_FALSE(whereis_any("the one"));
    }
  });
}

}  // namespace
}  // namespace ramie
