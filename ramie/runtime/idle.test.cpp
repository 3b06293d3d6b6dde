// Alone in its program, so that nothing else uses the processor time that is measured.
// Mostly waits.
#include <ramie/fiber/testing.hpp>
#include <ramie/sched/scheduler.hpp>

#include <sys/resource.h>

namespace ramie {
namespace {

using namespace fiber_tests;

std::chrono::microseconds cpu_time() {
  rusage use{};
  ::getrusage(RUSAGE_SELF, &use);
  const auto of = [](const timeval& t) {
    return std::chrono::seconds{t.tv_sec} + std::chrono::microseconds{t.tv_usec};
  };
  return of(use.ru_utime) + of(use.ru_stime);
}

class idle : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, idle, few_and_many());

TEST_P(idle, costs_nothing) {
  if (sanitized) GTEST_SKIP() << "sanitizers have threads of their own";
  runtime rt{options()};
  // It has run work, and fibers wait in it.
  std::vector<join_handle<void>> waiting;
  for (int i = 0; i < 100; ++i)
    waiting.push_back(rt.spawn([i] { i % 2 == 0 ? this_fiber::sleep_for(1h) : event{}.wait(); }));
  for (int i = 0; i < 1000; ++i) rt.run([] { this_fiber::yield(); });
  // Searching ends, and the monitor goes to sleep: that is not idle yet.
  detail::scheduler& s = rt.internals();
  await([&] {
    for (std::size_t i = 0; i < s.worker_count(); ++i)
      if (!s.at(i).idle.load()) return false;
    return true;
  });
  std::this_thread::sleep_for(1s);
  // On a busy machine that may take longer.
  std::chrono::microseconds used{};
  for (int i = 0; i < 5; ++i) {
    const auto before = cpu_time();
    std::this_thread::sleep_for(2s);
    used = cpu_time() - before;
    if (used < 2ms) break;
  }
  EXPECT_LT(used, 2ms) << "0.1 % of 2 s";
  RecordProperty("cpu_us_in_2_s", static_cast<int>(used.count()));
}

}  // namespace
}  // namespace ramie
