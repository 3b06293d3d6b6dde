#include <ramie/sync/wait_queue.hpp>

namespace ramie::detail {

void wait_queue::give_up(queued_wait& node) noexcept {
  const std::uint64_t value = lock();
  list_.remove(node);
  unlock(value);
}

wake_reason wait_queue::unlock_and_wait_until(std::uint64_t value, const wait_site& site, steady::time_point deadline) {
  queued_wait node;
  wait pause{wait::kind::cancellable, site};
  node.waiter = pause.ref();
  list_.push_back(node);
  unlock(value);
  wake_reason why;
  try {
    why = pause.suspend_until(deadline);
  } catch (...) {
    give_up(node);
    throw;
  }
  if (why != wake_reason::event) give_up(node);
  return why;
}

}  // namespace ramie::detail
