// The ways into a mailbox that are not the plain one: bounded, closed or waiting for a restart. See cell.cpp.
#include <ramie/actor/cell.hpp>

#include <ramie/actor/extras.hpp>
#include <ramie/base/error.hpp>
#include <ramie/sched/live_schedulers.hpp>

#include <cstddef>
#include <mutex>

namespace ramie::detail {

std::size_t actor_cell::mail_count() noexcept {
  std::lock_guard guard{lock};
  return posted - handled.load(std::memory_order_relaxed);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"  // fine with every compiler that knows this pragma
// See ramie_debug_layout.
extern "C" {
extern const debug_entry ramie_debug_actors[];
__attribute__((used)) const debug_entry ramie_debug_actors[] = {
    {"actor_cell.posted", offsetof(actor_cell, posted)},
    {"actor_cell.handled", offsetof(actor_cell, handled)},
    {"actor_cell.scheduled", offsetof(actor_cell, scheduled)},
    {"actor_cell.status", offsetof(actor_cell, status)},
    {"actor_type.of", offsetof(actor_type, of)},
    {nullptr, 0},
};
}
#pragma GCC diagnostic pop

namespace {
[[maybe_unused]] const bool told = (set_resident_describer(&actor_cell::describe), true);
}

// A copy of bytes: whatever it says, nothing is followed but the class, which is a constant.
void actor_cell::describe(const void* copy, const void* type, resident_facts& found) noexcept {
  found.kind = "actor";
  found.type = static_cast<const actor_type*>(type)->of->name();
  if (copy == nullptr) return;
  const auto& c = *static_cast<const actor_cell*>(copy);
  found.mail = c.posted - c.handled.load(std::memory_order_relaxed);
  found.state = (c.status & closed) != 0     ? "has ended"
                : (c.status & starting) != 0 ? "is being restarted"
                : (c.status & waiting) != 0  ? "waits for its supervisor"
                : c.scheduled                ? "is ready"
                                             : "is idle";
}

bool actor_cell::full() noexcept {
  return (status & bounded) != 0 &&
         posted - handled.load(std::memory_order_relaxed) >= more.load(std::memory_order_relaxed)->capacity;
}

bool actor_cell::blocks_senders() const noexcept {
  const actor_extras* x = more.load(std::memory_order_acquire);
  return x != nullptr && x->capacity != 0 && x->overflow == overflow::block_sender;
}

void actor_cell::raise(std::uint8_t interrupt) noexcept {
  interrupts.store(interrupts.load(std::memory_order_relaxed) | interrupt, std::memory_order_release);
}

void actor_cell::put_and_unlock(message* m) noexcept {
  if (scheduled || receiving) {
    mail.push(m);
    wake_and_unlock();
    return;
  }
  scheduled = true;
  m->next = nullptr;
  batch.first = m;
  lock.unlock();
  make_ready(*this);
}

tell_status actor_cell::try_post(message* m, bool before_others) {
  lock.lock();
  if ((status & ~receives) == 0 && !before_others) {
    ++posted;
    put_and_unlock(m);
    return tell_status::ok;
  }
  if ((status & closed) != 0) {
    lock.unlock();
    discard_all(m, letter_fate::down);
    return tell_status::down;
  }
  message* dropped = nullptr;
  if (full()) {
    actor_extras& x = *more.load(std::memory_order_relaxed);
    if (x.overflow == overflow::block_sender && this_actor() != this) {
      lock.unlock();
      return tell_status::full;
    }
    if (x.overflow == overflow::fail || x.overflow == overflow::drop_newest) {
      const tell_status status_then = x.overflow == overflow::fail ? tell_status::full : tell_status::dropped;
      lock.unlock();
      discard_all(m, letter_fate::full);
      return status_then;
    }
    if (x.overflow == overflow::drop_oldest) {
      // What ramie sent stays; so does urgent mail.
      for (message** at = &mail.first; *at != nullptr; at = &(*at)->next) {
        if (((*at)->flags & message::lifecycle) != 0) continue;
        dropped = *at;
        *at = dropped->next;
        if (mail.last == dropped) {
          mail.last = nullptr;
          for (message* rest = mail.first; rest != nullptr; rest = rest->next) mail.last = rest;
        }
        dropped->next = nullptr;
        --posted;  // `handled` is the actor's to count
        break;
      }
    }
  }
  if ((status & (waiting | starting)) != 0 && (m->flags & message::request) != 0 &&
      !more.load(std::memory_order_relaxed)->asks_wait_for_restart) {
    lock.unlock();
    discard_all(m, letter_fate::restarting);
  } else {
    if (before_others) {
      urgent.push(m);
      raise(urgent_mail);
    } else {
      mail.push(m);
    }
    ++posted;
    if ((status & waiting) != 0) lock.unlock();
    else wake_and_unlock();
  }
  if (dropped != nullptr) discard_all(dropped, letter_fate::full);
  return tell_status::ok;
}

tell_status actor_cell::post_slowly(message* m) {
  tell_status outcome;
  while ((outcome = try_post(m, false)) == tell_status::full && blocks_senders()) {
    try {
      wait_for_room(std::source_location::current());
    } catch (...) {
      discard_all(m, letter_fate::full);
      throw;
    }
  }
  return outcome;
}

tell_status actor_cell::post_urgent(message* m) {
  tell_status outcome;
  while ((outcome = try_post(m, true)) == tell_status::full && blocks_senders()) {
    try {
      wait_for_room(std::source_location::current());
    } catch (...) {
      discard_all(m, letter_fate::full);
      throw;
    }
  }
  return outcome;
}

void actor_cell::wait_for_room(std::source_location from) {
  const wait_site site{"room in a mailbox", from};
  wait pause{wait::kind::cancellable, site};
  wait_node node;
  node.waiter = pause.ref();
  lock.lock();
  actor_extras& x = *more.load(std::memory_order_relaxed);
  const bool wait_needed = (status & closed) == 0 && full();
  if (wait_needed) x.senders.push_back(node);
  lock.unlock();
  wake_reason why = wake_reason::event;
  try {
    if (wait_needed || !pause.withdraw()) why = pause.suspend();
  } catch (...) {
    std::lock_guard guard{lock};
    x.senders.remove(node);
    throw;
  }
  if (why != wake_reason::event) {
    lock.lock();
    x.senders.remove(node);
    lock.unlock();
    throw cancelled{};
  }
}

void actor_cell::let_a_sender_in() noexcept {
  // One that was cancelled meanwhile is passed over.
  wait_list<>& senders = more.load(std::memory_order_relaxed)->senders;
  while (wait_node* n = senders.pop_front())
    if (wake(n->waiter)) return;
}

// The count and the look for senders belong together: who comes in between would find no room, and wait for ever.
void actor_cell::make_room_by(message& out) noexcept {
  if ((out.flags & (message::lifecycle | message::kept)) != 0) return;
  if (!RAMIE_PLANT(room_counted_late)) {
    out.flags |= message::counted;
    handled.store(handled.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  let_a_sender_in();
}

bool actor_cell::post_lifecycle(message* m) noexcept {
  lock.lock();
  if ((status & closed) != 0) {
    lock.unlock();
    discard_all(m, letter_fate::down);
    return false;
  }
  if ((status & waiting) != 0) {
    mail.push(m);
    lock.unlock();
  } else {
    put_and_unlock(m);
  }
  return true;
}

void actor_cell::discard_all(message* first, letter_fate fate) noexcept {
  while (first != nullptr) {
    message* rest_of_it = first->next;
    if ((first->flags & message::lifecycle) == 0) report_dead_letter(*this, *first, fate);
    discarded context{this, fate};
    first->act(*first, message_verb::discard, &context);
    free_message(first);
    first = rest_of_it;
  }
}

}  // namespace ramie::detail
