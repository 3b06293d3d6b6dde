// The ways into a mailbox that are not the plain one: bounded, closed or waiting for a restart. See cell.cpp.
#include <ramie/actor/cell.hpp>

#include <ramie/actor/extras.hpp>
#include <ramie/base/error.hpp>
#include <ramie/fiber/fiber_task.hpp>
#include <ramie/inspect/dump_facts.hpp>
#include <ramie/sched/live_schedulers.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

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

// A copy of bytes, whatever it says: what is followed is the class, which is a constant, and what copy_from can read.
void actor_cell::describe(const void* copy, const void* type, resident_facts& found) noexcept {
  found.kind = "actor";
  found.type = static_cast<const actor_type*>(type)->of->name();
  if (copy == nullptr) return;
  const auto& c = *static_cast<const actor_cell*>(copy);
  found.mail = c.posted - c.handled.load(std::memory_order_relaxed);
  found.state = (c.status & closed) != 0     ? "has ended"
                : (c.status & starting) != 0 ? "is being restarted"
                : (c.status & waiting) != 0  ? "waits for its supervisor"
                : is_set(c.scheduled)        ? "is ready"
                                             : "is idle";
  if (const copied<actor_extras> x(c.more.load(std::memory_order_relaxed)); x) found.supervisor = x->supervisor;
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
  interrupts.store(interrupts.load(std::memory_order_relaxed) | interrupt, std::memory_order_relaxed);
}

namespace {

/// The oldest message that may be dropped, out of the queue; or null.
message* take_oldest(message_queue& q) noexcept {
  for (message* m = q.first; m != nullptr; m = m->next) {
    if ((m->flags & (message::lifecycle | message::kept | message::counted)) != 0) continue;
    q.remove(m);
    m->next = nullptr;
    return m;
  }
  return nullptr;
}

/// The caller runs the actor's constructor: as for the actor itself, there is always room.
bool constructs_it(const actor_extras& x) noexcept {
  return x.now.constructs != nullptr && x.now.constructs == this_task();
}

}  // namespace

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
  make_resident_ready(*this);
}

tell_status actor_cell::try_post_unseen(message* m, bool before_others) {
  lock.lock();
  if ((status & ~receives) == 0 && !before_others) {
    ++posted;
    if ((m->flags & message::request) != 0) asked = true;
    put_and_unlock(m);
    return tell_status::ok;
  }
  if ((status & closed) != 0) {
    lock.unlock();
    discard_all(m, letter_fate::down);
    return tell_status::down;
  }
  if ((m->flags & message::request) != 0) {
    if ((status & (waiting | starting)) != 0 && !more.load(std::memory_order_relaxed)->asks_wait_for_restart) {
      if (!RAMIE_PLANT(room_left_to_nobody)) let_senders_in();
      lock.unlock();
      discard_all(m, letter_fate::restarting);
      return tell_status::ok;
    }
    asked = true;
  }
  message* dropped = nullptr;
  if (full()) {
    actor_extras& x = *more.load(std::memory_order_relaxed);
    if (x.overflow == overflow::drop_oldest) {
      // What ramie sent stays. Urgent mail goes only where there is no other.
      dropped = take_oldest(mail);
      if (dropped == nullptr) dropped = take_least_urgent(*this);
      if (dropped != nullptr) --posted;  // `handled` is the actor's to count
    } else if (this_actor() != this && !constructs_it(x)) {
      const tell_status became = x.overflow == overflow::drop_newest ? tell_status::dropped : tell_status::full;
      const bool waits = x.overflow == overflow::block_sender;
      lock.unlock();
      if (!waits) discard_all(m, letter_fate::full);
      return became;
    }
  }
  if (before_others) {
    put_urgent(*this, m);
    raise(urgent_mail);
  } else {
    mail.push(m);
  }
  ++posted;
  if ((status & waiting) != 0) lock.unlock();
  else wake_and_unlock();
  if (dropped != nullptr) discard_all(dropped, letter_fate::full);
  return tell_status::ok;
}

tell_status actor_cell::try_post(message* m, bool before_others) {
  if (message_traces.load(std::memory_order_relaxed) != 0) [[unlikely]]
    return try_post_traced(*this, m, before_others);
  return try_post_unseen(m, before_others);
}

