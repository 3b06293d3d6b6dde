// How a cell runs that stands for an actor elsewhere.
//
// It has the mailbox and the ties of any actor, so senders, monitors, links and joiners need not know. What differs:
//
//  F1 A turn hands mail to `foreign_actor::take`, urgent mail first, and never runs a handler. If that refuses, it has
//     called hold_foreign: the message goes back to the front, and the turn ends.
//  F2 While it is held, `rest` parks it: it stays `scheduled`, so senders do not make it ready, and mail gathers, to the
//     mailbox's bound as at home. resume_foreign takes `held` back and makes a parked one ready. If it comes between
//     hold_foreign and `rest`, that finds it not held, and ready as usual. All under the cell's lock, so no resume is
//     lost.
//  F3 kill() raises an interrupt, which a turn passes on; the cell itself lives until end_foreign, by which the carrier,
//     which knows what became of the actor, ends it. That uses the interrupt `finish_wanted`, and a turn that sees it ends the cell
//     like any actor (I4 to I10 in incarnation.cpp). A parked one is made ready for that. Afterwards the cell is
//     `closed`, and the state gone: a caller from outside looks at that first, under the lock.
//  F4 The runtime's end ends it, as F3.
#include <ramie/patterns/foreign.hpp>

#include <ramie/actor/extras.hpp>
#include <ramie/sched/residents.hpp>
#include <ramie/task/scheduling.hpp>

#include <algorithm>
#include <mutex>

