#include <ramie/task/clean_up.hpp>

#include <ramie/context/no_throw.hpp>
#include <ramie/task/current.hpp>
#include <ramie/task/refused.hpp>
#include <ramie/task/scheduling.hpp>

namespace ramie::detail {

bool clean_up::begin() {
  end();
  rest_.fence = nearest_no_throw_frame(2);
  if (rest_.fence == nullptr) return false;
  open_region(rest_);
  open_ = true;
  const limits bounds = limits_here();
  if (!bounds.stopped && !bounds.is_late()) {
    if (const task* const t = running_task_here(); t != nullptr) take_back_refused_wait(*t);
    return true;
  }
  end();
  return false;
}

void clean_up::end() noexcept {
  if (open_) close_region(rest_);
  open_ = false;
}

}  // namespace ramie::detail
