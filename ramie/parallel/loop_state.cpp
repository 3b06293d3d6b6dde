#include <ramie/parallel/loop_state.hpp>

#include <ramie/base/error.hpp>
#include <ramie/sched/scheduler.hpp>
#include <ramie/task/current.hpp>
#include <ramie/task/task.hpp>
#include <ramie/worker/worker.hpp>

namespace ramie::detail {

namespace {

bool is_cancellation(const std::exception_ptr& failure) noexcept {
  try {
    std::rethrow_exception(failure);
  } catch (const cancelled&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

std::size_t workers_here() noexcept {
  worker_base* w = current_worker();
  return w == nullptr ? 1 : static_cast<worker*>(w)->owner->regular_workers();
}

void loop_state::begin() noexcept {
  stopped_ = {
      reinterpret_cast<const char*>(this),       sizeof *this, exceptions_in_flight(), current_worker()->running_task(),
      [](const void*) noexcept { return true; }, nullptr};
}

void loop_state::fail(std::exception_ptr failure) noexcept {
  if (failed_.exchange(true, std::memory_order_relaxed)) {
    if (!is_cancellation(failure))
      report_lost_exception(nullptr, failure, "a body of a parallel algorithm failed after another one", false);
    return;
  }
  failure_ = std::move(failure);
  cut(0);
  add_stopped(stopped_);
}

}  // namespace ramie::detail
