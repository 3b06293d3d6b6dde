// Links and monitors, by which actors hear of each other's end, and the messages that an actor puts aside.
//
// A tie is put into the lists of both sides at once, under both locks, that of the lower address first; so there is no
// moment at which one side knows of it and the other does not, and two that link each other at the same time make one
// link. It is ended as incarnation.cpp says (I6, I7).
#include <ramie/actor/actor.hpp>

#include <ramie/actor/extras.hpp>
#include <ramie/base/error.hpp>

#include <mutex>

namespace ramie::detail {

namespace {

/// Both locks.
class both_locked {
 public:
  both_locked(actor_cell& a, actor_cell& b) noexcept : low_{&a < &b ? a : b}, high_{&a < &b ? b : a} {
    low_.lock.lock();
    if (&low_ != &high_) high_.lock.lock();
  }
  both_locked(const both_locked&) = delete;
  both_locked& operator=(const both_locked&) = delete;
  ~both_locked() {
    if (&low_ != &high_) high_.lock.unlock();
    low_.lock.unlock();
  }

 private:
  actor_cell& low_;
  actor_cell& high_;
};

/// The list of side `i` that a tie belongs to.
tie_list& list_of(const tie& t, int i) noexcept {
  actor_extras& x = *t.side[i]->more.load(std::memory_order_relaxed);
  return i == 1 && t.kind == tie_kind::monitor ? x.monitors : x.now.ties;
}

tie* make_tie(tie_kind kind, actor_cell& a, actor_cell& b) {
  auto* t = new tie{.kind = kind, .side = {&a, &b}};
  a.add_reference();
  b.add_reference();
  t->hook[0].of = t->hook[1].of = t;
  return t;
}

/// Under both locks.
void add(tie& t) noexcept {
  for (int i = 0; i < 2; ++i) {
    t.incarnation[i] = t.side[i]->more.load(std::memory_order_relaxed)->now.number;
    list_of(t, i).push_back(t.hook[i]);
  }
}

/// A message that nobody will get.
void drop(message* m, actor_cell& of) noexcept {
  discarded context{&of, letter_fate::down};
  m->act(*m, message_verb::discard, &context);
  free_message(m);
}

/// Takes the tie out of the list of side `i`, unless somebody did before.
void leave(tie& t, int i) noexcept {
  bool removed;
  {
    std::lock_guard guard{t.side[i]->lock};
    removed = list_of(t, i).remove(t.hook[i]);
  }
  if (removed) t.release();
}

/// I6: true for one alone. It orders nothing: what the winner uses was written before the tie was put into the lists,
/// whose locks hand it over.
bool claim_tie(tie& t) noexcept {
  return !t.over.exchange(true, std::memory_order_relaxed) || RAMIE_PLANT(tie_told_twice);
}

void send_exit(actor_cell& c, std::uint32_t incarnation, actor_cell& gone, const exit_reason& why) noexcept {
  if (const message_function act = c.how().exit_act; act != nullptr) {
    try {
      c.post_note(make_message<body_node<exit_signal>>(act, message::lifecycle | message::own,
                                                       exit_signal{any_actor{gone}, why}),
                  incarnation);
      return;
    } catch (const std::bad_alloc&) {
      // Without memory for the note the link does what it does without a handler.
    }
  }
  if (!why.normal() || RAMIE_PLANT(links_spread_normal_ends))
    c.kill_incarnation(exit_reason{exit_kind::linked, why.exception()}, incarnation);
}

void send_note(actor_cell& to, std::uint32_t incarnation, message* note, actor_cell& gone,
               const exit_reason& why) noexcept {
  auto& body = static_cast<body_node<down>*>(note)->body;
  body = down{any_actor{gone}, why, body.ref};
  to.post_note(note, incarnation);
}

/// The reason of the latest end. Under the lock.
exit_reason last_reason(const actor_cell& c) noexcept {
  const actor_extras* x = c.more.load(std::memory_order_relaxed);
  return exit_reason{c.last_exit, x == nullptr ? nullptr : x->last.exception()};
}

/// The first tie of `c` to `other` that `wanted` accepts, under the lock; from the list of its own incarnation.
template <class Wanted>
tie* find_tie(actor_cell& c, Wanted wanted) noexcept {
  actor_extras* x = c.more.load(std::memory_order_relaxed);
  if (x == nullptr) return nullptr;
  for (tie_hook* h = x->now.ties.front(); h != nullptr; h = h->next)
    if (wanted(*h->of)) return h->of;
  return nullptr;
}

bool links(const tie& t, const actor_cell& a, const actor_cell& b) noexcept {
  if (t.kind != tie_kind::link) return false;
  if (t.side[0] == &a && t.side[1] == &b) return true;
  return t.side[0] == &b && t.side[1] == &a && !RAMIE_PLANT(links_have_a_direction);
}

/// Claims and removes all ties that `wanted` accepts from the list of `c` and from the other sides'.
template <class Wanted>
void take_back(actor_cell& c, Wanted wanted) noexcept {
  for (;;) {
    tie* t = nullptr;
    int mine = 0;
    {
      std::lock_guard guard{c.lock};
      t = find_tie(c, wanted);
      if (t == nullptr) return;
      mine = t->side[0] == &c ? 0 : 1;
      list_of(*t, mine).remove(t->hook[mine]);
    }
    if (claim_tie(*t)) {
      if (t->note != nullptr) drop(std::exchange(t->note, nullptr), c);
      leave(*t, 1 - mine);
    }
    t->release();
  }
}

}  // namespace

void tie::release() noexcept {
  if (references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  side[0]->release();
  side[1]->release();
  delete this;
}

bool end_ties(actor_cell& c, tie_hook* first, const exit_reason& why) noexcept {
  bool anybody = false;
  while (first != nullptr) {
    tie& t = *first->of;
    const int mine = first == &t.hook[0] ? 0 : 1;
    tie_hook* const behind = first->next;
    if (claim_tie(t)) {
      actor_cell& other = *t.side[1 - mine];
      const std::uint32_t incarnation = t.incarnation[1 - mine];
      if (t.kind == tie_kind::link) {
        anybody = true;
        send_exit(other, incarnation, c, why);
      } else if (mine == 1) {
        anybody = true;
        send_note(other, incarnation, std::exchange(t.note, nullptr), c, why);
      } else {
        drop(std::exchange(t.note, nullptr), c);
      }
      leave(t, 1 - mine);
    }
    t.release();
    first = behind;
  }
  return anybody;
}

bool is_stale(actor_cell& c, const message& m) noexcept {
  if ((m.flags & message::own) == 0) return false;
  const actor_extras* x = c.more.load(std::memory_order_acquire);
  return (x == nullptr ? 0 : x->now.number) != m.incarnation && !RAMIE_PLANT(notes_outlive_incarnations);
}

monitor_ref monitor_actor(actor_cell& watcher, actor_cell& target, message_function note_act, bool incarnation) {
  message* note = make_message<body_node<down>>(note_act, message::lifecycle | message::own, down{});
  tie* t = nullptr;
  try {
    watcher.extras();
    target.extras();
    t = make_tie(incarnation ? tie_kind::watch : tie_kind::monitor, watcher, target);
  } catch (...) {
    drop(note, watcher);
    throw;
  }
  t->note = note;
  exit_reason why;
  bool added = false;
  monitor_ref ref;
  {
    both_locked guard{watcher, target};
    ref.number = t->number = ++watcher.more.load(std::memory_order_relaxed)->monitored;
    static_cast<body_node<down>*>(note)->body.ref = ref;
    added = (target.status & actor_cell::gone) == 0 || (!incarnation && (target.status & actor_cell::closed) == 0);
    // A watcher that has no incarnation any more is in its own destructor's wake: nobody is to be told.
    added = added && (watcher.status & actor_cell::gone) == 0;
    if (added) add(*t);
    else why = last_reason(target);
  }
  if (added) return ref;
  const std::uint32_t mine = watcher.more.load(std::memory_order_relaxed)->now.number;
  send_note(watcher, mine, std::exchange(t->note, nullptr), target, why);
  t->references.store(1, std::memory_order_relaxed);
  t->release();
  return ref;
}

void unmonitor_actor(actor_cell& watcher, actor_cell& target) noexcept {
  take_back(watcher,
            [&](const tie& t) { return t.kind != tie_kind::link && t.side[0] == &watcher && t.side[1] == &target; });
}

void unmonitor_actor(actor_cell& watcher, monitor_ref which, message_function note_act) noexcept {
  take_back(watcher, [&](const tie& t) {
    return t.kind != tie_kind::link && t.side[0] == &watcher && t.number == which.number;
  });
  // Or it has been told, and not been handled yet.
  const auto take_note = [&](message_queue& q) noexcept -> message* {
    for (message* m = q.first; m != nullptr; m = m->next) {
      if (m->act != note_act || static_cast<body_node<down>*>(m)->body.ref != which) continue;
      q.remove(m);
      return m;
    }
    return nullptr;
  };
  std::unique_lock guard{watcher.lock};
  message* note = take_note(watcher.batch);
  if (note == nullptr) note = take_note(watcher.mail);
  guard.unlock();
  if (note != nullptr) drop(note, watcher);
}

void link_actors(actor_cell& self, actor_cell& other) {
  if (&self == &other) return;
  self.extras();
  other.extras();
  tie* t = make_tie(tie_kind::link, self, other);
  exit_reason why;
  bool added = false;
  bool known = false;
  {
    both_locked guard{self, other};
    if (((self.status | other.status) & actor_cell::gone) == 0) {
      const bool by_self = self.more.load(std::memory_order_relaxed)->now.ties.size() <=
                           other.more.load(std::memory_order_relaxed)->now.ties.size();
      const tie* before = find_tie(by_self ? self : other, [&](const tie& at) { return links(at, self, other); });
      known = before != nullptr;
      added = !known;
      if (added) add(*t);
    } else {
      why = last_reason(other);
      known = (other.status & actor_cell::gone) == 0;
    }
  }
  if (added) return;
  const std::uint32_t mine = self.more.load(std::memory_order_relaxed)->now.number;
  t->references.store(1, std::memory_order_relaxed);
  t->release();
  if (!known) send_exit(self, mine, other, why);
}

void unlink_actors(actor_cell& self, actor_cell& other) noexcept {
  take_back(self, [&](const tie& t) { return links(t, self, other); });
}

// ---- messages put aside --------------------------------------------------------------------------------------------

message& current_message(actor_cell& c) {
  if (c.handling == nullptr || (c.handling->flags & message::kept) != 0)
    throw usage_error{"ramie: stash: no message is being handled, or it is stashed already"};
  return *c.handling;
}

void stash_current(actor_cell& c) {
  message& m = current_message(c);
  actor_extras& x = c.extras();
  if (x.stash_capacity != 0 && x.now.stashed >= x.stash_capacity) throw stash_full{};
  ++x.now.stashed;
  m.flags |= message::kept;
  x.now.stash.push(&m);
}

void unstash(actor_cell& c) noexcept {
  actor_extras* x = c.more.load(std::memory_order_acquire);
  if (x == nullptr) return;
  x->now.stashed = 0;
  c.batch.prepend(x->now.stash);
}

}  // namespace ramie::detail
