#include <ramie/fiber/cancellation.hpp>

#include <ramie/task/current.hpp>
#include <ramie/task/timer_queue.hpp>

namespace ramie::detail {

bool only_late(std::int64_t deadline_ns) noexcept {
  const std::int64_t now = now_ns();
  if (deadline_ns > now) return false;
  worker_base* w = current_worker();
  if (w == nullptr || w->running == nullptr) return limits_of_thread().deadline_ns > now;
  const limits around = limits_of(*w->task_on_stack());
  const bool draining = w->draining.load(std::memory_order_relaxed) && !around.shielded;
  return !around.stopped && !draining && around.deadline_ns > now;
}

void throw_timeout() { throw timeout_error{"ramie: with_timeout, with_deadline: the deadline has passed"}; }

}  // namespace ramie::detail
