// Names of actors.
#include <ramie/patterns/registry.hpp>

#include <ramie/fiber/fork_join.hpp>
#include <ramie/patterns/testing.hpp>
#include <ramie/supervise/supervisor.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
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
      // A name is of the runtime of its actor, whoever gives it.
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

}  // namespace
}  // namespace ramie
