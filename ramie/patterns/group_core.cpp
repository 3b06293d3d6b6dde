#include <ramie/patterns/group_core.hpp>

#include <ramie/actor/extras.hpp>

#include <mutex>
#include <new>

namespace ramie::detail {

/// Of a member or a watcher.
struct group_core::place : membership {
  row* in = nullptr;
  place* newer = nullptr;
  place* older = nullptr;
  any_actor actor;
  message_function act = nullptr;  // members: what they do with a message
  group_notes notes{};             // watchers: what they are told
  std::uint32_t incarnation = 0;
  monitor_ref ref{};

  explicit place(const any_actor& a) noexcept : actor{a} {}
};

group_core::group_core() = default;
group_core::~group_core() = default;

group_core* group_core::make() { return new group_core; }

void group_core::let_go() noexcept {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

bool group_core::add(row& to, std::unique_ptr<place> fresh) {
  actor_cell& c = *fresh->actor.cell();
  place& p = *fresh;
  p.in = &to;
  to.by_actor.emplace(&c, std::move(fresh));
  if (!enlist(p, c)) {
    to.by_actor.erase(&c);
    return false;
  }
  p.older = to.last;
  (to.last == nullptr ? to.first : to.last->newer) = &p;
  to.last = &p;
  keep();
  return true;
}

/// `c` is in the row, and its place not in its actor's list any more.
std::unique_ptr<group_core::place> group_core::take_out(row& from, const actor_cell& c) noexcept {
  const auto found = from.by_actor.find(&c);
  std::unique_ptr<place> p = std::move(found->second);
  from.by_actor.erase(found);
  (p->older == nullptr ? from.first : p->older->newer) = p->newer;
  (p->newer == nullptr ? from.last : p->newer->older) = p->older;
  return p;
}

std::unique_ptr<group_core::place> group_core::take(row& from, actor_cell& c) noexcept {
  const auto found = from.by_actor.find(&c);
  if (found == from.by_actor.end()) return nullptr;
  strike(*found->second);
  return take_out(from, c);
}

std::vector<group_member> group_core::list() const {
  std::vector<group_member> all;
  all.reserve(members_.by_actor.size());
  for (const place* p = members_.first; p != nullptr; p = p->newer) all.push_back({p->actor, p->act});
  return all;
}

void group_core::tell_joined(const any_actor& who) {
  message_queue notes;
  try {
    for (const place* w = watchers_.first; w != nullptr; w = w->newer) notes.push(w->notes.joined(who, w->ref));
  } catch (...) {
    watchers_.first->actor.cell()->discard_all(notes.take_all(), letter_fate::down);
    throw;
  }
  for (const place* w = watchers_.first; w != nullptr; w = w->newer)
    w->actor.cell()->post_note(notes.pop(), w->incarnation);
}

void group_core::tell_left(const any_actor& who) noexcept {
  for (const place* w = watchers_.first; w != nullptr; w = w->newer) {
    try {
      w->actor.cell()->post_note(w->notes.left(who, w->ref), w->incarnation);
    } catch (const std::bad_alloc&) {
      // It is left out.
    }
  }
}

bool group_core::join(const any_actor& who, message_function act) {
  auto fresh = std::make_unique<place>(who);
  fresh->act = act;
  snapshot old;
  const std::lock_guard guard{lock_};
  if (members_.by_actor.contains(who.cell()) || !add(members_, std::move(fresh))) return false;
  old.swap(seen_);
  try {
    tell_joined(who);
  } catch (...) {
    take(members_, *who.cell());
    references_.fetch_sub(1, std::memory_order_relaxed);  // the group has one
    throw;
  }
  return true;
}

bool group_core::leave(actor_cell& c) noexcept {
  std::unique_ptr<place> p;
  snapshot old;
  {
    const std::lock_guard guard{lock_};
    p = take(members_, c);
    if (p == nullptr) return false;
    old.swap(seen_);
    tell_left(p->actor);
  }
  let_go();
  return true;
}

bool group_core::contains(actor_cell& c) const noexcept {
  const std::lock_guard guard{lock_};
  return members_.by_actor.contains(&c);
}

std::size_t group_core::size() const noexcept {
  const std::lock_guard guard{lock_};
  return members_.by_actor.size();
}

std::shared_ptr<const std::vector<group_member>> group_core::members() {
  const std::lock_guard guard{lock_};
  if (seen_ == nullptr) seen_ = std::make_shared<const std::vector<group_member>>(list());
  return seen_;
}

monitor_ref group_core::monitor(const any_actor& watcher, const group_notes& notes,
                                std::vector<group_member>& members) {
  actor_cell& c = *watcher.cell();
  actor_extras& x = c.extras();
  auto fresh = std::make_unique<place>(watcher);
  const std::lock_guard guard{lock_};
  members = list();
  place* p = fresh.get();
  if (const auto found = watchers_.by_actor.find(&c); found != watchers_.by_actor.end()) p = found->second.get();
  else if (!add(watchers_, std::move(fresh))) return {};
  const std::lock_guard of_actor{c.lock};
  p->notes = notes;
  p->incarnation = x.now.number;
  p->ref.number = ++x.monitored;
  return p->ref;
}

bool group_core::unmonitor(actor_cell& c) noexcept {
  std::unique_ptr<place> p;
  {
    const std::lock_guard guard{lock_};
    p = take(watchers_, c);
  }
  if (p == nullptr) return false;
  let_go();
  return true;
}

void group_core::forget_one(actor_cell& c) noexcept {
  std::unique_ptr<place> p;
  snapshot old;
  {
    const std::lock_guard guard{lock_};
    auto* const m = static_cast<place*>(strike_any(c));
    if (m == nullptr) return;
    p = take_out(*m->in, c);
    if (p->in == &members_) {
      old.swap(seen_);
      tell_left(p->actor);
    }
  }
  let_go();
}

void group_core::close() noexcept {
  for (row* r : {&watchers_, &members_}) {
    for (;;) {
      std::unique_ptr<place> p;
      {
        const std::lock_guard guard{lock_};
        if (r->first == nullptr) break;
        p = take(*r, *r->first->actor.cell());
      }
      let_go();
    }
  }
}

}  // namespace ramie::detail
