// Tells of a program that waits for itself.
//
// When a runtime has been idle for so long that its monitor would go to sleep, the monitor asks whether anything could
// still wake one of its fibers:
//  D1 Something of its own: a ready or new task, a timer, a blocking call under way, a fiber that is being spawned or woken from outside.
//     Then there is none.
//  D2 Another thread of the process: any thread that is neither a worker, monitor or idle helper of this runtime nor a
//     plain thread that itself waits, without a deadline, for a fiber, a channel or the like. It may be about to send
//     something. Then none is reported, and the question is put again, ever more rarely, up to once a minute.
//  D3 Otherwise the fibers that are left can never go on. They are listed, with what they wait for and where, a dump
//     follows, and the process ends with status 2.
// Thus a deadlock is missed while some other thread lives (a second runtime, a thread of the user's, of a sanitizer);
// none is reported that is not one, unless a signal handler was going to wake a fiber:
// runtime_options::report_deadlocks.
#include <ramie/sched/dump.hpp>
#include <ramie/sched/scheduler.hpp>
#include <ramie/sched/wait.hpp>
#include <ramie/stack/pool.hpp>

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace ramie::detail {

namespace {

constexpr std::size_t fibers_listed_most = 100;
constexpr int exit_status = 2;

/// 0 if that cannot be told.
std::size_t threads_of_process() noexcept {
  DIR* tasks = ::opendir("/proc/self/task");
  if (tasks == nullptr) return 0;
  std::size_t n = 0;
  while (const dirent* entry = ::readdir(tasks))
    if (entry->d_name[0] != '.') ++n;
  ::closedir(tasks);
  return n;
}

struct waiting_fiber {
  std::string name;
  const void* id;
  wait_site site;
};

struct collection {
  const scheduler* of;
  std::vector<waiting_fiber> fibers;
  std::size_t left_out = 0;
};

void print(const waiting_fiber& f) {
  if (f.name.empty()) std::fprintf(stderr, "  fiber %p: %s", f.id, f.site.reason);
  else std::fprintf(stderr, "  fiber \"%s\" (%p): %s", f.name.c_str(), f.id, f.site.reason);
  if (f.site.where.line() != 0)
    std::fprintf(stderr, ", at %s:%u in %s", f.site.where.file_name(), static_cast<unsigned>(f.site.where.line()),
                 f.site.where.function_name());
  std::fputc('\n', stderr);
}

}  // namespace

bool scheduler::nothing_can_wake_a_fiber(const waiting_threads& outside) noexcept {
  if (stopping() || ending_.load(std::memory_order_acquire)) return false;
  if (outsiders_.load(std::memory_order_acquire) != 0 || injected_.size() != 0) return false;
  std::size_t own_threads = 1;  // the monitor
  const std::size_t n = worker_count();
  std::size_t awake = 0;
  for (std::size_t i = 0; i < n; ++i) {
    worker& w = at(i);
    ++own_threads;
    if (!w.on_duty.load(std::memory_order_acquire)) continue;
    if (!w.idle.load(std::memory_order_acquire)) ++awake;
    if (w.ready.size() + w.spawned.size() != 0 || w.has_fork_jobs() || w.timers.next_ns() != timer_queue::never)
      return false;
  }
  if (awake != 0 || live() == 0) return false;
  const std::size_t helpers = blocking_.threads_if_idle();
  if (helpers == blocking_pool::busy) return false;
  const std::size_t threads = threads_of_process();
  return threads != 0 && threads == own_threads + helpers + outside.count;
}

std::int64_t scheduler::before_long_sleep(std::int64_t asleep_ns) noexcept {
  constexpr std::int64_t for_ever = -1, first_ns = 1'000'000'000, longest_ns = 60'000'000'000;
  if (!options_.report_deadlocks || live() == 0) return for_ever;
  // Twice, with a pause: somebody may be between two of the places that are looked at. And no thread may have begun or
  // ended a wait meanwhile.
  const auto stuck = [this](waiting_threads& outside) {
    outside = look_at_waiting_threads();
    return monitor_word_.load(std::memory_order_acquire) == 0 && nothing_can_wake_a_fiber(outside) &&
           look_at_waiting_threads().words == outside.words;
  };
  if (waiting_threads before, now; stuck(before)) {
    os_sleep(5'000'000);
    if (stuck(now) && now.words == before.words) report_deadlock();
  }
  return asleep_ns == 0 ? first_ns : std::min(2 * asleep_ns, longest_ns);
}

void scheduler::report_deadlock() noexcept {
  collection all{this, {}, 0};
  for_each_waiting(
      [](void* context, const task& t, const wait_site& site) {
        auto& into = *static_cast<collection*>(context);
        const worker* home = t.home.load(std::memory_order_relaxed);
        if (home == nullptr || home->owner != into.of) return;
        if (into.fibers.size() == fibers_listed_most) ++into.left_out;
        else into.fibers.push_back({name_of(&t), &t, site});
      },
      &all);
  std::fprintf(stderr,
               "ramie: deadlock: every fiber of runtime \"%s\" waits, and nothing is left that could wake one:\n",
               options_.name.c_str());
  for (const waiting_fiber& f : all.fibers) print(f);
  if (all.left_out != 0) std::fprintf(stderr, "  and %zu more\n", all.left_out);
  std::fflush(nullptr);
  dump(STDERR_FILENO,
       {.fibers = fibers_listed_most, .actors = fibers_listed_most});  // with backtraces, and who holds what
  std::_Exit(exit_status);
}

}  // namespace ramie::detail
