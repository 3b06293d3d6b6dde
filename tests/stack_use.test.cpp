// How much stack is used, measured at run time: runtime_options::paint_stacks.
#include <ramie/machine/test_options.hpp>
#include <ramie/ramie.hpp>

#include <ramie/base/config.hpp>
#include <ramie/base/testing.hpp>

#include <gtest/gtest.h>

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace ramie {
namespace {

RAMIE_NOINLINE void use(std::size_t bytes) {
  volatile char* const memory = static_cast<char*>(__builtin_alloca(bytes));
  for (std::size_t i = 0; i < bytes; i += 64) memory[i] = 'x';
}

/// What was measured for that name, or nothing.
stack_use use_of(const std::string& name) {
  for (const stack_use& one : stack_usage())
    if (one.name.find(name) != std::string::npos) return one;
  return {};
}

#if !RAMIE_ASAN  // which keeps such memory with red zones, or elsewhere
constexpr std::size_t slack = RAMIE_TSAN ? 32 * 1024 : 6 * 1024;  // frames of ramie, of gtest, of the measurement

class stack_uses : public ::testing::TestWithParam<int> {
 protected:
  runtime rt_{{.workers = GetParam(), .stack_size = 512 * 1024, .name = "painted", .paint_stacks = true}};
  /// The table is the process's, and tests may be repeated.
  std::string in_this_test(const std::string& name) { return name + std::to_string(number_); }
  static inline int tests_ = 0;
  int number_ = ++tests_ + 100'000;
};

TEST_P(stack_uses, are_told_by_name) {
  rt_.run([&] {
    scope all;
    for (const std::size_t kib : {8u, 64u, 200u}) {
      for (int i = 0; i < 20; ++i)
        spawn(fiber_options{.name = in_this_test("needs " + std::to_string(kib) + " of ")}, [=] {
          if (i % 2 == 0) this_fiber::yield();
          use(kib * 1024 - static_cast<std::size_t>(i));
          if (i % 3 == 0) this_fiber::yield();
        }).join();
    }
  });
  for (const std::size_t kib : {8u, 64u, 200u}) {
    const stack_use found = use_of(in_this_test("needs " + std::to_string(kib) + " of "));
    EXPECT_EQ(found.measured, 20u);
    EXPECT_GE(found.most_bytes, kib * 1024);
    EXPECT_LE(found.most_bytes, kib * 1024 + slack);
    EXPECT_GT(found.usable_bytes, 500'000u);
  }
}

TEST_P(stack_uses, do_not_count_what_was_there_before) {
  rt_.run([&] {
    for (int i = 0; i < 50; ++i) {
      spawn(fiber_options{.name = in_this_test("large")}, [] { use(300 * 1024); }).join();
      spawn(fiber_options{.name = in_this_test("small")}, [] { this_fiber::yield(); }).join();
    }
  });
  EXPECT_LE(use_of(in_this_test("small")).most_bytes, slack);
  EXPECT_EQ(use_of(in_this_test("small")).measured, 50u);
}

TEST_P(stack_uses, are_told_of_stacks_of_an_own_size) {
  rt_.run(
      [&] { spawn(fiber_options{.name = in_this_test("own"), .stack_size = 1 << 20}, [] { use(700'000); }).join(); });
  const stack_use found = use_of(in_this_test("own"));
  EXPECT_GE(found.most_bytes, 700'000u);
  EXPECT_GT(found.usable_bytes, 1'000'000u);
}

struct dig {
  std::size_t bytes;
};
class digger : public actor<digger> {
 public:
  void on(dig d) { use(d.bytes); }
};

TEST_P(stack_uses, are_told_of_actors_by_their_class) {
  rt_.run([&] {
    auto d = spawn_actor<digger>();
    for (const std::size_t kib : {1u, 90u, 2u}) d.tell(dig{kib * 1024});
    d.stop();
    d.join();
  });
  // A fiber that joined an actor resumes a moment before the actor's last turn is recorded.
  while (use_of("digger").most_bytes < 90u * 1024) ::sched_yield();
  const stack_use found = use_of("digger");
  EXPECT_LE(found.most_bytes, 90u * 1024 + slack);
}

struct function_without_a_name {
  void operator()() const { use(30'000); }
};

TEST_P(stack_uses, are_told_by_function_where_there_is_no_name) {
  rt_.run([&] { spawn(function_without_a_name{}).join(); });
  EXPECT_GE(use_of("function_without_a_name").most_bytes, 30'000u);
}

TEST_P(stack_uses, are_told_of_those_that_go_on) {
  rt_.run([&] {
    event used, enough;
    auto fiber = spawn(fiber_options{.name = in_this_test("waits")}, [&] {
      use(100'000);
      used.set();
      enough.wait();
    });
    used.wait();
    EXPECT_GE(use_of(in_this_test("waits")).most_bytes, 100'000u);
    EXPECT_EQ(use_of(in_this_test("waits")).measured, 1u);
    std::FILE* const file = std::tmpfile();
    EXPECT_TRUE(dump(::fileno(file)));
    std::string text(1 << 20, '\0');
    const ssize_t size = ::pread(::fileno(file), text.data(), text.size(), 0);
    std::fclose(file);
    text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    const std::size_t at = text.find("fiber \"" + in_this_test("waits") + "\"");
    EXPECT_NE(at, std::string::npos);
    EXPECT_NE(text.find("    has used 10", at), std::string::npos) << text;
    enough.set();
    fiber.join();
  });
}

long depths(int n) {
  use(20'000);
  if (n == 0) return 1;
  auto [a, b] = fork_join([=] { return depths(n - 1); }, [=] { return depths(n - 1); });
  return a + b;
}

TEST_P(stack_uses, are_told_of_fork_jobs_as_their_fibers) {
  rt_.run([&] {
    for (int i = 0; i < 5; ++i)
      EXPECT_EQ(spawn(fiber_options{.name = in_this_test("forks")}, [] { return depths(8); }).join(), 256);
  });
  const stack_use found = use_of(in_this_test("forks"));
  EXPECT_GE(found.measured, 5u);
  EXPECT_GE(found.most_bytes, 20'000u);
}

TEST_P(stack_uses, are_measured_while_everything_migrates) {
  const detail::with_test_options migrating{{.migrate_always = true}};
  runtime rt{{.workers = GetParam(), .stack_size = 512 * 1024, .paint_stacks = true}};
  rt.run([&] {
    scope all;
    for (int i = 0; i < 40; ++i)
      all.spawn([&, i] {
        spawn(fiber_options{.name = in_this_test("wanders")}, [i] {
          for (int turn = 0; turn < 20; ++turn) {
            this_fiber::yield();
            use(static_cast<std::size_t>(1000 * (i + 1)));
          }
        }).join();
      });
    all.join();
  });
  const stack_use found = use_of(in_this_test("wanders"));
  EXPECT_EQ(found.measured, 40u);
  EXPECT_GE(found.most_bytes, 40'000u);
  EXPECT_LE(found.most_bytes, 40'000u + slack);
}

INSTANTIATE_TEST_SUITE_P(workers, stack_uses, ::testing::Values(1, 2, 8));
#endif

TEST(stack_uses_by_default, are_not_measured) {
  runtime rt{{.workers = 1}};
  rt.run([] { spawn(fiber_options{.name = "not measured"}, [] { use(10'000); }).join(); });
  EXPECT_EQ(use_of("not measured").measured, 0u);
}

int name_too_many() {
  runtime rt{{.workers = 1, .paint_stacks = true}};
  rt.run([] {
    for (int i = 0; i < 1100; ++i)
      spawn(fiber_options{.name = "number " + std::to_string(i)}, [] { use(1000); }).join();
  });
  return use_of("(others)").measured >= 100 ? 0 : 1;
}

// In a process of its own: the table is never emptied.
TEST(stack_uses_by_name, that_are_too_many_are_put_together) {
  GTEST_FLAG_SET(death_test_style, detail::testing::death_test_style());
  EXPECT_EXIT(std::exit(name_too_many()), ::testing::ExitedWithCode(0), "");
}

TEST(stack_uses_by_name, are_told_at_the_exit_if_the_environment_asks) {
  GTEST_FLAG_SET(death_test_style, detail::testing::death_test_style());
  EXPECT_EXIT(
      {
        ::setenv("RAMIE_PAINT_STACKS", "1", 1);
        runtime{{.workers = 1}}.run([] { spawn(fiber_options{.name = "asked"}, [] { use(9000); }).join(); });
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "maximum stack use in bytes\n.*of [0-9]+: asked, 1 samples");
}

}  // namespace
}  // namespace ramie
