#include <ramie/sync/condition_variable.hpp>

namespace ramie {

void condition_variable::enter(node& n) noexcept {
  const std::uint64_t value = guard_.lock();
  list_.push_back(n);
  guard_.unlock(value);
}

bool condition_variable::arm(node& n, detail::wait& pause) noexcept {
  std::uint64_t seen = 0;
  // Release: the notifier's claim looks at the descriptor. Acquire: what was done before the notification.
  if (n.what.compare_exchange_strong(seen, pause.ref().bits(), std::memory_order_acq_rel, std::memory_order_acquire))
    return true;
  // If a canceller was faster, the wait still has to run to its end; the notification counts.
  if (!pause.withdraw()) pause.suspend();
  return false;
}

void condition_variable::leave(node& n) noexcept {
  const std::uint64_t value = guard_.lock();
  list_.remove(n);
  guard_.unlock(value);
}

bool condition_variable::renew(node& n) noexcept {
  const std::uint64_t value = guard_.lock();
  const bool listed = n.linked;
  if (listed) n.what.store(0, std::memory_order_relaxed);
  guard_.unlock(value);
  return listed;
}

detail::wake_reason condition_variable::await_in_clean_up(node& n, const detail::steady_time* deadline,
                                                          const std::source_location& where) {
  detail::clean_up rest;
  if (!rest.begin()) return detail::wake_reason::cancelled;
  return renew(n) ? await(n, deadline, where) : detail::wake_reason::event;
}

bool condition_variable::notify_first(detail::claimed_waits& woken) noexcept {
  while (node* n = list_.pop_front()) {
    const std::uint64_t ref = n->what.exchange(node::notified, std::memory_order_acq_rel);
    if (ref == 0) return true;  // the node may be gone from here on
    n->claimed = detail::claim(detail::waiter_ref::from_bits(ref));
    if (!n->claimed) continue;
    woken.add(*n);
    return true;
  }
  return false;
}

void condition_variable::notify_this(node& n) noexcept {
  detail::claimed_waits woken;
  const std::uint64_t value = guard_.lock();
  if (n.linked) {
    list_.remove(n);
    const std::uint64_t ref = n.what.exchange(node::notified, std::memory_order_acq_rel);
    n.claimed = ref == 0 ? detail::claimed_wait{} : detail::claim(detail::waiter_ref::from_bits(ref));
    if (n.claimed) woken.add(n);
  }
  guard_.unlock(value);
}

void condition_variable::notify_one() noexcept {
  detail::claimed_waits woken;
  const std::uint64_t value = guard_.lock();
  notify_first(woken);
  guard_.unlock(value);
}

void condition_variable::notify_all() noexcept {
  detail::claimed_waits woken;
  const std::uint64_t value = guard_.lock();
  while (notify_first(woken)) {
  }
  guard_.unlock(value);
}

}  // namespace ramie
