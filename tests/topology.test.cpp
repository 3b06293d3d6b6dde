// Workers that are near to each other and far from others, on simulated machines.
#include <ramie/channel/channel.hpp>
#include <ramie/fiber/fork_join.hpp>
#include <ramie/fiber/spawn.hpp>
#include <ramie/fiber/this_fiber.hpp>
#include <ramie/inspect/dump.hpp>
#include <ramie/machine/test_options.hpp>
#include <ramie/machine/topology_testing.hpp>
#include <ramie/runtime/runtime.hpp>
#include <ramie/sync/latch.hpp>
#include <ramie/worker/worker.hpp>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <vector>

namespace ramie {
namespace {

#if RAMIE_TSAN || RAMIE_ASAN
constexpr int rounds = 200;
#else
constexpr int rounds = 2000;
#endif

using detail::with_test_options;
using detail::testing::made_up;

long fib(int n) {
  if (n < 2) return n;
  auto [a, b] = fork_join([=] { return fib(n - 1); }, [=] { return fib(n - 2); });
  return a + b;
}

class topologies : public testing::TestWithParam<made_up> {
 private:
  with_test_options options_{{.machine = GetParam()}};
};
INSTANTIATE_TEST_SUITE_P(made_up, topologies,
                         testing::Values(made_up{.nodes = 2, .caches = 2, .cores = 2},
                                         made_up{.cores = 4, .threads = 2}, made_up{.nodes = 2, .cores = 4},
                                         made_up{.cores = 8}, made_up{.nodes = 2, .caches = 8, .cores = 8},
                                         made_up{.caches = 3, .cores = 1, .threads = 1}, made_up{.cores = 1}));

TEST_P(topologies, run_all_there_is) {
  runtime rt{{.workers = 8}};
  for (int round = 0; round < 5; ++round)
    rt.run([] {
      EXPECT_EQ(fib(16), 987);
      channel<int> numbers{8};
      std::atomic<int> sum{0};
      std::vector<join_handle<void>> all;
      for (int i = 0; i < 16; ++i)
        all.push_back(spawn([&] {
          while (const auto n = numbers.recv()) {
            sum.fetch_add(*n);
            if (*n % 16 == 0) this_fiber::yield();
          }
        }));
      for (int i = 0; i < rounds; ++i) static_cast<void>(numbers.send(1 + i % 16));
      numbers.close();
      for (auto& f : all) f.join();
      int expected = 0;
      for (int i = 0; i < rounds; ++i) expected += 1 + i % 16;
      EXPECT_EQ(sum.load(), expected);
    });
}

TEST_P(topologies, leave_nobody_without_work) {
  // Each worker holds one of eight fibers that can only end together: all have to be found, wherever the first one
  // runs.
  runtime rt{{.workers = 8}};
  for (int spawner = 0; spawner < 8; ++spawner)
    rt.spawn(fiber_options{.worker = spawner}, [] {
        std::atomic<int> running{0};
        std::vector<join_handle<void>> all;
        for (int i = 0; i < 7; ++i)
          all.push_back(spawn([&] {
            running.fetch_add(1);
            while (running.load() != 8) ::sched_yield();
          }));
        running.fetch_add(1);
        while (running.load() != 8) ::sched_yield();
        for (auto& f : all) f.join();
      }).join();
}

std::string dumped() {
  std::FILE* file = std::tmpfile();
  EXPECT_TRUE(dump(::fileno(file)));
  struct stat about{};
  ::fstat(::fileno(file), &about);
  std::string all(static_cast<std::size_t>(about.st_size), '\0');
  EXPECT_EQ(::pread(::fileno(file), all.data(), all.size(), 0), about.st_size);
  std::fclose(file);
  return all;
}

TEST(topology_dumps, show_who_is_near_to_whom) {
  const with_test_options options{{.machine = made_up{.nodes = 2, .caches = 2, .cores = 2}}};
  runtime rt{{.workers = 8}};
  // All threads have begun once each worker has run something.
  for (int i = 0; i < 8; ++i) rt.spawn(fiber_options{.worker = i}, [] {}).join();
  const std::string text = dumped();
  EXPECT_NE(text.find("  share a cache: 0 1 | 2 3 | 4 5 | 6 7\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  share a node: 0 1 2 3 | 4 5 6 7\n"), std::string::npos) << text;
}

TEST(topology_dumps, are_silent_where_all_are_alike) {
  const with_test_options alike{{.machine = made_up{.cores = 8}}};
  runtime rt{{.workers = 8}};
  EXPECT_EQ(dumped().find("share a"), std::string::npos);
  const with_test_options apart{{.machine = made_up{.nodes = 2}}};
  runtime two{{.workers = 2}};
  EXPECT_EQ(dumped().find("share a"), std::string::npos);
}

}  // namespace
}  // namespace ramie