bool actor_cell::has_room() noexcept {
  const actor_extras* x = more.load(std::memory_order_acquire);
  return x == nullptr || x->capacity == 0 || mail_count() < x->capacity;
}

namespace {
/// A message that waits for room. Not a handler, as until_submitted.
struct until_posted {
  actor_cell& by;
  message* m;
  ~until_posted() {
    if (m != nullptr) by.discard_all(m, letter_fate::full);
  }
};
}  // namespace

tell_status actor_cell::post_until(message* m, const steady::time_point& deadline) {
  for (;;) {
    const tell_status outcome = try_post(m, false);
    if (outcome != tell_status::full || !blocks_senders()) return outcome;
    until_posted owner{*this, m};
    if (deadline <= os_now() || !wait_for_room(std::source_location::current(), &deadline)) return outcome;
    owner.m = nullptr;
  }
}

tell_status actor_cell::post_slowly(message* m, bool before_others) {
  tell_status outcome;
  while ((outcome = try_post(m, before_others)) == tell_status::full && blocks_senders()) {
    until_posted owner{*this, m};
    wait_for_room(std::source_location::current());
    owner.m = nullptr;
  }
  return outcome;
}

bool actor_cell::wait_for_room(std::source_location from, const steady::time_point* deadline) {
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
    if (wait_needed || !pause.withdraw()) why = deadline == nullptr ? pause.suspend() : pause.suspend_until(*deadline);
  } catch (...) {
    std::lock_guard guard{lock};
    x.senders.remove(node);
    throw;
  }
  if (why != wake_reason::event) {
    lock.lock();
    x.senders.remove(node);
    lock.unlock();
    return why == wake_reason::cancelled && begin_again([&] { return wait_for_room(from, deadline); });
  }
  return true;
}

void actor_cell::let_senders_in() noexcept {
  const actor_extras* x = more.load(std::memory_order_relaxed);
  if (x == nullptr || x->senders.empty()) return;
  const std::uint32_t held = posted - handled.load(std::memory_order_relaxed);
  // Those let in before may be on their way still; one too many finds the mailbox full, and waits again.
  for (std::size_t room = x->capacity > held ? x->capacity - held : 0; room != 0 && !x->senders.empty(); --room)
    let_a_sender_in();
}

void actor_cell::let_a_sender_in() noexcept {
  // One that was cancelled meanwhile is passed over.
  wait_list<>& senders = more.load(std::memory_order_relaxed)->senders;
  while (wait_node* n = senders.pop_front())
    if (wake(n->waiter)) return;
}

// The count and the look for senders belong together: a sender in between would find no room, and wait forever.
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
  if (memberships != nullptr) __builtin_prefetch(memberships);  // most of these messages bring the end
  put_lifecycle_and_unlock(m);
  return true;
}

void actor_cell::put_lifecycle_and_unlock(message* m) noexcept {
  if ((status & waiting) != 0) {
    mail.push(m);
    lock.unlock();
  } else {
    put_and_unlock(m);
  }
}

bool actor_cell::runs(std::uint32_t incarnation) const noexcept {
  if ((status & (closed | waiting)) != 0) return false;
  const actor_extras* x = more.load(std::memory_order_relaxed);
  return (x == nullptr ? 0 : x->now.number) == incarnation;
}

bool actor_cell::post_note(message* m, std::uint32_t incarnation, bool drops) noexcept {
  m->incarnation = incarnation;
  lock.lock();
  if ((!runs(incarnation) && !RAMIE_PLANT(notes_outlive_incarnations)) || (status & closed) != 0) {
    lock.unlock();
    if (drops) discard_all(m, letter_fate::down);
    return false;
  }
  put_lifecycle_and_unlock(m);
  return true;
}

void actor_cell::post_timed(message* m, std::uint32_t incarnation, bool always) noexcept {
  m->incarnation = incarnation;
  lock.lock();
  const bool own = (m->flags & message::own) != 0;
  letter_fate fate = letter_fate::down;
  if ((status & closed) == 0 && (!own || runs(incarnation))) {
    if (always || !full()) {
      ++posted;
      if ((status & (bounded | waiting)) == 0) {
        put_and_unlock(m);
        return;
      }
      mail.push(m);
      if ((status & waiting) != 0) lock.unlock();
      else wake_and_unlock();
      return;
    }
    fate = letter_fate::full;
  }
  lock.unlock();
  discard_all(m, fate);
}

