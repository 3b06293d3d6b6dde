#include <ramie/actor/mailbox.hpp>

#include <ramie/actor/extras.hpp>
#include <ramie/base/atomic.hpp>

#include <mutex>

namespace ramie::detail {

namespace {

/// The first of those that were taken in and not yet delivered that is wanted. Predicates are the user's code, so this
/// is done on the actor's own list, without the lock.
message* find(actor_cell& c, bool (*wanted)(message&, void*), void* context) {
  message* before = nullptr;
  for (message* m = c.batch.first; m != nullptr; before = m, m = m->next) {
    if (is_stop(*m)) {
      c.ending = true;
      return nullptr;
    }
    if (wanted != nullptr && !wanted(*m, context)) continue;
    (before == nullptr ? c.batch.first : before->next) = m->next;
    if (c.batch.last == m) c.batch.last = before;
    return m;
  }
  return nullptr;
}

/// Under the lock: all mail goes to the actor's own list, urgent mail before the rest.
bool take_in(actor_cell& c) noexcept {
  if (c.mail.first == nullptr && c.urgent.first == nullptr) return false;
  c.batch.append(c.mail);
  c.batch.prepend(c.urgent);
  return true;
}

/// Under the lock: one message fewer waits.
void count_out(actor_cell& c, const message& m) noexcept {
  if ((m.flags & message::lifecycle) != 0) return;
  c.handled.store(c.handled.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if ((c.status & actor_cell::bounded) != 0) c.let_a_sender_in();
}

}  // namespace

message* receive_message(actor_cell& c, bool (*wanted)(message&, void*), void* context,
                         const steady::time_point* deadline, std::source_location where) {
  const wait_site site{"a message", where};
  bool looked = false;  // at what the last call left behind
  for (;;) {
    if (c.ending) return nullptr;
    std::unique_lock guard{c.lock};
    for (bool more = true; more;) {
      if ((c.interrupts.load(std::memory_order_relaxed) & actor_cell::kill_wanted) != 0) c.ending = true;
      if (c.ending) return nullptr;
      more = take_in(c);
      if (!more && looked) break;
      guard.unlock();
      message* m = find(c, wanted, context);
      looked = true;
      if (m == nullptr && c.ending) return nullptr;
      guard.lock();
      if (m != nullptr) {
        count_out(c, *m);
        return m;
      }
      more = true;
    }
    if (deadline != nullptr && os_now() >= *deadline) return nullptr;
    wait pause{wait::kind::cancellable, site};
    c.receiving = pause.ref();
    c.scheduled = false;
    c.status |= actor_cell::receives;
    guard.unlock();
    const auto awake = [&] {
      std::lock_guard again{c.lock};
      c.scheduled = true;
      c.receiving = {};
      c.status = static_cast<std::uint8_t>(c.status & ~actor_cell::receives);
    };
    wake_reason why;
    try {
      why = deadline == nullptr ? pause.suspend() : pause.suspend_until(*deadline);
    } catch (...) {
      awake();
      throw;
    }
    awake();
    if (why == wake_reason::cancelled && (c.interrupts.load(std::memory_order_acquire) & actor_cell::kill_wanted) == 0)
      throw cancelled{};
  }
}

}  // namespace ramie::detail
