#include <ramie/fiber/cancellation.hpp>

#include <ramie/task/clean_up.hpp>
#include <ramie/task/current.hpp>
#include <ramie/task/timer_queue.hpp>

namespace ramie::detail {

bool only_late(std::int64_t deadline_ns) {
  const std::int64_t now = now_ns();
  if (deadline_ns > now) return false;
  const limits around = limits_here();
  const worker_base* const w = current_worker();
  const bool draining = w != nullptr && w->draining.load(std::memory_order_relaxed) && !around.shielded;
  if (!around.stopped && !draining && around.deadline_ns > now) return true;
  clean_up rest;
  return rest.begin();  // what is around does not reach into clean-up
}

void throw_timeout() { throw timeout_error{"ramie: with_timeout, with_deadline: the deadline has passed"}; }

}  // namespace ramie::detail
