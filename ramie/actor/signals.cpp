// Who hears of an actor's end, and the messages that an actor puts aside.
#include <ramie/actor/actor.hpp>

#include <ramie/actor/extras.hpp>
#include <ramie/base/error.hpp>

#include <algorithm>
#include <mutex>

namespace ramie::detail {

namespace {

/// Adds an entry to `target`; false if it has ended.
bool add_watch(actor_cell& target, const watch& w) {
  actor_extras& x = target.extras();
  std::lock_guard guard{target.lock};
  if ((target.status & actor_cell::closed) != 0) return false;
  x.watchers.push_back(w);
  w.other->add_reference();
  return true;
}

template <class Unwanted>
void remove_watches(actor_cell& c, Unwanted unwanted) noexcept {
  actor_extras* x = c.more.load(std::memory_order_acquire);
  if (x == nullptr) return;
  std::vector<watch> removed;
  {
    std::lock_guard guard{c.lock};
    const auto middle =
        std::partition(x->watchers.begin(), x->watchers.end(), [&](const watch& w) { return !unwanted(w); });
    try {
      removed.assign(middle, x->watchers.end());
    } catch (...) {
      return;  // no memory: they stay, which costs a needless note later
    }
    x->watchers.erase(middle, x->watchers.end());
  }
  for (const watch& w : removed) {
    if (w.note != nullptr) {
      discarded context{&c, letter_fate::down};
      w.note->act(*w.note, message_verb::discard, &context);
      free_message(w.note);
    }
    w.other->release();
  }
}

}  // namespace

void send_note(actor_cell& to, message* note, actor_cell& gone, const exit_reason& why) noexcept {
  static_cast<body_node<down>*>(note)->body = down{any_actor{gone}, why};
  to.post_lifecycle(note);
}

void spread_exit(actor_cell& c, actor_cell& gone, const exit_reason& why) noexcept {
  drop_link(c, gone);
  if (const message_function act = c.how().exit_act; act != nullptr) {
    try {
      c.post_lifecycle(
          make_message<body_node<exit_signal>>(act, message::lifecycle, exit_signal{any_actor{gone}, why}));
      return;
    } catch (const std::bad_alloc&) {
      // Without memory for the note the link does what it does without a handler.
    }
  }
  if (!why.normal()) c.kill(exit_reason{exit_kind::linked, why.exception()});
}

void drop_link(actor_cell& c, const actor_cell& gone) noexcept {
  remove_watches(c, [&](const watch& w) { return w.other == &gone && w.note == nullptr; });
}

void monitor_actor(actor_cell& watcher, actor_cell& target, message_function note_act) {
  message* note = make_message<body_node<down>>(note_act, message::lifecycle, down{});
  bool added = false;
  try {
    added = add_watch(target, {&watcher, note});
  } catch (...) {
    std::destroy_at(&static_cast<body_node<down>*>(note)->body);
    free_message(note);
    throw;
  }
  if (!added) send_note(watcher, note, target, target.reason());
}

void unmonitor_actor(actor_cell& watcher, actor_cell& target) noexcept {
  remove_watches(target, [&](const watch& w) { return w.other == &watcher && w.note != nullptr; });
}

void link_actors(actor_cell& self, actor_cell& other) {
  if (&self == &other) return;
  // Its own side first: if the other ends in between, what it finds there is complete.
  add_watch(self, {&other, nullptr});
  bool added = false;
  try {
    added = add_watch(other, {&self, nullptr});
  } catch (...) {
    drop_link(self, other);
    throw;
  }
  if (!added) spread_exit(self, other, other.reason());
}

void unlink_actors(actor_cell& self, actor_cell& other) noexcept {
  drop_link(self, other);
  drop_link(other, self);
}

message& current_message(actor_cell& c) {
  if (c.handling == nullptr || (c.handling->flags & message::kept) != 0)
    throw usage_error{"ramie: stash: no message is being handled, or it is stashed already"};
  return *c.handling;
}

void stash_current(actor_cell& c) {
  message& m = current_message(c);
  actor_extras& x = c.extras();
  m.flags |= message::kept;
  x.stash.push(&m);
}

void unstash(actor_cell& c) noexcept {
  actor_extras* x = c.more.load(std::memory_order_acquire);
  if (x == nullptr) return;
  c.batch.prepend(x->stash);
}

}  // namespace ramie::detail
