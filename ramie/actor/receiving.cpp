#include <ramie/actor/mailbox.hpp>

#include <ramie/actor/extras.hpp>
#include <ramie/base/atomic.hpp>
#include <ramie/sched/residents.hpp>
#include <ramie/task/ready_point.hpp>

#include <mutex>

namespace ramie::detail {

namespace {

/// Out of the actor's own list, which is not counted any more.
void take_out(actor_cell& c, message* before, message* m) noexcept {
  (before == nullptr ? c.batch.first : before->next) = m->next;
  if (m->next == nullptr) c.batch.last = before;
}

void drop(actor_cell& c, message* m) noexcept {
  discarded context{&c, letter_fate::down};
  m->act(*m, message_verb::discard, &context);
  free_message(m);
}

struct found {
  message* m = nullptr;  // taken out
  bool stop = false;     // a stop comes before anything that is wanted
};

/// The first of those that were taken in and not yet delivered that is wanted. Predicates are the user's code, so this
/// is done on the actor's own list, without the lock. A stop is heeded, and taken out, when it is the oldest: what was
/// sent before it can still be received, only not by somebody who waits for something else. Left in, it would stop what
/// a supervisor restarts, too.
found find(actor_cell& c, bool (*wanted)(message&, void*), void* context) {
  message* before = nullptr;
  for (message* m = c.batch.first; m != nullptr;) {
    message* const behind = m->next;
    if (is_stop(*m)) {
      if (before == nullptr) {
        heed_stop(c, *m);
        take_out(c, before, m);
        drop(c, m);
      }
      return {nullptr, true};
    }
    if (is_stale(c, *m)) {
      take_out(c, before, m);
      if ((m->flags & message::lifecycle) == 0)
        c.handled.store(c.handled.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      drop(c, m);
    } else if (wanted == nullptr || wanted(*m, context)) {
      take_out(c, before, m);
      return {m, false};
    } else {
      before = m;
    }
    m = behind;
  }
  return {};
}

/// Under the lock: all mail goes to the actor's own list, urgent mail behind other urgent mail and before the rest.
bool take_in(actor_cell& c) noexcept {
  if (c.mail.first == nullptr && c.urgent.first == nullptr) return false;
  c.batch.append(c.mail);
  take_in_urgent(c);
  return true;
}

/// Under the lock: one message fewer waits.
void count_out(actor_cell& c, const message& m) noexcept {
  if ((m.flags & message::lifecycle) != 0) return;
  c.handled.store(c.handled.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if ((c.status & actor_cell::bounded) != 0) c.let_a_sender_in();
}

/// The same where the mailbox is bounded: all stays where senders can reach it, to drop the oldest. `guard` holds the
/// lock; it is let go while the predicate looks at a message, which is marked meanwhile so that nobody drops it.
found find_bounded(actor_cell& c, bool (*wanted)(message&, void*), void* context,
                   std::unique_lock<adaptive_lock>& guard) {
  for (message_queue* q : {&c.batch, &c.urgent, &c.mail}) {
    message* before = nullptr;
    for (message* m = q->first; m != nullptr;) {
      message* const behind = m->next;
      const bool stale = is_stale(c, *m);
      if (is_stop(*m)) {
        if (m == q->first && (q == &c.batch || (c.urgent.first == nullptr && c.batch.first == nullptr))) {
          heed_stop(c, *m);
          q->first = behind;
          drop(c, m);
        }
        return {nullptr, true};
      }
      bool takes = stale || wanted == nullptr;
      if (!takes) {
        const std::uint8_t flags = std::exchange(m->flags, static_cast<std::uint8_t>(m->flags | message::counted));
        guard.unlock();
        try {
          takes = wanted(*m, context);
        } catch (...) {
          guard.lock();
          m->flags = flags;
          throw;
        }
        guard.lock();
        m->flags = flags;
        // What came before it may have been dropped.
        before = nullptr;
        for (message* at = q->first; at != m; at = at->next) before = at;
      }
      if (!takes) {
        before = m;
        m = m->next;
        continue;
      }
      (before == nullptr ? q->first : before->next) = m->next;
      if (m->next == nullptr) q->last = before;
      if (q == &c.urgent) note_urgent_taken(c, *m, before);
      if (!stale) return {m, false};
      count_out(c, *m);
      drop(c, m);
      m = behind;
    }
  }
  return {};
}

found find_any(actor_cell& c, bool (*wanted)(message&, void*), void* context, std::unique_lock<adaptive_lock>& guard,
               bool& looked) {
  if ((c.status & actor_cell::bounded) != 0) {
    for (;;) {
      const std::uint32_t posted = c.posted;
      const found f = find_bounded(c, wanted, context, guard);
      // Urgent mail may have come while a predicate looked at what is behind it.
      if (f.m != nullptr || f.stop || c.posted == posted) return f;
    }
  }
  while (take_in(c) || !looked) {
    guard.unlock();
    looked = true;
    found f;
    try {
      f = find(c, wanted, context);
    } catch (...) {
      guard.lock();
      throw;
    }
    guard.lock();
    if (f.m != nullptr || f.stop) return f;
  }
  return {};
}

}  // namespace

message* receive_message(actor_cell& c, bool (*wanted)(message&, void*), void* context,
                         const steady::time_point* deadline, std::source_location where) {
  const wait_site site{"a message", where};
  bool looked = false;  // at what the last call left behind
  // Not one that is killed, or is about to be, by the end of the runtime: it ends below.
  if (is_to_look() && looks_and_is_to_stop() && !c.ending && !is_draining() &&
      (c.interrupts.load(std::memory_order_relaxed) & actor_cell::kill_wanted) == 0)
    begin_again([] {});
  for (;;) {
    if (c.ending) return nullptr;
    std::unique_lock guard{c.lock};
    if ((c.interrupts.load(std::memory_order_relaxed) & actor_cell::kill_wanted) != 0) c.ending = true;
    if (c.ending) return nullptr;
    const found f = find_any(c, wanted, context, guard, looked);
    if (f.stop) return nullptr;
    if (f.m != nullptr) {
      count_out(c, *f.m);
      return f.m;
    }
    if ((c.interrupts.load(std::memory_order_relaxed) & actor_cell::kill_wanted) != 0) continue;
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
    if (why != wake_reason::cancelled || (c.interrupts.load(std::memory_order_relaxed) & actor_cell::kill_wanted) != 0)
      continue;
    if (!is_draining()) return begin_again([&] { return receive_message(c, wanted, context, deadline, where); });
    // The runtime shuts down, and is about to kill it.
    c.ending = true;
  }
}

}  // namespace ramie::detail
