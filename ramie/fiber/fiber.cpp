// The parts of handles and fibers that are not templates.
#include <ramie/base/assert.hpp>
#include <ramie/base/atomic.hpp>
#include <ramie/base/error.hpp>
#include <ramie/base/notice.hpp>
#include <ramie/fiber/blocking.hpp>
#include <ramie/fiber/cancellation.hpp>
#include <ramie/fiber/fiber_task.hpp>
#include <ramie/fiber/this_fiber.hpp>
#include <ramie/inspect/notices.hpp>
#include <ramie/sched/residents.hpp>
#include <ramie/sched/scheduler.hpp>
#include <ramie/stack/pool.hpp>
#include <ramie/task/clean_up.hpp>
#include <ramie/task/region.hpp>

#include <algorithm>
#include <exception>
#include <thread>

namespace ramie {

namespace detail {

task* this_task() noexcept {
  task* t = running_task_here();
  while (t != nullptr && (t->flags.load(std::memory_order_relaxed) & task::strand_flag) != 0) t = t->parent;
  return t;
}

namespace {

[[noreturn]] void throw_not_joinable(const char* call) {
  throw usage_error{std::string{"ramie: "} + call +
                    ": the handle holds no fiber: it was joined, detached, moved from, or never had one"};
}

}  // namespace

void require_joinable(const task* t, const char* call) {
  if (t == nullptr) throw_not_joinable(call);
}

bool start_joining(task* t, wait& pause) {
  std::uint64_t seen = 0;
  if (t->completion.compare_exchange_strong(seen, pause.ref().bits(), std::memory_order_acq_rel,
                                            std::memory_order_acquire))
    return true;
  // The reference is published nowhere, so only a canceller can have claimed the wait before this. Nothing of that
  // claim is left once `withdraw` has seen it (W6: a running fiber is not made ready), and the request is met at the
  // next wait: the fiber `t` has ended, and its result counts.
  pause.withdraw();
  if (seen == task::done) return false;
  throw usage_error{"ramie: join: another fiber or thread is already joining this fiber"};
}

bool stop_joining(task* t, const wait& pause) noexcept {
  std::uint64_t mine = pause.ref().bits();
  return t->completion.compare_exchange_strong(mine, 0, std::memory_order_acq_rel, std::memory_order_acquire);
}

void check_join(const task* t) {
  require_joinable(t, "join");
  if (t == this_task()) throw usage_error{std::string{"ramie: join: fiber \""} + name_of(t) + "\" cannot join itself"};
}

void rethrow_to_joiner(std::exception_ptr failure) {
  try {
    std::rethrow_exception(std::move(failure));
  } catch (const child_cancelled&) {
    throw;
  } catch (const cancelled&) {
  }
  throw child_cancelled{};
}

bool await_end_until(task* t, steady::time_point deadline, const std::source_location& where) {
  check_join(t);
  if (t->completion.load(std::memory_order_acquire) == task::done) return true;
  const wait_site site{"join", where};
  wait pause{wait::kind::cancellable, site};
  if (!start_joining(t, pause)) return true;
  wake_reason why;
  try {
    why = pause.suspend_until(deadline);
  } catch (...) {
    if (stop_joining(t, pause)) throw;
    return true;
  }
  if (why == wake_reason::event || !stop_joining(t, pause)) return true;
  return why == wake_reason::cancelled && begin_again([&] { return await_end_until(t, deadline, where); });
}

namespace {

/// A result's destructor may wait.
RAMIE_NOINLINE void drop_quietly(task* t) noexcept {
  call_quietly([t] { t->type->drop(*t); });
  destroy_task(t);
}

}  // namespace

void detach_task(task* t) {
  require_joinable(t, "detach");
  // Most often it was just spawned and is still in the queue; then no atomic exchange is needed (5 ns). While it is out
  // of the queue a worker may fall asleep without seeing it, so the look for sleepers is repeated.
  if (worker* w = worker::current(); w != nullptr && !w->owner->sleeping.hint() && w->spawned.alter_newest(t, [t] {
        t->completion.store(task::detached, std::memory_order_relaxed);
      }))
    return w->owner->sleeping.published(w, w->spawned.size());
  if (t->completion.exchange(task::detached, std::memory_order_acq_rel) != task::done) return;
  t->completion.store(task::detached, std::memory_order_relaxed);
  drop_quietly(t);
}

namespace {

/// Is its result lost because it was cut short?
bool ended_by_cancellation(task& t) noexcept {
  if ((t.flags.load(std::memory_order_relaxed) & task::failed_flag) == 0) return false;
  try {
    std::rethrow_exception(placed<std::exception_ptr>(&t));
  } catch (const child_cancelled&) {
    return false;
  } catch (const cancelled&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

RAMIE_NOINLINE void end_task(task* t) noexcept {
  const bool meant = t->completion.load(std::memory_order_acquire) == task::done ||
                     (t->flags.load(std::memory_order_relaxed) & task::stop_flag) != 0 ||
                     std::uncaught_exceptions() != 0 || is_draining() || !notices_are_on();
  request_stop(*t);
  if (t == this_task())
    fatal("a fiber destroyed its own join handle while it ran: detach it instead", __FILE__, __LINE__);
  await_end(t, wait::kind::uninterruptible, {});
  if (!meant && !is_draining() && ended_by_cancellation(*t))
    tell_of_stopping_handle(name_of(t), __builtin_return_address(0));
  drop_quietly(t);
}

void report_unseen_failure(const task& t, const std::exception_ptr& failure) noexcept {
  const bool detached = t.completion.load(std::memory_order_relaxed) == task::detached;
  report_lost_exception(
      name_of(&t), failure,
      detached ? "was detached and ended by an exception" : "was not joined and ended by an exception", detached);
}

void discard_task(task* t) noexcept {
  call_quietly([t] { t->type->skip(*t, std::make_exception_ptr(cancelled{})); });
  drop_quietly(t);
}

void apply_options(task& t, const fiber_options& options) {
  if (options.affinity == affinity::none) t.flags.fetch_or(task::homeless_flag, std::memory_order_relaxed);
  if (options.name.empty() && options.stack_size == 0 && options.worker == -1 && options.priority == 0) return;
  task_extras& extras = extras_of(t);
  extras.name = options.name;
  extras.spawned_by = this_task();
  extras.priority = options.priority;
  extras.pinned_to = options.worker;
  if (options.stack_size == 0) return;
  if (options.stack_size < stack_size_min || options.stack_size > stack_size_max)
    throw invalid_argument{"ramie: fiber_options::stack_size is " + std::to_string(options.stack_size) +
                           "; it must be from " + std::to_string(stack_size_min) + " to " +
                           std::to_string(stack_size_max) + " bytes"};
  extras.stack_size = options.stack_size;
  t.flags.fetch_or(task::own_stack_flag, std::memory_order_relaxed);
}

blocking_pool* this_blocking_pool() noexcept {
  worker* w = worker::current();
  return w == nullptr ? nullptr : &w->owner->blocking();
}

namespace {
constexpr std::uint64_t blocking_ended = 1;
}

void end_blocking(atomic<std::uint64_t>& waiter) noexcept {
  const std::uint64_t waiting = waiter.exchange(blocking_ended, std::memory_order_acq_rel);
  if (waiting != 0) wake(waiter_ref::from_bits(waiting));
}

void run_blocking(blocking_pool& pool, blocking_call& call, atomic<std::uint64_t>& waiter,
                  const std::source_location& where) {
  const wait_site site{"blocking call", where};
  bool may_be_cancelled = true;
  bool submitted = false;
  for (;;) {
    wait pause{may_be_cancelled ? wait::kind::cancellable : wait::kind::uninterruptible, site};
    std::uint64_t before = waiter.load(std::memory_order_acquire);  // what the call has written, if it has ended
    if (before == blocking_ended ||
        !waiter.compare_exchange_strong(before, pause.ref().bits(), std::memory_order_acq_rel,
                                        std::memory_order_acquire)) {
      pause.withdraw();
      return;
    }
    if (!submitted) {
      if (is_over(pause.ref()))  // the fiber was asked to stop before
        return begin_again([&] { run_blocking(pool, call, waiter, where); });
      try {
        pool.submit(call);
      } catch (...) {
        pause.withdraw();
        throw;
      }
      submitted = true;
    }
    try {
      if (pause.suspend() == wake_reason::event) return;
    } catch (...) {
      if (pool.withdraw(call)) throw;
    }
    // If the call has started, wait for its end.
    if (pool.withdraw(call)) return begin_again([&] { run_blocking(pool, call, waiter, where); });
    may_be_cancelled = false;
  }
}

void submit_here(task* t) {
  worker* w = worker::current();
  if (w == nullptr) [[unlikely]]
    throw usage_error{
        "ramie: spawn: this thread belongs to no runtime; call it from within ramie::run, or use runtime::spawn"};
  w->owner->submit_here(w, t);
}

void submit_with_options(task* t, scheduler& to) {
  if (const task_extras* extras = t->extras.load(std::memory_order_relaxed);
      extras != nullptr && extras->pinned_to != -1)
    to.placing.pin(*t, extras->pinned_to, "fiber_options::worker");
  to.submit(t);
}

void submit_here_with_options(task* t) {
  worker* w = worker::current();
  if (w == nullptr) submit_here(t);
  else submit_with_options(t, *w->owner);
}

}  // namespace detail

namespace this_fiber {

void sleep_until(std::chrono::steady_clock::time_point deadline, std::source_location where) {
  const detail::wait_site site{"sleep", where};
  detail::wait pause{detail::wait::kind::cancellable, site};
  if (pause.suspend_until(deadline) == detail::wake_reason::cancelled)
    detail::begin_again([&] { sleep_until(deadline, where); });
}

void trim_stack() noexcept {
  constexpr std::size_t spared = 1024;  // for this function, and what it calls
  const char* const here = static_cast<const char*>(__builtin_frame_address(0)) - spared;
  if (const detail::task* t = detail::this_task(); t != nullptr) {
    const detail::task_extras* extras = t->extras.load(std::memory_order_relaxed);
    if (extras != nullptr && extras->measures_stack) return;
  }
  if (const detail::stack* s = detail::find_stack(here)) detail::give_back_below(*s, here);
}

fiber_id get_id() noexcept {
  if (const detail::task* t = detail::this_task(); t != nullptr) return fiber_id{t};
  static thread_local char own_address;
  return fiber_id{&own_address};
}

std::string_view name() noexcept { return detail::name_of(detail::running_task_here()); }

bool stop_requested() noexcept { return detail::is_to_stop(); }

stop_cause why_stopped() noexcept {
  const detail::limits bounds = detail::limits_here();
  if (bounds.stopped) return bounds.by_scope ? stop_cause::scope : stop_cause::requested;
  if (bounds.is_late()) return stop_cause::deadline;
  return detail::is_draining() && !bounds.shielded ? stop_cause::shutdown : stop_cause::none;
}

std::optional<std::chrono::steady_clock::time_point> deadline() noexcept {
  const detail::limits bounds = detail::limits_here();
  const std::int64_t ns = std::min(bounds.deadline_ns, bounds.told_ns);
  if (ns == detail::region::never) return std::nullopt;
  return std::chrono::steady_clock::time_point{std::chrono::nanoseconds{ns}};
}

void throw_if_stopped() {
  if (stop_requested()) detail::begin_again([] {});
}

}  // namespace this_fiber

}  // namespace ramie
