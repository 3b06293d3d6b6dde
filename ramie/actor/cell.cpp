// Life of an actor, and the way of its mail.
//
// An actor is a resident (sched/worker.hpp): one block with its control part and its state. Its mailbox, and whether it
// is scheduled, are guarded by one adaptive lock, so an actor that only one worker deals with needs no atomic
// read-modify-write.
//
//  A1 A sender puts its message into `mail`. If the actor was not scheduled, it is now, and the sender makes it ready.
//     So it is in at most one queue, and runs on at most one worker. Who schedules an actor has it for himself until it
//     is ready: so that first message goes straight into `batch`, which is empty then, and need not be taken out of
//     `mail`. (Not where the mailbox is bounded, or where a fiber waits for its mail.)
//  A2 A worker runs it in place on the loop's stack. It handles `batch`, then takes all mail at once (one message at a
//     time if the mailbox is bounded), up to `burst` messages in all, urgent ones first. A handler that suspends turns
//     the run into a fiber; the actor stays scheduled all the while, so nobody else runs it.
//  A3 When it finds no mail, under the lock, and is not wanted otherwise, it is not scheduled any more. A sender comes
//     either before, and its message is seen, or after, and schedules. Before that the stack is taken away from it (R2
//     in sched/worker.hpp); afterwards it is not touched, for it may already run elsewhere.
//     If it comes to its end otherwise, by the budget or by its own end, or if its run is measured or watched, `rest`
//     looks in the same way as the last thing: mail makes it ready again, behind others; none means not scheduled.
//  A4 The end: `closed` is set under the lock, so later messages are refused; then the state is destroyed, and what
//     waits goes to the dead letters; requests answer with actor_down. Who joined, watches or is linked hears of it.
//  A5 With a supervisor it is `waiting` instead of closed: mail goes on to be taken in, and nobody schedules it but the
//     supervisor's command (or the runtime's shutdown), which makes it construct its state anew, or finish. It reports
//     from `rest`, as the last thing: once the supervisor knows, it may already run again elsewhere.
//
// Kill, stop: stop is a message among others. Kill is an interrupt, heeded before the next message; it also stops the
// task, so that a handler that waits throws `cancelled`. The stop flag is set, and at the end taken back, under the
// lock: else a late kill would stop what comes after.
//
// So the usual message takes the lock twice: once to send, once to find that there is no other.
//
// Considered: an intrusive lock-free list. It needs an atomic read-modify-write to send, one to take and one to become
// idle, where the lock in its owner's mode needs none; and bounds would need a lock beside it.
#include <ramie/actor/cell.hpp>

#include <ramie/actor/extras.hpp>
#include <ramie/base/assert.hpp>
#include <ramie/fiber/fiber_task.hpp>
#include <ramie/sched/region.hpp>
#include <ramie/sched/worker.hpp>

#include <mutex>
#include <new>

namespace ramie::detail {

namespace {

/// Nothing inside is cancelled: destructors must not throw. Where there is no memory left for a shield, all goes well
/// without it unless a destructor waits just then.
class shielded {
 public:
  shielded() noexcept {
    shield_.shield = true;
    try {
      open_region(shield_);
      open_ = true;
    } catch (const std::bad_alloc&) {
    }
  }
  shielded(const shielded&) = delete;
  shielded& operator=(const shielded&) = delete;
  ~shielded() {
    if (open_) close_region(shield_);
  }

