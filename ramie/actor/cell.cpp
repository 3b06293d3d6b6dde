// Life of an actor, and the way of its mail.
//
// An actor is a resident (task/scheduling.hpp): one block with its control part and its state. Its mailbox, and whether
// it is scheduled, are guarded by one adaptive lock, so an actor that only one worker deals with needs no atomic
// read-modify-write.
//
//  A1 A sender puts its message into `mail`. If the actor was not scheduled, it is now, and the sender makes it ready.
//     So it is in at most one queue, and runs on at most one worker. The thread that schedules an actor owns it until it is
//     ready: so that first message goes straight into `batch`, which is empty then, and need not be taken out of
//     `mail`. (Not where the mailbox is bounded, or where a fiber waits for its mail.)
//  A2 A worker runs it in place on the loop's stack. It handles `batch`, then takes all mail at once (one message at a
//     time if the mailbox is bounded), up to `burst` messages in all, urgent ones first. A handler that suspends turns
//     the run into a fiber; the actor stays scheduled all the while, so nobody else runs it.
//  A3 When it finds no mail, under the lock, and is not wanted otherwise, it is not scheduled any more. A sender comes
//     either before, and its message is seen, or after, and schedules. Before that the stack is taken away from it (R2
//     in task/scheduling.hpp); afterwards it is not touched, for it may already run elsewhere.
//     If it comes to its end otherwise, by the budget or by its own end, or if its run is measured or watched, `rest`
//     looks in the same way as the last thing: mail makes it ready again, behind others; none means not scheduled.
//  A4 How it ends, with a supervisor or without, is in incarnation.cpp.
//
// Kill, stop: stop is a message among others. Kill is an interrupt, heeded before the next message; it also stops the
// task, so that a handler that waits throws `cancelled`. The stop flag is set, and at the end taken back, under the
// lock: else a late kill would stop what comes after.
//
// `interrupts` is written under the lock, as is all that it tells of; a reader that sees a bit of it without the lock
// takes the lock before reading that, so it carries no order. `more`, written once under the lock, is acquired by those
// who have held neither the lock nor acquired it before.
//
// So the usual message takes the lock twice: once to send, once to find that there is no other.
//
// Considered: an intrusive lock-free list. It needs an atomic read-modify-write to send, one to take and one to become
// idle, where the lock in its owner's mode needs none; and bounds would need a lock beside it.
#include <ramie/actor/cell.hpp>

#include <ramie/actor/extras.hpp>
#include <ramie/actor/timer.hpp>
#include <ramie/base/assert.hpp>
#include <ramie/fiber/fiber_task.hpp>
#include <ramie/sched/residents.hpp>
#include <ramie/task/region.hpp>
#include <ramie/worker/worker.hpp>

#include <mutex>
#include <new>

