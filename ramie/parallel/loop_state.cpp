#include <ramie/parallel/loop_state.hpp>

#include <ramie/base/error.hpp>
#include <ramie/sched/scheduler.hpp>
#include <ramie/task/current.hpp>
#include <ramie/task/task.hpp>
#include <ramie/worker/worker.hpp>

#include <mutex>
#include <utility>

namespace ramie::detail {

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
  const failure_rank rank = rank_of(failure);  // throws, so not inside the lock
  bool first;
  {
    const std::lock_guard guard{lock_};
    first = failure_ == nullptr;
    if (first || rank > rank_) {
      std::swap(failure_, failure);
      rank_ = rank;
    }
  }
  if (!first)
    return report_lost_exception(nullptr, failure, "a body of a parallel algorithm failed after another one", false);
  failed_.store(true, std::memory_order_relaxed);
  cut(0);
  add_stopped(stopped_);
}

}  // namespace ramie::detail