 private:
  region shield_;
  bool open_ = false;
};

void destroy_state(actor_cell& c) noexcept {
  if (c.how().plain_state) return;
  shielded while_it_ends;
  c.how().destroy(c);
}

}  // namespace

actor_cell* this_actor() noexcept {
  const worker* w = current_worker();
  task* t = w == nullptr ? nullptr : w->current();
  while (t != nullptr && (t->flags.load(std::memory_order_relaxed) & task::strand_flag) != 0) t = t->parent;
  return t != nullptr && t->type->kind == task_kind::resident ? static_cast<actor_cell*>(t) : nullptr;
}

// ---- running -------------------------------------------------------------------------------------------------------

message* actor_cell::next_urgent() noexcept {
  lock.lock();
  message* m = urgent.pop();
  if (m == nullptr)
    interrupts.store(interrupts.load(std::memory_order_relaxed) & ~urgent_mail, std::memory_order_relaxed);
  else if ((status & bounded) != 0) make_room_by(*m);
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
    rests = here != nullptr && interrupts.load(std::memory_order_relaxed) == 0;
    if (rests) {
      here->occupant.store(nullptr, std::memory_order_release);
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
  if ((m->flags & (message::lifecycle | message::kept | message::counted)) == 0) [[likely]]
    handled.store(handled.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  else m->flags &= static_cast<std::uint8_t>(~(message::kept | message::counted));  // `kept` now says: stashed again
  handling = m;
  m->act(*m, message_verb::handle, this);
  if ((m->flags & (message::kept | message::apart)) == 0) [[likely]]
    current_worker()->blocks.give(m->list, m);
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
  if (!ending) current_worker()->time_slices.add();
  return false;
}

bool actor_cell::begin_turn() {
  if (is_draining()) kill(exit_reason{exit_kind::shutdown});
  return (interrupts.load(std::memory_order_acquire) & (restart_wanted | finish_wanted)) == 0 || heed_interrupts();
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
  if (c.interrupts.load(std::memory_order_acquire) != 0) [[unlikely]]
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
  if (!c.lock.try_enter_as_owner(current_forks())) [[unlikely]]
    return c.whole_turn(burst - 1, here);
  if (c.mail.first == nullptr && c.interrupts.load(std::memory_order_relaxed) == 0) [[likely]] {
    here->occupant.store(nullptr, std::memory_order_release);
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

// NOLINTNEXTLINE(performance-unnecessary-value-param): the caller has no further use for it
void actor_cell::end_turn(std::exception_ptr failure) noexcept {
  if (failure && handling != nullptr && (handling->flags & message::kept) == 0) free_message(handling);
  exit_reason why{failure ? exit_kind::failed : exit_kind::stopped, failure};
  if ((interrupts.load(std::memory_order_acquire) & kill_wanted) != 0) {
    std::lock_guard guard{lock};
    actor_extras* x = more.load(std::memory_order_relaxed);
    why = exit_reason{kill_kind, x == nullptr ? nullptr : x->kill_reason.exception()};
  } else if (failure && is_draining()) {
    why = exit_reason{exit_kind::shutdown};
  }
  end(std::move(why));
}

bool actor_cell::heed_interrupts() {
  actor_extras& x = *more.load(std::memory_order_acquire);
  lock.lock();
  const std::uint8_t raised = interrupts.load(std::memory_order_relaxed);
  interrupts.store(raised & ~(restart_wanted | finish_wanted), std::memory_order_relaxed);
  const bool finishes = (raised & finish_wanted) != 0;
  if (!finishes) {
    // Alive from here on, so that who wants it ended again waits for that, and commands nothing meanwhile.
    status = static_cast<std::uint8_t>((status & ~(waiting | resting)) | starting);
    ++x.incarnation;
  }
  lock.unlock();
  if (finishes) {
    finish(x.last);
    return false;
  }
  std::exception_ptr failure;
  try {
    x.construct(*this);
    std::lock_guard guard{lock};
    status = static_cast<std::uint8_t>(status & ~starting);
    return true;
  } catch (...) {
    failure = std::current_exception();
  }
  std::lock_guard guard{lock};
  x.last = exit_reason{exit_kind::failed, failure};
  wait_for_supervisor();
  return false;  // `rest` reports
}

void actor_cell::wait_for_supervisor() noexcept {
  status = static_cast<std::uint8_t>((status & ~starting) | waiting | resting);
  interrupts.store(interrupts.load(std::memory_order_relaxed) & ~kill_wanted, std::memory_order_relaxed);
  flags.fetch_and(~task::stop_flag, std::memory_order_acq_rel);
  for (joiner* n = joiners.front(); n != nullptr; n = joiners.after(*n))
    if (n->incarnation) wake(n->waiter);
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
    if ((c.interrupts.load(std::memory_order_relaxed) & (restart_wanted | finish_wanted)) != 0) {
      c.lock.unlock();
      make_ready(c);
      return;
    }
    c.scheduled = false;
    actor_extras& x = *c.more.load(std::memory_order_relaxed);
    actor_cell& supervisor = *x.supervisor;
    const exit_reason why = x.last;
    const std::uint32_t incarnation = x.incarnation;
    const auto report = x.report;
    c.add_reference();
    supervisor.add_reference();
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
  make_ready(c);
}

// ---- the end -------------------------------------------------------------------------------------------------------

bool actor_cell::kill(exit_reason why) noexcept {
  std::lock_guard guard{lock};
  if ((status & (closed | waiting)) != 0) return (status & resting) == 0;
  if ((interrupts.load(std::memory_order_relaxed) & kill_wanted) == 0) {
    kill_kind = why.kind();
    if (why.exception() != nullptr) {
      try {
        if (more.load(std::memory_order_relaxed) == nullptr) more.store(new actor_extras, std::memory_order_release);
        more.load(std::memory_order_relaxed)->kill_reason = std::move(why);
      } catch (...) {
        // No memory for the exception: the kind alone must do.
      }
    }
    raise(kill_wanted);
  }
  const bool idle = !scheduled;
  scheduled = true;
  if (!idle) request_stop(*this);
  else if (receiving) wake(receiving);
  else make_ready(*this);
  return true;
}

bool actor_cell::command(std::uint8_t interrupt) noexcept {
  std::lock_guard guard{lock};
  if ((status & waiting) == 0) return false;
  const bool news = (interrupts.load(std::memory_order_relaxed) & interrupt) == 0;
  raise(interrupt);
  if (scheduled) return news;  // on its way to rest, where it sees
  scheduled = true;
  make_ready(*this);
  return news;
}

void actor_cell::shut_down(task& t) noexcept {
  auto& c = static_cast<actor_cell&>(t);
  c.command(finish_wanted);
  c.kill(exit_reason{exit_kind::shutdown});
}

void actor_cell::end(exit_reason why) noexcept {
  const bool ends_for_good = is_draining();
  lock.lock();
  actor_extras* x = more.load(std::memory_order_relaxed);
  const bool supervised = x != nullptr && x->supervisor != nullptr && !ends_for_good;
  status |= supervised ? waiting : closed;
  interrupts.store(interrupts.load(std::memory_order_relaxed) & ~kill_wanted, std::memory_order_relaxed);
  flags.fetch_and(~task::stop_flag, std::memory_order_acq_rel);
  if (x != nullptr) {
    x->last = why;
    x->kill_reason = {};
  }
  ending = false;
  handling = nullptr;
  lock.unlock();
  if (x != nullptr) {
    cancel_timers(*x);
    x->becoming.reset();
  }
  destroy_state(*this);
  if (!supervised) {
    finish(std::move(why));
    return;
  }
  // What was stashed, and the rest of the batch, is first in the mailbox of the next incarnation.
  message_queue first;
  message_queue failed;
  const auto sort = [&](message* m) {
    while (m != nullptr) {
      message* behind = m->next;
      ((m->flags & message::request) != 0 && !x->asks_wait_for_restart ? failed : first).push(m);
      m = behind;
    }
  };
  sort(x->stash.take_all());
  sort(batch.take_all());
  lock.lock();
  sort(mail.take_all());
  mail = first;
  wait_for_supervisor();
  lock.unlock();
  discard_all(failed.first, letter_fate::restarting);
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): a copy, for the caller's may be the one that is written here
void actor_cell::finish(exit_reason why) noexcept {
  std::vector<watch> watchers;
  actor_cell* supervisor = nullptr;
  lock.lock();
  status = static_cast<std::uint8_t>((status | closed) & ~waiting);
  last_exit = why.kind();
  actor_extras* x = more.load(std::memory_order_relaxed);
  message* left[] = {urgent.take_all(), batch.take_all(), mail.take_all(),
                     x == nullptr ? nullptr : x->stash.take_all()};
  bool known = !joiners.empty();
  if (x != nullptr) {
    while (wait_node* n = x->senders.pop_front()) wake(n->waiter);
    watchers.swap(x->watchers);
    supervisor = std::exchange(x->supervisor, nullptr);
    x->last = why;
  } else if (why.exception() != nullptr) {
    try {
      x = new actor_extras;
      x->last = why;
      more.store(x, std::memory_order_release);
    } catch (const std::bad_alloc&) {
      // Then only the kind is known.
    }
  }
  lock.unlock();
  for (message* first : left) discard_all(first, letter_fate::down);
  if (x != nullptr) {
    x->construct = nullptr;
    if (x->named) forget_names(*this);
  }
  known = known || supervisor != nullptr || !watchers.empty();
  for (const watch& w : watchers) {
    if (w.note != nullptr) send_note(*w.other, w.note, *this, why);
    else spread_exit(*w.other, *this, why);
    w.other->release();
  }
  if (supervisor != nullptr) supervisor->release();
  if (!known && why.kind() == exit_kind::failed)
    report_lost_exception(name_of(this), why.exception(),
                          "is an actor and ended by an exception that nobody watches for", false);
  // Last, so that who has joined finds everybody else told.
  lock.lock();
  status |= ended;
  while (joiner* n = joiners.pop_front()) wake(n->waiter);
  lock.unlock();
}

bool actor_cell::join(const steady::time_point* deadline, bool incarnation, std::source_location from) {
  if (this_actor() == this) throw usage_error{"ramie: join: an actor cannot join itself"};
  const wait_site site{"the end of an actor", from};
  wait pause{wait::kind::cancellable, site};
  joiner node;
  node.waiter = pause.ref();
  node.incarnation = incarnation;
  lock.lock();
  const bool already = (status & (ended | (incarnation ? resting : 0))) != 0;
  if (!already) joiners.push_back(node);
  lock.unlock();
  if (already) {
    if (!pause.withdraw()) pause.suspend();
    return true;
  }
  const auto leave = [&] {
    std::lock_guard guard{lock};
    joiners.remove(node);
  };
  wake_reason why;
  try {
    why = deadline == nullptr ? pause.suspend() : pause.suspend_until(*deadline);
  } catch (...) {
    leave();
    throw;
  }
  leave();
  if (why == wake_reason::cancelled) throw cancelled{};
  return why == wake_reason::event;
}

exit_reason actor_cell::reason() noexcept {
  std::lock_guard guard{lock};
  const actor_extras* x = more.load(std::memory_order_relaxed);
  if (last_exit == exit_kind::alive) return exit_reason{};
  return exit_reason{last_exit, x == nullptr ? nullptr : x->last.exception()};
}

bool actor_cell::has_ended() noexcept {
  std::lock_guard guard{lock};
  return last_exit != exit_kind::alive;
}

// ---- memory --------------------------------------------------------------------------------------------------------

actor_extras& actor_cell::extras() {
  if (actor_extras* x = more.load(std::memory_order_acquire); x != nullptr) return *x;
  auto fresh = std::make_unique<actor_extras>();
  std::lock_guard guard{lock};
  if (more.load(std::memory_order_relaxed) == nullptr) more.store(fresh.release(), std::memory_order_release);
  return *more.load(std::memory_order_relaxed);
}

void actor_cell::free_cell() noexcept {
  if (actor_extras* x = more.load(std::memory_order_relaxed); x != nullptr) {
    if (x->supervisor != nullptr) x->supervisor->release();  // its constructor threw
    delete x;
  }
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
  if (options->mailbox_capacity == 0 && !options->asks_wait_for_restart) return;
  actor_extras& x = c.extras();
  x.capacity = options->mailbox_capacity;
  x.overflow = options->overflow;
  x.asks_wait_for_restart = options->asks_wait_for_restart;
  if (options->mailbox_capacity != 0) c.status |= actor_cell::bounded;
}

void enlist_cell(actor_cell& c) {
  const bool serves = c.how().serve != nullptr;
  if (!serves && c.references.load(std::memory_order_acquire) == 2 && c.mail.first == nullptr &&
      c.interrupts.load(std::memory_order_relaxed) == 0) [[likely]] {
    // Its constructor gave no reference away, so nobody can send yet: the lock is left to its first user.
    c.scheduled = false;
    enlist_resident(c);
    return;
  }
  enlist_resident(c);
  if (serves) {
    make_ready(c);
    return;
  }
  std::lock_guard guard{c.lock};
  if (c.mail.first != nullptr || c.interrupts.load(std::memory_order_relaxed) != 0) make_ready(c);
  else c.scheduled = false;
}

void abandon_cell(actor_cell& c) noexcept {
  // Its constructor may have given references away.
  {
    std::lock_guard guard{c.lock};
    c.status |= actor_cell::closed | actor_cell::ended;
    c.last_exit = exit_kind::failed;
  }
  c.discard_all(c.mail.take_all(), letter_fate::down);
  c.discard_all(c.urgent.take_all(), letter_fate::down);
  c.release();
  c.release();
}

}  // namespace ramie::detail