namespace ramie::detail {

namespace {

foreign_state& state_of(actor_cell& c) noexcept { return *static_cast<foreign_state*>(c.state()); }

void clear_interrupt(actor_cell& c, std::uint8_t which) noexcept {
  c.interrupts.store(c.interrupts.load(std::memory_order_relaxed) & static_cast<std::uint8_t>(~which),
                     std::memory_order_relaxed);
}

/// Under the lock: it has a turn soon.
void call(actor_cell& c, foreign_state& s) noexcept {
  if (std::exchange(s.parked, false) || !std::exchange(c.scheduled, true)) make_resident_ready(c);
}

struct next_step {
  enum class what : std::uint8_t { nothing, mail, kill, end } kind = what::nothing;
  message* mail = nullptr;
  exit_reason why;
};

next_step next_of(actor_cell& c) noexcept {
  const std::lock_guard guard{c.lock};
  foreign_state& s = state_of(c);
  const std::uint8_t raised = c.interrupts.load(std::memory_order_relaxed);
  if ((raised & actor_cell::finish_wanted) != 0) {
    clear_interrupt(c, actor_cell::finish_wanted);
    return {next_step::what::end, nullptr, s.end_reason};
  }
  if (s.held) return {};
  if ((raised & actor_cell::kill_wanted) != 0) {
    clear_interrupt(c, actor_cell::kill_wanted);
    c.flags.fetch_and(~task::stop_flag, std::memory_order_acq_rel);
    return {next_step::what::kill, nullptr, exit_reason{c.kill_kind, c.extras().now.kill_reason.exception()}};
  }
  message* m = c.urgent.pop();
  if (m == nullptr) {
    clear_interrupt(c, actor_cell::urgent_mail);
    m = c.batch.pop();
  } else {
    note_urgent_taken(c, *m, nullptr);
  }
  if (m == nullptr) {
    m = c.mail.first;
    if (m == nullptr) return {};
    c.mail.first = m->next;
    if ((c.status & actor_cell::bounded) == 0) {
      c.batch.first = c.mail.first;
      c.mail.first = nullptr;
    }
  }
  if ((c.status & actor_cell::bounded) != 0 && (m->flags & message::counted) == 0) c.make_room_by(*m);
  return {next_step::what::mail, m, {}};
}

/// True: go on.
bool step(actor_cell& c) noexcept {
  next_step next;
  if (c.interrupts.load(std::memory_order_acquire) == 0 && c.batch.first != nullptr)
    next = {next_step::what::mail, c.batch.pop(), {}};
  else next = next_of(c);
  switch (next.kind) {
    case next_step::what::nothing: return false;
    case next_step::what::kill: behind(c).kill(c, next.why); return true;
    case next_step::what::end: c.end(std::move(next.why)); return false;
    case next_step::what::mail: break;
  }
  message& m = *next.mail;
  if ((m.flags & (message::lifecycle | message::counted)) == 0) {
    c.handled.store(c.handled.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    m.flags |= message::counted;
  }
  if (behind(c).take(c, m)) return true;
  m.next = c.batch.first;
  c.batch.first = &m;
  return false;
}

}  // namespace

bool foreign_turn(task& t, stack* /*here*/) noexcept {
  auto& c = static_cast<actor_cell&>(t);
  if (is_draining()) foreign_shut_down(c);
  bool held = false;
  {
    const std::lock_guard guard{c.lock};
    held = state_of(c).held && (c.interrupts.load(std::memory_order_relaxed) & actor_cell::finish_wanted) == 0;
  }
  if (held) return false;
  for (std::uint32_t budget = actor_cell::burst; budget != 0 && step(c);) --budget;
  if ((c.status & actor_cell::closed) == 0) behind(c).turn_ends(c);
  return false;
}

void foreign_rest(task& t) noexcept {
  auto& c = static_cast<actor_cell&>(t);
  if ((c.status & actor_cell::ended) != 0) {
    strike_resident(c);
    c.release();
    return;
  }
  c.lock.lock();
  foreign_state& s = state_of(c);
  const std::uint8_t raised = c.interrupts.load(std::memory_order_relaxed);
  if (s.held && (raised & actor_cell::finish_wanted) == 0) {
    s.parked = true;
    c.lock.unlock();
    return;
  }
  const bool more = c.batch.first != nullptr || c.mail.first != nullptr || c.urgent.first != nullptr || raised != 0;
  if (!more) c.scheduled = false;
  c.lock.unlock();
  if (more) make_resident_ready(c);
}

void foreign_shut_down(task& t) noexcept { end_foreign(static_cast<actor_cell&>(t), exit_reason{exit_kind::shutdown}); }

void hold_foreign(actor_cell& c) noexcept {
  const std::lock_guard guard{c.lock};
  state_of(c).held = true;
}

void resume_foreign(actor_cell& c) noexcept {
  const std::lock_guard guard{c.lock};
  if ((c.status & actor_cell::closed) != 0) return;
  foreign_state& s = state_of(c);
  s.held = false;
  if (std::exchange(s.parked, false)) make_resident_ready(c);
}

void end_foreign(actor_cell& c, const exit_reason& why) noexcept {
  const std::lock_guard guard{c.lock};
  if ((c.status & actor_cell::closed) != 0) return;
  const std::uint8_t raised = c.interrupts.load(std::memory_order_relaxed);
  if ((raised & actor_cell::finish_wanted) != 0) return;
  foreign_state& s = state_of(c);
  s.end_reason = why;
  c.interrupts.store(raised | actor_cell::finish_wanted, std::memory_order_release);
  call(c, s);
}

bool is_forgotten(const actor_cell& c) noexcept { return c.references.load(std::memory_order_acquire) == 2; }

actor_cell* make_answering_cell() {
  constexpr std::size_t size = sizeof(actor_cell);
  actor_cell* c = allocate_cell(foreign_type<void>, size, task_cache::list_of(size));
  try {
    c->extras();
  } catch (...) {
    c->release();
    c->release();
    throw;
  }
  return c;
}

void answer_foreign(actor_cell& with, message& m, std::shared_ptr<behaviour> becoming) noexcept {
  actor_extras& x = *with.more.load(std::memory_order_acquire);
  x.now.becoming = std::move(becoming);
  m.flags &= static_cast<std::uint8_t>(~message::kept);
  try {
    m.act(m, message_verb::handle, &with);
  } catch (...) {
    discarded context{&with, letter_fate::failed, std::current_exception()};
    if ((m.flags & message::request) != 0) m.act(m, message_verb::fail, &context);
  }
  x.now.becoming.reset();
  free_message(&m);
}

void discard_foreign(actor_cell& with, message& m, letter_fate fate, const exit_reason& why) noexcept {
  with.more.load(std::memory_order_acquire)->last = why;
  discarded context{&with, fate};
  m.act(m, message_verb::discard, &context);
  free_message(&m);
}

std::optional<exit_reason> stop_in(actor_cell& c, message& m) noexcept {
  if (!is_stop(m)) return std::nullopt;
  exit_reason& given = c.more.load(std::memory_order_acquire)->now.stop_reason;
  given = {};
  heed_stop(c, m);
  c.ending = false;
  return std::exchange(given, {});
}

void exit_from_elsewhere(actor_cell& c, const any_actor& who, const exit_reason& why, bool linked) {
  if (const message_function act = c.how().exit_act; act != nullptr)
    c.post_lifecycle(make_message<body_node<exit_signal>>(act, message::lifecycle, exit_signal{who, why}));
  else if (!why.normal()) c.kill(linked ? exit_reason{exit_kind::linked, why.exception()} : why);
}

std::size_t capacity_of(const actor_cell& c) noexcept {
  const actor_extras* x = c.more.load(std::memory_order_acquire);
  return c.blocks_senders() ? x->capacity : 0;
}

void note_deadline(actor_cell& c, const message& m, steady::time_point deadline) noexcept {
  const auto now = os_now();
  const std::lock_guard guard{c.lock};
  if ((c.status & actor_cell::closed) != 0) return;
  auto& all = state_of(c).deadlines;
  std::erase_if(all, [&](const auto& d) { return d.first == &m || d.second < now; });
  try {
    all.emplace_back(&m, deadline);
  } catch (const std::bad_alloc&) {
    // The asker alone knows it, then, and a late request is begun.
  }
}

std::optional<steady::time_point> deadline_of_request(actor_cell& c, const message& m) noexcept {
  const std::lock_guard guard{c.lock};
  auto& all = state_of(c).deadlines;
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& d) { return d.first == &m; });
  if (found == all.end()) return std::nullopt;
  const auto deadline = found->second;
  *found = all.back();
  all.pop_back();
  return deadline;
}

void act_on_foreign_exit(message& self, message_verb verb, void* context) {
  auto& node = static_cast<body_node<exit_signal>&>(self);
  if (verb == message_verb::discard) std::destroy_at(&node.body);
  else if (verb == message_verb::type) *static_cast<const type_info**>(context) = &type_of<exit_signal>();
}

void destroy_foreign(actor_cell& c) noexcept {
  foreign_state& s = state_of(c);
  s.behind->ends(s.end_reason);
  std::destroy_at(&s);
}

actor_cell* start_foreign(const actor_type& type, std::unique_ptr<foreign_actor> behind, const actor_options& options) {
  constexpr std::size_t size = offset_of_state<foreign_state> + sizeof(foreign_state);
  actor_cell* c = allocate_cell(type, size, task_cache::list_of(size));
  try {
    prepare_cell(*c, &options);
    c->extras();
    ::new (c->state()) foreign_state{std::move(behind), {}, false, false, {}};
  } catch (...) {
    abandon_cell(*c);
    throw;
  }
  try {
    enlist_cell(*c);
  } catch (...) {
    destroy_foreign(*c);
    abandon_cell(*c);
    throw;
  }
  return c;
}

}  // namespace ramie::detail
