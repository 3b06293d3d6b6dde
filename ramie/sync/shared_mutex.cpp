#include <ramie/sync/shared_mutex.hpp>

namespace ramie {

namespace {

bool may_enter(std::uint64_t value, bool alone) noexcept { return alone ? value == 0 : (value & 1) == 0; }

}  // namespace

bool shared_mutex::try_lock() noexcept {
  const std::uint64_t value = queue_.lock();
  queue_.unlock(value == 0 ? writer : value);
  return value == 0;
}

bool shared_mutex::try_lock_shared() noexcept {
  const std::uint64_t value = queue_.lock();
  const bool free = (value & (writer | waiting)) == 0;
  queue_.unlock(free ? value + reader : value);
  return free;
}

bool shared_mutex::lock_slowly(std::uint64_t how, const detail::steady_time* deadline,
                               const std::source_location& where) {
  const std::uint64_t value = queue_.lock();
  if ((value & waiting) == 0 && may_enter(value, how == writer)) {
    queue_.unlock(value + how);
    return true;
  }
  const detail::wait_site site{how == writer ? "shared_mutex" : "shared_mutex (read)", where};
  detail::queued_wait node;
  node.tag = how;
  detail::wait pause{detail::wait::kind::uninterruptible, site};
  node.waiter = pause.ref();
  queue_.push_back(node);
  queue_.unlock(value | waiting);
  const auto give_up = [&] {
    const std::uint64_t now = queue_.lock();
    queue_.remove(node);
    admit_and_unlock(now);
  };
  detail::wake_reason why;
  try {
    why = deadline == nullptr ? pause.suspend() : pause.suspend_until(*deadline);
  } catch (...) {
    give_up();
    throw;
  }
  if (why == detail::wake_reason::event) return true;
  give_up();
  return false;
}

void shared_mutex::admit_and_unlock(std::uint64_t value) noexcept {
  detail::claimed_waits woken;
  value &= ~waiting;
  for (const detail::queued_wait* n = queue_.front(); n != nullptr && may_enter(value, n->tag == writer);
       n = queue_.front()) {
    const std::uint64_t how = n->tag;
    if (queue_.claim_front(woken)) value += how;
  }
  queue_.unlock(queue_.empty() ? value : value | waiting);
}

void shared_mutex::unlock_slowly(std::uint64_t how) {
  const std::uint64_t value = queue_.lock();
  if (how == writer ? (value & writer) == 0 : value < reader) [[unlikely]] {
    queue_.unlock(value);
    throw usage_error{how == writer ? "ramie: shared_mutex: unlock without lock"
                                    : "ramie: shared_mutex: unlock_shared without lock_shared"};
  }
  admit_and_unlock(value - how);
}

}  // namespace ramie
