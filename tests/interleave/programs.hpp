// What the simulator's programs share: small runtimes, and pauses that move the next step about.
#pragma once

#include "simulator.hpp"

#include <ramie/machine/spin_lock.hpp>
#include <ramie/runtime/runtime.hpp>
#include <ramie/sched/scheduler.hpp>

#include <cstddef>

namespace ramie::interleave {

/// `n` workers and no spares; a deadlock is the simulator's to report.
inline runtime_options workers(int n) {
  return {.workers = n, .stack_size = 64 * 1024, .name = "sim", .spare_workers = 0, .report_deadlocks = false};
}

/// What is wrong with a runtime none of whose threads can run: somebody sleeps while work waits that it could do, or
/// would not be woken for the next. Null: nothing. Not for runtimes with a monitor, which may leave work to it.
inline const char* wrong_at_rest(detail::scheduler& s) {
  const auto& all = s.all();
  bool sleeps = false;
  for (std::size_t i = 0; i < all.size(); ++i) sleeps |= all.at(i).idle.load(std::memory_order_relaxed);
  if (!sleeps) return nullptr;
  if (all.injected.size() != 0) return "a worker sleeps while work for any of them waits";
  if (!s.sleeping.hint()) return "a worker sleeps and nobody searches, and those who publish are not told";
  for (std::size_t i = 0; i < all.size(); ++i) {
    const detail::worker& w = all.at(i);
    if (w.idle.load(std::memory_order_relaxed)) {
      if (!w.sent.empty()) return "a worker sleeps while its inbox has work";
      if (w.ready.size() != 0 || w.spawned.size() != 0 || w.has_fork_jobs())
        return "a worker sleeps while its queues have work";
    } else if (all.steals) {
      if (w.has_fork_jobs()) return "a worker sleeps while another has a fork job to give";
      if (w.spawned.size() >= 2 && w.leave_new_until.load(std::memory_order_relaxed) == 0)
        return "a worker sleeps while another has new tasks to give";
    }
  }
  return nullptr;
}

/// Looks at that whenever `rt` is at rest, as long as this lives.
class watch_at_rest {
 public:
  explicit watch_at_rest(runtime& rt) {
    at_rest = [&s = rt.internals()] { return wrong_at_rest(s); };
  }
  watch_at_rest(const watch_at_rest&) = delete;
  watch_at_rest& operator=(const watch_at_rest&) = delete;
  ~watch_at_rest() { at_rest = nullptr; }
};

/// Runtimes made while it lives have a monitor.
class with_monitor {
 public:
  with_monitor() { unmonitored = false; }
  with_monitor(const with_monitor&) = delete;
  with_monitor& operator=(const with_monitor&) = delete;
  ~with_monitor() { unmonitored = true; }
};

/// A program for the main fiber of a runtime.
template <class F>
auto in_runtime(F program, int n = 2) {
  return [program, n] {
    runtime rt{workers(n)};
    const watch_at_rest watched{rt};
    rt.run([&] { program(); });
  };
}

/// So that the next step meets the others at any point.
inline void wait_a_little() {
  if (pick(2) == 0) detail::os_sleep(1000 * pick(20));
}

}  // namespace ramie::interleave
