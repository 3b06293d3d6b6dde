// Tells of a program that waits for itself.
//
// When a runtime has been idle for so long that its monitor would go to sleep, the monitor asks whether anything could
// still wake one of its fibers:
//  D1 Something of its own: a ready or new task, a timer, a wait for input or output, a blocking call under way, a fiber that is being spawned or woken from outside.
//     Then there is none.
//  D2 Another thread of the process: any thread that is neither a worker, monitor or idle helper of this runtime nor a
//     plain thread that itself waits, without a deadline, for a fiber, a channel or the like. It may be about to send
//     something. Then none is reported, and the question is put again, ever more rarely, up to once a minute.
//  D3 Otherwise the fibers that are left can never resume. They are listed, with what they wait for and where, a dump
//     follows, and the process ends with status 2.
// Thus a deadlock is missed while some other thread lives (a second runtime, a thread of the user's, of a sanitizer);
// none is reported that is not one. A signal handler must not wake fibers (docs/rules.md), so none is waited for.
//
//  D4 Locks that block threads are another matter: with every worker in the guard of a function-local static, say, whose
//     initialiser waits in a fiber, the fiber that would end it may find no worker. That is not known for sure, so the
//     process goes on; but when all have been stalled for a second, with work waiting and no spare left to call, what
//     they are blocked in is named.
#include <ramie/sched/deadlock.hpp>

#include <ramie/base/atomic.hpp>
#include <ramie/machine/cpu_time.hpp>
#include <ramie/machine/lasting_thread.hpp>
#include <ramie/sched/scheduler.hpp>
#include <ramie/task/wait.hpp>

#include <dirent.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <limits>

namespace ramie::detail {

namespace {

constinit std::atomic<const reporters*> reporters_in_use{nullptr};

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

/// D1 and D2.
bool nothing_can_wake_a_fiber(scheduler& of, const waiting_threads& outside) noexcept {
  const std::size_t own_threads = of.threads_if_at_rest();
  if (own_threads == 0) return false;
  const std::size_t threads = threads_of_process();
  return threads != 0 && threads == own_threads + outside.count + lasting_threads();
}

}  // namespace

void set_reporters(const reporters& known) noexcept { reporters_in_use.store(&known, std::memory_order_release); }
const reporters* known_reporters() noexcept { return reporters_in_use.load(std::memory_order_acquire); }

void deadlock_detector::look_for_circles(scheduler& of) {
  const reporters* const report = known_reporters();
  const std::int64_t begun_ns = now_ns();
  if (report == nullptr || begun_ns < circles_next_ns_) return;
  const std::int64_t used_ns = cpu_time_ns(::pthread_self());
  if (circles_next_ns_ != 0) report->circles(of);  // not at the very beginning
  const std::int64_t took_ns = cpu_time_ns(::pthread_self()) - used_ns;
  circles_next_ns_ = begun_ns + std::max(circles_every_ns, 200 * took_ns);
}

void deadlock_detector::look_at_stall(const scheduler& of, bool stuck, std::int64_t now) {
  constexpr std::int64_t long_ns = 1'000'000'000, told = std::numeric_limits<std::int64_t>::max();
  if (!stuck) {
    stuck_since_ns_ = 0;
    return;
  }
  if (stuck_since_ns_ == 0) {
    stuck_since_ns_ = now;
    look_again_ns_ = now + long_ns;
  }
  if (now < look_again_ns_) return;
  const reporters* const report = known_reporters();
  const bool done = report == nullptr || !of.options().report_deadlocks || report->stall(of, now - stuck_since_ns_);
  look_again_ns_ = done ? told : now + long_ns;
}

std::int64_t deadlock_detector::before_sleep(scheduler& of, bool (*still_idle)(const void*), const void* context) {
  constexpr std::int64_t for_ever = -1, first_ns = 1'000'000'000, longest_ns = 60'000'000'000;
  const reporters* const report = known_reporters();
  if (report == nullptr || !of.options().report_deadlocks || of.live() == 0) return for_ever;
  // Twice, with a pause: a waker may be between two of the places that are looked at. And no thread may have begun or
  // ended a wait meanwhile.
  const auto stuck = [&](waiting_threads& outside) {
    outside = look_at_waiting_threads();
    return still_idle(context) && nothing_can_wake_a_fiber(of, outside) &&
           look_at_waiting_threads().words == outside.words;
  };
  if (waiting_threads before, now; stuck(before)) {
    os_sleep(5'000'000);
    if (stuck(now) && now.words == before.words) report->deadlock(of);
  }
  look_for_circles(of);
  return asleep_ns_ = asleep_ns_ == 0 ? first_ns : std::min(2 * asleep_ns_, longest_ns);
}

}  // namespace ramie::detail
