// The cost of fibers in resident memory. Sizes are of release builds: without optimization and under sanitizers only
// the counts are looked at.
#include <ramie/fiber/testing.hpp>

#include <malloc.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace ramie {
namespace {

using namespace fiber_tests;

std::size_t resident() {
  std::FILE* f = std::fopen("/proc/self/statm", "r");
  long all = 0, here = 0;
  EXPECT_EQ(std::fscanf(f, "%ld %ld", &all, &here), 2);
  std::fclose(f);
  return static_cast<std::size_t>(here) * 4096;
}

int how_many() {
  const char* wish = std::getenv("RAMIE_TEST_LARGE");
  if (RAMIE_TSAN != 0) return 1'000;
  if (RAMIE_ASAN != 0) return 10'000;
  if (detail::testing::emulated()) return 10'000;  // each guard takes one of vm.max_map_count mappings
  return wish != nullptr && std::string_view{wish} == "1" ? 1'000'000 : 100'000;
}

class memory : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, memory, few_and_many());

TEST_P(memory, parked_fibers_take_a_page_and_little_more) {
  const int n = how_many();
  runtime rt{options()};
  event go;
  std::vector<join_handle<void>> handles(static_cast<std::size_t>(n));
  const std::size_t before = resident();
  std::atomic<int> woken{0};
  rt.run([&] {
    for (auto& h : handles)
      h = spawn([&] {
        go.wait();
        ++woken;
      });
    await([&] { return go.parked() == n; });
  });
  const std::size_t grown = resident() - before;
  const double each = static_cast<double>(grown) / n;
  RecordProperty("bytes_per_parked_fiber", static_cast<int>(each));
  // 16 bytes for each in the event's own list, and half as many again while that grows; a megabyte for the workers.
  const double slack = 24 + 1048576.0 * GetParam() / n;
  EXPECT_TRUE(!optimized || detail::testing::emulated() || each <= 4.7 * 1024 + slack) << each;
  go.set();
  for (auto& h : handles) h.join();
  EXPECT_EQ(woken, n);
}

TEST_P(memory, tasks_that_have_not_started_take_128_bytes) {
  const int n = RAMIE_TSAN != 0 ? 10'000 : 300'000;
  runtime_options o = options();
  o.spare_workers = 0;
  runtime rt{o};
  std::atomic<int> ran{0};
  std::atomic<int> held{0};
  std::atomic<bool> let_go{false};
  // All other workers are held, so that none starts them.
  std::vector<join_handle<void>> holders;
  for (int i = 1; i < GetParam(); ++i)
    holders.push_back(rt.spawn([&] {
      ++held;
      while (!let_go) std::this_thread::yield();
    }));
  await([&] { return held == GetParam() - 1; });
  rt.run([&] {
    ::malloc_trim(0);
    const std::size_t before = resident();
    for (int i = 0; i < n; ++i) spawn([&] { ran.fetch_add(1, std::memory_order_relaxed); }).detach();
    // It may shrink if memory that the last case freed is reused, and more is freed meanwhile.
    const double grown = static_cast<double>(resident()) - static_cast<double>(before);
    // The deque doubles as it grows, and keeps no more than 16 bytes for each.
    const double each = grown / n;
    EXPECT_TRUE(!optimized || detail::testing::emulated() || each <= 128 + 1048576.0 / n) << each;
  });
  let_go = true;
  for (auto& h : holders) h.join();
  await([&] { return ran == n; });
}

TEST_P(memory, is_reused) {
  if (sanitized) GTEST_SKIP() << "their memory is not ours";
  runtime rt{options()};
  const auto wave = [&] {
    event go;
    std::vector<join_handle<void>> handles;
    for (int i = 0; i < 5000; ++i) handles.push_back(rt.spawn([&] { go.wait(); }));
    await([&] { return go.parked() == 5000; });
    go.set();
    for (auto& h : handles) h.join();
  };
  for (int i = 0; i < 3; ++i) wave();
  const std::size_t before = resident();
  for (int i = 0; i < 20; ++i) wave();
  const std::size_t after = resident();
  // Stacks circulate between workers, so a few more may have been touched than were in use at once.
  EXPECT_LT(after, before + 5000 * 4096 / 2);
}

TEST_P(memory, spawning_deep_first_keeps_it_flat) {
  if (sanitized) GTEST_SKIP() << "their memory is not ours";
  struct tree {
    static void go(int depth) {
      if (depth == 0) return;
      auto a = spawn(go, depth - 1);
      auto b = spawn(go, depth - 1);
      a.join();
      b.join();
    }
  };
  runtime rt{options()};
  rt.run([] { tree::go(10); });
  const std::size_t before = resident();
  rt.run([] { tree::go(17); });  // 262,143 fibers
  EXPECT_LT(resident(), before + (std::size_t{64} << 20)) << "all at once would be a gigabyte";
}

}  // namespace
}  // namespace ramie