void actor_cell::discard_all(message* first, letter_fate fate) noexcept {
  if (first == nullptr) return;
  const quiet_region destructors;  // of payloads; they may wait
  while (first != nullptr) {
    message* rest_of_it = first->next;
    if ((first->flags & message::lifecycle) == 0) report_dead_letter(*this, *first, fate);
    discarded context{this, fate};
    first->act(*first, message_verb::discard, &context);
    free_message(first);
    first = rest_of_it;
  }
}

// ---- urgent mail ---------------------------------------------------------------------------------------------------
//
// It is in one list, the most urgent first. While there is one level only, new mail goes to the end. An actor that has
// been told something above that knows where each level ends, so that nothing is put or taken by a search.

namespace {

/// Under the lock.
urgency_levels* levels_of(actor_cell& c) noexcept {
  const actor_extras* x = c.more.load(std::memory_order_relaxed);
  return x == nullptr ? nullptr : x->levels.get();
}

void insert_behind(message_queue& q, message* before, message* m) noexcept {
  message*& link = before == nullptr ? q.first : before->next;
  m->next = link;
  link = m;
  if (m->next == nullptr) q.last = m;
}

}  // namespace

void prepare_urgency(actor_cell& c, int urgency) {
  if (urgency < 1 || urgency > urgency_most) [[unlikely]]
    throw invalid_argument{"ramie: tell_urgent: the urgency " + std::to_string(urgency) + " is outside 1 to " +
                           std::to_string(urgency_most)};
  if (urgency == 1) return;
  actor_extras& x = c.extras();
  {
    std::lock_guard guard{c.lock};
    if (x.levels != nullptr) return;
  }
  auto fresh = std::make_unique<urgency_levels>();
  std::lock_guard guard{c.lock};
  if (x.levels != nullptr) return;
  fresh->last[1] = c.urgent.first == nullptr ? nullptr : c.urgent.last;
  x.levels = std::move(fresh);
}

void put_urgent(actor_cell& c, message* m) noexcept {
  urgency_levels* const levels = levels_of(c);
  if (levels == nullptr) {
    c.urgent.push(m);
    return;
  }
  message* before = nullptr;
  for (std::size_t level = m->urgency; level < levels->last.size() && before == nullptr; ++level)
    before = levels->last[level];
  insert_behind(c.urgent, before, m);
  levels->last[m->urgency] = m;
}

void note_urgent_taken(actor_cell& c, const message& m, message* before) noexcept {
  urgency_levels* const levels = levels_of(c);
  if (levels == nullptr || levels->last[m.urgency] != &m) return;
  levels->last[m.urgency] = before != nullptr && before->urgency == m.urgency ? before : nullptr;
}

void take_in_urgent(actor_cell& c) noexcept {
  if (c.urgent.first == nullptr) return;
  message_queue fresh = std::exchange(c.urgent, {});
  message_queue before = std::exchange(c.batch, {});
  if (urgency_levels* levels = levels_of(c); levels != nullptr) *levels = {};
  for (message* m = fresh.first; m != nullptr; m = m->next) m->flags |= message::first;
  while (before.first != nullptr && (before.first->flags & message::first) != 0) {
    while (fresh.first != nullptr && fresh.first->urgency > before.first->urgency) c.batch.push(fresh.pop());
    c.batch.push(before.pop());
  }
  c.batch.append(fresh);
  c.batch.append(before);
}

message* take_least_urgent(actor_cell& c) noexcept {
  message* found = nullptr;
  message* behind = nullptr;
  message* before = nullptr;
  for (message* m = c.urgent.first; m != nullptr; before = m, m = m->next) {
    if ((m->flags & (message::lifecycle | message::kept | message::counted)) != 0) continue;
    if (found != nullptr && found->urgency == m->urgency) continue;
    found = m;  // what comes later is less urgent
    behind = before;
  }
  if (found == nullptr) return nullptr;
  c.urgent.remove(found);
  found->next = nullptr;
  note_urgent_taken(c, *found, behind);
  return found;
}

}  // namespace ramie::detail
