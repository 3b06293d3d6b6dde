// How an incarnation of an actor begins and ends.
//
// An incarnation owns what its state asked for: links, monitors, timers, handlers put in place of others, messages put
// aside, the reason of its end. All of it begins empty before the constructor, and is ended in one way (I4 to I7),
// whether the incarnation ends normally, by an exception, by a kill, by a constructor that throws, or at shutdown.
//
// Any thread may touch the lists of ties, the number and the reasons under the cell's lock, and the timers under their
// own lock. The rest belongs to the running actor: the task that constructs it, then the one that runs its turn, then
// the one that ends it. Each hands over to the next through the cell's lock, so there are never two.
//
//  I1 It begins, under the lock: a fresh number, `starting`, `gone` taken back. (The first has the number 0, and is not
//     marked: nobody but its constructor knows the actor.)
//  I2 The constructor runs, on the caller's task; for a restart that is the supervisor, which has taken the actor over
//     (S2 in supervisor.cpp). Mail is taken in meanwhile; requests are refused, unless they may wait.
//  I3 It is alive: not `starting` any more, and made ready if there is mail, or a kill or stop() came meanwhile.
//  I4 It begins to end, under the lock: `waiting` if a supervisor decides, else `closed`; the reason is in place. The
//     stop flag is taken back here, too: a later kill must not stop what comes after.
//  I5 Handlers are dropped, and the state is destroyed. Ties may still be added, by others or by the destructor; I7
//     ends them, with the right reason. So an actor that ties itself to one that ends finds it either alive still, or
//     `gone` and its reason known.
//  I6 Under the lock: `gone`, and all ties are taken out of the lists. From here on none is added.
//  I7 Timers are cancelled. Each tie is claimed, by an exchange of `over`: the other side may be claiming it at the
//     same time, or take it back, and one of them alone tells. Then it leaves the other side's list, under that one's
//     lock. What is told carries the number of the incarnation that it is for: by the time that it arrives, that one
//     may have ended, and the next must neither hear of it nor die of it.
//  I8 With a supervisor: mail stays. What was stashed comes first. Requests are refused,
//     unless they may wait (asks_wait_for_restart), and no longer count; if none was taken in, the mailbox is not
//     searched, so a restart does not cost its length. Notes and timers'
//     messages to this incarnation stay in line, and are dropped when their turn comes (is_stale).
//  I9 With a supervisor: `rest`, the last that happens in the turn, sets `resting`, wakes the waiter for that and
//     reports. From then on nothing runs it. The thread that sees `resting`, under the lock, and sets `scheduled` has taken it
//     over: its supervisor, to go on with I1 or I10; or let_finish, for a turn of its own that does I10.
//     The request on which the handler failed is refused as the last, after this, or after I10 if there is no
//     supervisor.
//  I10 For good: mail goes to the dead letters, names are free, groups left, monitors told, joiners woken, in this order.
//     Without a supervisor names are free and groups left before I6 already. So the one who is told, in whatever way,
//     finds the actor ended and can take its name over.
//
// From I4 to I6 (with a supervisor: to I10) `reason()` says `alive`: somebody who was told of the end must find it
// ended, not the reverse.
#include <ramie/actor/incarnation.hpp>

#include <ramie/actor/extras.hpp>
#include <ramie/actor/timer.hpp>
#include <ramie/base/assert.hpp>
#include <ramie/fiber/fiber_task.hpp>
#include <ramie/sched/residents.hpp>
#include <ramie/task/clean_up.hpp>
#include <ramie/task/region.hpp>
#include <ramie/worker/worker.hpp>

#include <cstdio>
#include <mutex>
#include <new>