namespace ramie::detail {

actor_cell* this_actor() noexcept {
  task* t = running_task_here();
  while (t != nullptr && (t->flags.load(std::memory_order_relaxed) & task::strand_flag) != 0) t = t->parent;
  return t != nullptr && t->type->kind == task_kind::resident ? static_cast<actor_cell*>(t) : nullptr;
}

// ---- running -------------------------------------------------------------------------------------------------------

message* actor_cell::next_urgent() noexcept {
  lock.lock();
  message* m = urgent.pop();
  if (m == nullptr) {
    interrupts.store(interrupts.load(std::memory_order_relaxed) & ~urgent_mail, std::memory_order_relaxed);
  } else {
    note_urgent_taken(*this, *m, nullptr);
    if ((status & bounded) != 0) make_room_by(*m);
  }
  lock.unlock();
  return m;
}

// Kill ends all; urgent mail comes before the rest.
message* actor_cell::next_when_interrupted() noexcept {
  if ((interrupts.load(std::memory_order_relaxed) & kill_wanted) != 0) {
    ending = true;
    return nullptr;
  }
  message* m = next_urgent();
  if (m == nullptr) {
    m = batch.first;
    if (m == nullptr) m = take_mail(nullptr).first;
    else batch.first = m->next;
  }
  return m;
}

actor_cell::taken actor_cell::take_mail(stack* here) noexcept {
  lock.lock();
  message* m = mail.first;
  bool rests = false;
  if (m == nullptr || RAMIE_PLANT(mail_unnoticed)) {
    m = nullptr;
    rests = here != nullptr && (interrupts.load(std::memory_order_relaxed) == 0 || RAMIE_PLANT(interrupt_unnoticed));
    if (rests) {
      here->occupant.store(nullptr, std::memory_order_relaxed);
      scheduled = false;
    }
  } else if ((status & bounded) == 0) {
    batch.first = m->next;
    mail.first = nullptr;
  } else {
    mail.first = m->next;
    make_room_by(*m);
  }
  lock.unlock();
  current_worker()->uncount_lock();  // nothing was done by it: what was sent has been counted
  return {m, rests};
}

RAMIE_ALWAYS_INLINE void actor_cell::handle(message* m) {
  if ((m->flags & (message::lifecycle | message::kept | message::counted | message::own | message::late)) == 0)
      [[likely]]
    handled.store(handled.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  else if (!begin_special(*m)) return;
  handling = m;
  m->act(*m, message_verb::handle, this);
  if ((m->flags & (message::kept | message::apart)) == 0) [[likely]]
    current_worker()->blocks_here->give(m->list, m);
  else if ((m->flags & message::kept) == 0) free_message(m);
}

bool actor_cell::handle_burst(std::uint32_t budget, stack* here) {
  while (!ending && budget-- != 0) {
    message* m = batch.first;
    if (interrupts.load(std::memory_order_relaxed) != 0) [[unlikely]] {
      m = next_when_interrupted();
      if (m == nullptr) return false;
    } else if (m != nullptr) {
      batch.first = m->next;
    } else {
      const taken mail_then = take_mail(here);
      m = mail_then.first;
      if (m == nullptr) return mail_then.at_rest;
    }
    handle(m);
  }
  if (!ending) worker::current()->time_slices.add();
  return false;
}

namespace {
/// Timers send what a trace has not seen: the thread that fires them runs no code of the user's.
void trace_own(actor_cell& c, message& m) noexcept {
  if (message_traces.load(std::memory_order_relaxed) != 0 &&
      (m.flags & (message::own | message::lifecycle)) == message::own) [[unlikely]]
    trace_timed(c, m);
}
}  // namespace

// One that was counted before, or counts for nothing, or is for one incarnation only, or has no payload yet. False: it
// is gone.
bool actor_cell::begin_special(message& m) {
  if ((m.flags & (message::lifecycle | message::kept | message::counted)) == 0)
    handled.store(handled.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  m.flags &= static_cast<std::uint8_t>(~(message::kept | message::counted));  // `kept` now says: stashed again
  if (!is_stale(*this, m)) {
    if ((m.flags & message::late) == 0) {
      trace_own(*this, m);
      return true;
    }
    handling = &m;  // as such it is dropped if this throws
    making now{this};
    m.act(m, message_verb::make, &now);
    if (!now.unwanted) {
      trace_own(*this, m);
      return true;
    }
  }
  discarded context{this, letter_fate::down};
  m.act(m, message_verb::discard, &context);
  free_message(&m);
  return false;
}

bool actor_cell::begin_turn() {
  if (is_draining()) kill(exit_reason{exit_kind::shutdown});
  if ((interrupts.load(std::memory_order_relaxed) & finish_wanted) == 0) return true;
  lock.lock();
  interrupts.store(interrupts.load(std::memory_order_relaxed) & ~finish_wanted, std::memory_order_relaxed);
  const bool waits = (status & waiting) != 0;
  const exit_reason why = more.load(std::memory_order_relaxed)->last;
  lock.unlock();
  if (waits) finish(why, true);
  return !waits;
}

RAMIE_NOINLINE bool actor_cell::whole_turn(std::uint32_t budget, stack* here) noexcept {
  if (budget == burst && !begin_turn()) return false;
  std::exception_ptr failure;
  try {
    if (handle_burst(budget, here)) return true;
    if (!ending) return false;
  } catch (...) {
    failure = std::current_exception();
  }
  end_turn(std::move(failure));
  return false;
}

// The exception is still being handled here, so that `turn` needs no place for it.
void actor_cell::fail_turn() noexcept { end_turn(std::current_exception()); }

// The usual turn, of one message: with all else in functions that are called last it saves three registers.
bool actor_cell::turn(task& t, stack* here) noexcept {
  auto& c = static_cast<actor_cell&>(t);
  if (here == nullptr) [[unlikely]]
    return c.whole_turn(burst, here);
  if (c.interrupts.load(std::memory_order_relaxed) != 0) [[unlikely]]
    return c.whole_turn(burst, here);
  message* m = c.batch.first;
  if (m == nullptr) [[unlikely]]
    return c.whole_turn(burst, here);
  c.batch.first = m->next;
  try {
    c.handle(m);
  } catch (...) {
    c.fail_turn();
    return false;
  }
  if (c.batch.first != nullptr || c.ending) [[unlikely]]
    return c.whole_turn(burst - 1, here);
  if (!c.lock.try_enter_as_owner(current_worker())) [[unlikely]]
    return c.whole_turn(burst - 1, here);
  if (c.mail.first == nullptr && c.interrupts.load(std::memory_order_relaxed) == 0) [[likely]] {
    here->occupant.store(nullptr, std::memory_order_relaxed);
    c.scheduled = false;
    c.lock.leave_as_owner();
    return true;
  }
  c.lock.leave_as_owner();
  return c.whole_turn(burst - 1, here);
}

bool actor_cell::turn_of_fiber(task& t, stack* /*here*/) noexcept {
  auto& c = static_cast<actor_cell&>(t);
  if (!c.begin_turn()) return false;
  std::exception_ptr failure;
  try {
    c.how().serve(c);
  } catch (...) {
    failure = std::current_exception();
  }
  c.end_turn(std::move(failure));
  return false;
}

// One that it stashed just before it failed would come again, and fail again, for ever.
message* actor_cell::take_failed() noexcept {
  message* m = handling;
  if (m != nullptr && (m->flags & message::kept) != 0 && !more.load(std::memory_order_relaxed)->now.stash.remove(m))
    batch.remove(m);
  return m;
}

// After the end: the asker finds the actor ended, or at rest, and its names free.
void actor_cell::refuse_failed(message& m, const exit_reason& why, const std::exception_ptr& failure) noexcept {
  discarded context{this, letter_fate::failed, why.kind() == exit_kind::failed ? failure : nullptr};
  if ((m.flags & message::kept) != 0) m.act(m, message_verb::discard, &context);
  else if ((m.flags & message::request) != 0) m.act(m, message_verb::fail, &context);
  free_message(&m);
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): the caller has no further use for it
void actor_cell::end_turn(std::exception_ptr failure) noexcept {
  message* const failed = failure ? take_failed() : nullptr;
  exit_reason why{failure ? exit_kind::failed : exit_kind::stopped, failure};
  if ((interrupts.load(std::memory_order_relaxed) & kill_wanted) != 0) {
    std::lock_guard guard{lock};
    actor_extras* x = more.load(std::memory_order_relaxed);
    why = exit_reason{kill_kind, x == nullptr ? nullptr : x->now.kill_reason.exception()};
  } else if (failure && is_draining()) {
    why = exit_reason{exit_kind::shutdown};
  } else if (actor_extras* x = more.load(std::memory_order_acquire);
             !failure && x != nullptr && x->now.stop_reason.kind() != exit_kind::alive) {
    why = x->now.stop_reason;
  }
  if (failed != nullptr && RAMIE_PLANT(asker_told_early)) refuse_failed(*failed, why, failure);
  end(why);
  if (failed != nullptr && !RAMIE_PLANT(asker_told_early)) refuse_failed(*failed, why, failure);
}

void actor_cell::rest(task& t) noexcept {
  auto& c = static_cast<actor_cell&>(t);
  if ((c.status & ended) != 0) {
    strike_resident(c);
    c.release();
    return;
  }
  c.lock.lock();
  if ((c.status & waiting) != 0) [[unlikely]] {
    if ((c.interrupts.load(std::memory_order_relaxed) & finish_wanted) != 0) {
      c.lock.unlock();
      make_resident_ready(c);
      return;
    }
    actor_extras& x = *c.more.load(std::memory_order_relaxed);
    actor_cell& supervisor = *x.supervisor;
    const exit_reason why = x.last;
    const std::uint32_t incarnation = x.now.number;
    const auto report = x.report;
    c.add_reference();
    supervisor.add_reference();
    c.come_to_rest();
    c.lock.unlock();
    report(c, supervisor, incarnation, why);
    supervisor.release();
    c.release();
    return;
  }
  if ((c.batch.first == nullptr && c.mail.first == nullptr && c.interrupts.load(std::memory_order_relaxed) == 0) ||
      RAMIE_PLANT(mail_unnoticed)) [[likely]] {
    c.scheduled = false;
    c.lock.unlock();
    return;
  }
  c.lock.unlock();
  make_resident_ready(c);
}

// ---- the end -------------------------------------------------------------------------------------------------------

bool actor_cell::kill(exit_reason why, bool cancels) noexcept {
  std::lock_guard guard{lock};
  return kill_locked(std::move(why), cancels);
}

void actor_cell::kill_incarnation(exit_reason why, std::uint32_t incarnation) noexcept {
  std::lock_guard guard{lock};
  const actor_extras* x = more.load(std::memory_order_relaxed);
  if ((x == nullptr ? 0 : x->now.number) == incarnation) kill_locked(std::move(why));
}

bool actor_cell::kill_locked(exit_reason why, bool cancels) noexcept {
  if ((status & (closed | waiting)) != 0) {
    // Its destructor is not to be cancelled: it is shielded. Whatever else it waits for ends by itself.
    return (status & resting) == 0;
  }
  if ((interrupts.load(std::memory_order_relaxed) & kill_wanted) == 0) {
    kill_kind = why.kind();
    if (why.exception() != nullptr) {
      try {
        if (more.load(std::memory_order_relaxed) == nullptr) more.store(new actor_extras, std::memory_order_release);
        more.load(std::memory_order_relaxed)->now.kill_reason = std::move(why);
      } catch (...) {
        // No memory for the exception: the kind alone must do.
      }
    }
    raise(kill_wanted);
  }
  const bool idle = !scheduled;
  scheduled = true;
  if (!idle) {
    if (cancels) request_stop(*this);
  } else if (receiving) {
    wake(receiving);
  } else {
    make_resident_ready(*this);
  }
  return true;
}

void actor_cell::shut_down(task& t) noexcept {
  auto& c = static_cast<actor_cell&>(t);
  c.let_finish();
  c.kill(exit_reason{exit_kind::shutdown});
}

// ---- memory --------------------------------------------------------------------------------------------------------

actor_extras& actor_cell::extras() {
  if (actor_extras* x = more.load(std::memory_order_acquire); x != nullptr) return *x;
  auto fresh = std::make_unique<actor_extras>();
  std::lock_guard guard{lock};
  if (more.load(std::memory_order_relaxed) == nullptr) more.store(fresh.release(), std::memory_order_release);
  return *more.load(std::memory_order_relaxed);
}

static_assert(task_cache::list_of(sizeof(actor_extras)) != task_cache::no_list);
void* actor_extras::operator new(std::size_t size) { return allocate_task(task_cache::list_of(size)); }
void actor_extras::operator delete(void* memory, std::size_t size) noexcept {
  free_task_memory(memory, task_cache::list_of(size));
}

void actor_cell::free_cell() noexcept {
  delete more.load(std::memory_order_relaxed);
  destroy_task(this);
}

actor_cell* allocate_cell(const actor_type& type, std::size_t size, std::uint8_t list) {
  void* memory =
      list != task_cache::no_list ? allocate_task(list) : ::operator new(size, std::align_val_t{task_alignment_most});
  auto* c = ::new (memory) actor_cell;
  c->type = &type;
  c->list = list;
  return c;
}

void prepare_cell(actor_cell& c, const actor_options* options) {
  prepare_resident(c);
  if (options == nullptr) return;
  if (!options->name.empty()) {
    task_extras& extras = extras_of(c);
    extras.name = options->name;
    extras.spawned_by = this_task();
  }
  if (options->priority != 0) extras_of(c).priority = options->priority;
  if (options->worker != -1) pin_resident(c, options->worker);
  if (options->affinity == affinity::none) c.flags.fetch_or(task::homeless_flag, std::memory_order_relaxed);
  if (options->mailbox_capacity == 0 && !options->asks_wait_for_restart && options->stash_capacity == 0) return;
  actor_extras& x = c.extras();
  x.capacity = options->mailbox_capacity;
  x.stash_capacity = options->stash_capacity != 0 ? options->stash_capacity : options->mailbox_capacity;
  x.overflow = options->overflow;
  x.asks_wait_for_restart = options->asks_wait_for_restart;
  if (options->mailbox_capacity != 0) c.status |= actor_cell::bounded;
}

void enlist_cell(actor_cell& c) {
  const bool serves = c.how().serve != nullptr;
  if (!serves && c.references.load(std::memory_order_acquire) == 2 && c.mail.first == nullptr && !c.ending &&
      c.interrupts.load(std::memory_order_relaxed) == 0) [[likely]] {
    // Its constructor gave no reference away, so nobody can send yet: the lock is left to its first user.
    c.scheduled = false;
    enlist_resident(c);
    if (message_traces.load(std::memory_order_relaxed) != 0) [[unlikely]]
      trace_from_start(c);
    return;
  }
  enlist_resident(c);
  if (message_traces.load(std::memory_order_relaxed) != 0) [[unlikely]]
    trace_from_start(c);
  if (serves) {
    make_resident_ready(c);
    return;
  }
  std::lock_guard guard{c.lock};
  if (c.ending)
    c.interrupts.store(c.interrupts.load(std::memory_order_relaxed) | actor_cell::stop_wanted,
                       std::memory_order_relaxed);
  if (c.mail.first != nullptr || c.interrupts.load(std::memory_order_relaxed) != 0) make_resident_ready(c);
  else c.scheduled = false;
}

}  // namespace ramie::detail