namespace ramie::detail {

namespace {

void destroy_state(actor_cell& c) noexcept {
  if (c.how().plain_state) return;
  const quiet_region while_it_ends;  // destructors must not throw
  c.how().destroy(c);
}

void report_lost_failure(actor_cell& c, const exit_reason& why) noexcept {
  const std::string_view type = c.how().of->name();
  const char* name = name_of(&c);
  try {
    if (why.exception() != nullptr) std::rethrow_exception(why.exception());
  } catch (const cancelled&) {
    return;  // as for fibers
  } catch (const std::exception& e) {
    std::fprintf(stderr, "ramie: actor \"%s\" (%.*s), which nothing monitors, ended by an exception: %s\n", name,
                 static_cast<int>(type.size()), type.data(), e.what());
  } catch (...) {
    std::fprintf(stderr,
                 "ramie: actor \"%s\" (%.*s), which nothing monitors, ended by an exception that is not a "
                 "std::exception\n",
                 name, static_cast<int>(type.size()), type.data());
  }
}

/// Takes the requests out of `q`, into `refused`; gives how many of them count as waiting.
std::uint32_t take_requests(message_queue& q, message_queue& refused) noexcept {
  std::uint32_t counted = 0;
  message* m = q.take_all();
  while (m != nullptr) {
    message* behind = m->next;
    if ((m->flags & message::request) == 0) {
      q.push(m);
    } else {
      if ((m->flags & (message::kept | message::counted)) == 0) ++counted;
      refused.push(m);
    }
    m = behind;
  }
  return counted;
}

}  // namespace

void actor_cell::begin_to_end(const exit_reason& why, std::uint8_t into) noexcept {
  status = static_cast<std::uint8_t>((status & ~starting) | into);
  interrupts.store(interrupts.load(std::memory_order_relaxed) & ~(kill_wanted | stop_wanted),
                   std::memory_order_relaxed);
  flags.fetch_and(~task::stop_flag, std::memory_order_relaxed);
  last_exit = why.kind();
  ending = false;
  handling = nullptr;
  actor_extras* x = more.load(std::memory_order_relaxed);
  if (x == nullptr) return;
  x->last = why;
  x->now.kill_reason = {};
  x->now.stop_reason = {};
  x->now.constructs = nullptr;
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): a copy, for the caller's may be the one that is written here
void actor_cell::end(exit_reason why) noexcept {
  const bool ends_for_good = is_draining();
  if (why.exception() != nullptr) {
    try {
      extras();
    } catch (const std::bad_alloc&) {
      // Then only the kind is known.
    }
  }
  const keeper_type* const keeper = how().keeper;
  const bool kept = keeper != nullptr && !ends_for_good && keeper->ends(*this, why);
  lock.lock();
  actor_extras* x = more.load(std::memory_order_relaxed);
  const bool supervised = keeper != nullptr ? kept : x != nullptr && x->supervisor != nullptr && !ends_for_good;
  begin_to_end(why, supervised ? waiting : closed);
  const bool leaves = !supervised && memberships != nullptr;
  lock.unlock();
  if (x != nullptr) {
    const quiet_region destructors;
    x->now.becoming.reset();
    x->now.replaced.clear();
  }
  destroy_state(*this);
  if (leaves && !RAMIE_PLANT(groups_left_late))
    end_memberships(*this);  // before I7: who hears of the end finds the name free
  const bool known = end_incarnation(why);
  if (supervised) keep_mail();
  else finish(std::move(why), known);
}

bool actor_cell::end_incarnation(const exit_reason& why) noexcept {
  lock.lock();
  actor_extras* x = more.load(std::memory_order_relaxed);
  if (!RAMIE_PLANT(gone_too_late)) status |= gone;
  if (x == nullptr || (RAMIE_PLANT(ties_outlive_incarnations) && (status & waiting) != 0)) {
    lock.unlock();
    return false;
  }
  // Each hook stays marked as not linked: others that come to take it out leave it to us.
  tie_hook* const first = x->now.ties.front();
  while (tie_hook* h = x->now.ties.front()) {
    tie_hook* const behind = h->next;
    x->now.ties.remove(*h);
    h->next = behind;
  }
  lock.unlock();
  if (RAMIE_PLANT(gone_too_late)) {
    std::lock_guard guard{lock};
    status |= gone;
  }
  x->now.becoming.reset();
  x->now.replaced.clear();
  x->now.keyed.clear();
  cancel_timers(x->now);
  return end_ties(*this, first, why);
}

void actor_cell::keep_mail() noexcept {
  actor_extras& x = *more.load(std::memory_order_relaxed);
  message_queue refused;
  lock.lock();
  const bool looks = asked && !x.asks_wait_for_restart;
  std::uint32_t counted = 0;
  if (looks) counted += take_requests(x.now.stash, refused);
  x.now.stashed = 0;
  batch.prepend(x.now.stash);
  if (RAMIE_PLANT(mail_lost_at_restart)) batch.take_all();
  if (looks) {
    counted += take_requests(batch, refused);
    counted += take_requests(mail, refused);
    asked = false;
    if (!RAMIE_PLANT(refused_still_counted)) posted -= counted;
  }
  let_senders_in();
  lock.unlock();
  discard_all(refused.first, letter_fate::restarting);
}

void actor_cell::come_to_rest() noexcept {
  status |= resting;
  scheduled = false;
  for (joiner* n = joiners.front(); n != nullptr; n = joiners.after(*n))
    if (n->incarnation) wake(n->waiter);
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): a copy, for the caller's may be the one that is written here
void actor_cell::finish(exit_reason why, bool known, bool silent) noexcept {
  tie_hook* monitors = nullptr;
  actor_cell* supervisor = nullptr;
  lock.lock();
  status = static_cast<std::uint8_t>((status | closed | gone) & ~(waiting | resting));
  last_exit = why.kind();
  actor_extras* x = more.load(std::memory_order_relaxed);
  message* left[] = {urgent.take_all(), batch.take_all(), mail.take_all(),
                     x == nullptr ? nullptr : x->now.stash.take_all()};
  known = known || joiners.front() != nullptr;
  if (x != nullptr) {
    while (wait_node* n = x->senders.pop_front()) wake(n->waiter);
    monitors = x->monitors.front();
    while (tie_hook* h = x->monitors.front()) {
      tie_hook* const behind = h->next;
      x->monitors.remove(*h);
      h->next = behind;
    }
    supervisor = std::exchange(x->supervisor, nullptr);
    x->last = why;
  }
  const bool belongs = memberships != nullptr;
  lock.unlock();
  for (message* first : left) discard_all(first, letter_fate::down);
  if (x != nullptr) x->construct = nullptr;
  if (belongs) end_memberships(*this);
  known = end_ties(*this, monitors, why) || known || supervisor != nullptr;
  if (supervisor != nullptr) supervisor->release();
  if (!known && !silent && why.kind() == exit_kind::failed) report_lost_failure(*this, why);
  if (how().keeper != nullptr) how().keeper->ended(*this);
  // Last, so that a joiner finds everybody else told.
  lock.lock();
  status |= ended;
  while (joiner* n = joiners.front()) {
    joiners.remove(*n);
    wake(n->waiter);
  }
  lock.unlock();
}

// ---- for supervisors -----------------------------------------------------------------------------------------------

bool actor_cell::take_over() noexcept {
  std::lock_guard guard{lock};
  if ((status & resting) == 0 || scheduled) return false;
  scheduled = true;
  return true;
}

void actor_cell::start_again() {
  actor_extras& x = *more.load(std::memory_order_relaxed);
  lock.lock();
  status = static_cast<std::uint8_t>((status & ~(waiting | resting | gone)) | starting);
  ++x.now.number;
  x.now.constructs = this_task();
  lock.unlock();
  try {
    x.construct(*this);
  } catch (...) {
    const exit_reason why{exit_kind::failed, std::current_exception()};
    lock.lock();
    begin_to_end(why, waiting);
    lock.unlock();
    end_incarnation(why);
    keep_mail();
    lock.lock();
    come_to_rest();
    if ((interrupts.load(std::memory_order_relaxed) & finish_wanted) != 0) {
      scheduled = true;
      make_resident_ready(*this);
    }
    lock.unlock();
    throw;
  }
  lock.lock();
  status = static_cast<std::uint8_t>(status & ~starting);
  x.now.constructs = nullptr;
  std::uint8_t raised = interrupts.load(std::memory_order_relaxed) & static_cast<std::uint8_t>(~finish_wanted);
  if (ending) raised |= stop_wanted;
  interrupts.store(raised, std::memory_order_relaxed);
  scheduled = how().serve != nullptr || raised != 0 || batch.first != nullptr || mail.first != nullptr;
  const bool ready = scheduled;
  lock.unlock();
  if (ready) make_resident_ready(*this);
}

void actor_cell::finish_here() noexcept {
  lock.lock();
  const exit_reason why = more.load(std::memory_order_relaxed)->last;
  lock.unlock();
  finish(why, true);
  strike_resident(*this);
  release();
}

void actor_cell::let_finish() noexcept {
  std::lock_guard guard{lock};
  if ((status & waiting) == 0) return;
  raise(finish_wanted);
  if (scheduled) return;  // on its way to rest, or taken over: that one looks
  scheduled = true;
  make_resident_ready(*this);
}

void abandon_cell(actor_cell& c) noexcept {
  const exit_reason why{exit_kind::failed, std::current_exception()};
  {
    std::lock_guard guard{c.lock};
    c.begin_to_end(why, actor_cell::closed);
  }
  end_memberships(c);
  const bool known = c.end_incarnation(why);
  c.finish(why, known, true);
  c.release();
  c.release();
}

// ---- waiting for it ------------------------------------------------------------------------------------------------

void joiner_list::push_back(joiner& n) noexcept {
  n.next = nullptr;
  n.linked = true;
  if (first_ == nullptr) {
    first_ = &n;
    n.previous = &n;
    return;
  }
  n.previous = first_->previous;
  n.previous->next = &n;
  first_->previous = &n;
}

void joiner_list::remove(joiner& n) noexcept {
  if (!n.linked) return;
  n.linked = false;
  if (n.next != nullptr) n.next->previous = n.previous;
  else first_->previous = n.previous;
  if (first_ == &n) first_ = after(n);
  else n.previous->next = n.next;
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
  if (why == wake_reason::cancelled) return begin_again([&] { return join(deadline, incarnation, from); });
  return why == wake_reason::event;
}

exit_reason actor_cell::reason() noexcept {
  std::lock_guard guard{lock};
  if ((status & (closed | gone)) != (closed | gone)) return exit_reason{};
  const actor_extras* x = more.load(std::memory_order_relaxed);
  return exit_reason{last_exit, x == nullptr ? nullptr : x->last.exception()};
}

bool actor_cell::has_ended() noexcept {
  std::lock_guard guard{lock};
  return (status & (closed | gone)) == (closed | gone);
}

}  // namespace ramie::detail
