// Finds circles: fibers and actors of which each waits for the next, and the last for the first. What a wait is for is
// known for these kinds:
//   mutex      its holder                                (owned_wait_site)
//   ask        the stack on which the actor handles mail (asking_wait_site); not if the answer may come from elsewhere
//   join       the fiber that is joined: its `completion` has the waiter, so here the edge is found at its end
//   fork_join  likewise: the job, which runs on another stack, has the waiter
//   scope      all of its children that are fibers of their own (scope_wait_site, scope_place)
// Nothing is recorded for this when a fiber waits, except that an `ask` records the actor.
//
// The monitor looks, about once a second and never for more than half a per cent of the time:
//  C1 It holds each parked fiber (wait_word.hpp) for a moment, and notes the edge from it, or to it if it is joined. A
//     fiber that waits for a scope has an edge to each child, and any circle through one of them is a deadlock.
//  C2 The edges were seen at different moments, so a circle of them may never have been. All fibers on it are held at
//     once, and each edge is looked at again. If all of them stand, none of these fibers can have run between the first
//     of those looks and the last: the circle is there, and only a deadline or a cancellation can end it.
//  C3 All are let go, and then described, as a dump would.
//
// Safety. try_hold_parked does not wait, so C2, which holds several, cannot wait for another holder, nor another for it
// longer than a waker waits for any inspector. While a fiber is held its stack stands still: its wait's site may be
// read, and so may the mutex that it waits for and the actor that it asks, since they outlive the wait. A joined fiber
// is parked and held itself when its `completion` is read, and so is the stack that runs a job, whose frame outlives
// it. Descriptors of stacks are never unmapped. The holder of a mutex is the stack that locked it: a fiber that ended
// while it held a mutex may be mistaken for the next one on its stack.
#include <ramie/inspect/circles.hpp>

#include <ramie/base/atomic.hpp>
#include <ramie/base/notice.hpp>
#include <ramie/inspect/describe.hpp>
#include <ramie/inspect/library_code.hpp>
#include <ramie/sched/scheduler.hpp>
#include <ramie/task/fork_frame.hpp>
#include <ramie/task/task.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string_view>
#include <vector>

namespace ramie::detail {

namespace {

// Guesses. With more waits than that nothing is looked for: it would take too long.
constexpr std::size_t edges_most = 65'536;
constexpr std::size_t circle_most = 16;

struct edge {
  stack* from;
  stack* to;
  std::uint32_t word;  // of `from`
};

/// The fiber that the one on `s` waits for; null if that is not known from its side. `s` is held, and no plain
/// thread's.
stack* awaited_by(const stack& s) noexcept {
  const wait_site& site = *wait::facts(*s.waiting).site;
  if (site.reason == mutex_reason) {
    const void* holder = static_cast<const owned_wait_site&>(site).owner->load(std::memory_order_acquire);
    const bool is_fiber = (reinterpret_cast<std::uintptr_t>(holder) & 1) == 0;
    return is_fiber ? static_cast<stack*>(const_cast<void*>(holder)) : nullptr;
  }
  if (site.reason == ask_reason) {
    const task* asked = static_cast<const asking_wait_site&>(site).asked;
    if (asked == nullptr) return nullptr;
    stack* at = asked->where.load(std::memory_order_acquire);
    return at != nullptr && at->occupant.load(std::memory_order_acquire) == asked ? at : nullptr;
  }
  return nullptr;
}

/// The fiber that joins the one on `s`, which is held. Empty if there is none.
waiter_ref joiner_of(const stack& s) noexcept {
  const auto* t = static_cast<const task*>(s.occupant.load(std::memory_order_acquire));
  if (t == nullptr) return {};
  const std::uint32_t flags = t->flags.load(std::memory_order_relaxed);
  if ((flags & task::child_flag) != 0) return {};  // see scope_joined_by
  if ((flags & task::strand_flag) != 0) {
    const auto& strand = *static_cast<const strand_task*>(t);
    const std::uint64_t seen = strand.frame->state.load_acquire();
    return seen == strand.run ? waiter_ref{} : waiter_ref::from_bits(seen);
  }
  if (t->type == nullptr || t->type->kind != task_kind::fiber) return {};
  const std::uint64_t seen = t->completion.load(std::memory_order_acquire);
  return (seen & ~std::uint64_t{task::detached | task::done}) == 0 ? waiter_ref{} : waiter_ref::from_bits(seen);
}

/// The scope whose fibers the one on `s` waits for, and the one that it is a fiber of. Null: none. `s` is held.
const void* scope_joined_by(const stack& s) noexcept {
  const wait_site& site = *wait::facts(*s.waiting).site;
  return site.reason == scope_reason ? static_cast<const scope_wait_site&>(site).scope : nullptr;
}
const void* scope_of(const stack& s) noexcept {
  const auto* t = static_cast<const task*>(s.occupant.load(std::memory_order_acquire));
  return t != nullptr && (t->flags.load(std::memory_order_relaxed) & task::child_flag) != 0
             ? scope_place_of(*t).of_scope
             : nullptr;
}

/// C2: does the edge stand? Both ends are held, with these words.
bool stands(const edge& e) noexcept {
  if (awaited_by(*e.from) == e.to) return true;
  if (const void* joined = scope_joined_by(*e.from); joined != nullptr) return scope_of(*e.to) == joined;
  const waiter_ref joiner = joiner_of(*e.to);
  return joiner && joiner.who() == e.from && joiner.epoch() == wait_word::epoch_of(e.word);
}

class search {
 public:
  /// C1. Throws std::bad_alloc.
  void collect(std::int64_t begun_before_ns) {
    begun_before_ns_ = begun_before_ns;
    edges_.reserve(256);
    for_each_stack([](void* self, stack& s) { static_cast<search*>(self)->look_at(s); }, this);
    const auto by_scope = [](const member& a, const member& b) { return a.scope < b.scope; };
    std::sort(owners_.begin(), owners_.end(), by_scope);
    for (const member& child : children_)
      if (const auto at = std::lower_bound(owners_.begin(), owners_.end(), child, by_scope);
          at != owners_.end() && at->scope == child.scope)
        add(edges_, {at->who, child.who, at->word});
    if (incomplete_) edges_.clear();
    std::sort(edges_.begin(), edges_.end(), [](const edge& a, const edge& b) { return a.from < b.from; });
  }

  /// Calls visit(edges, n) for circles that stand: at most once for each fiber at which a walk closes one. Of circles
  /// that share fibers some may be passed over, as that of an owner with the second of its children. Throws
  /// std::bad_alloc.
  template <class Visit>
  void for_each_circle(Visit visit) {
    enum state : char { fresh, on_path, left };
    std::vector<state> states(edges_.size(), fresh);  // of a stack, at the first edge from it
    std::vector<bool> told(edges_.size());            // likewise
    std::vector<std::size_t> path;                    // the edges along which the walk has come
    for (std::size_t start = 0; start < edges_.size(); ++start) {
      if (states[from(edges_[start].from)] != fresh) continue;
      states[start] = on_path;
      path.push_back(start);
      while (!path.empty()) {
        const std::size_t next = from(edges_[path.back()].to);
        if (next < edges_.size() && states[next] == fresh) {
          states[next] = on_path;
          path.push_back(next);
          continue;
        }
        if (next < edges_.size() && states[next] == on_path && !told[next]) told[next] = check(path, visit);
        while (!path.empty() && !take_next_edge(path.back())) {
          states[from(edges_[path.back()].from)] = left;
          path.pop_back();
        }
      }
    }
  }

 private:
  struct member {
    const void* scope;
    stack* who;
    std::uint32_t word;
  };

  template <class T>
  void add(std::vector<T>& to, const T& one) noexcept {
    try {
      if (to.size() < edges_most) to.push_back(one);
      else incomplete_ = true;
    } catch (const std::bad_alloc&) {
      incomplete_ = true;
    }
  }

  /// The end of the path leads back to a stack on it. True if that circle stands.
  template <class Visit>
  bool check(const std::vector<std::size_t>& path, Visit visit) {
    const stack* const first = edges_[path.back()].to;
    std::size_t n = 1;
    while (edges_[path[path.size() - n]].from != first)
      if (++n > circle_most) return false;
    edge circle[circle_most];
    for (std::size_t i = 0; i < n; ++i) circle[i] = edges_[path[path.size() - n + i]];
    if (!hold_and_check(circle, n)) return false;
    visit(circle, n);
    return true;
  }

  /// False if it is the last edge from its stack.
  [[nodiscard]] bool take_next_edge(std::size_t& at) const noexcept {
    if (at + 1 == edges_.size() || edges_[at + 1].from != edges_[at].from) return false;
    ++at;
    return true;
  }

  void look_at(stack& s) noexcept {
    const std::uint32_t word = try_hold_parked(during_, s);
    if (word == 0) return;
    stack* to = nullptr;
    waiter_ref joiner;
    const void* joined = nullptr;
    const void* of = nullptr;
    if (s.occupant.load(std::memory_order_acquire) != nullptr) {
      const std::int64_t since_ns = wait::facts(*s.waiting).since_ns;
      if (since_ns != 0 && since_ns < begun_before_ns_) {
        to = awaited_by(s);
        joiner = joiner_of(s);
        joined = scope_joined_by(s);
        of = scope_of(s);
      }
    }
    let_stand(s, word);
    if (to != nullptr) add(edges_, {&s, to, word});
    if (joined != nullptr) add(owners_, {joined, &s, word});
    if (of != nullptr) add(children_, {of, &s, word});
    if (!joiner) return;
    // Its word, with everything but the epoch as C2 will find it if it waits then.
    stack& who = *joiner.who();
    const std::uint32_t joining = who.wait_word.load(std::memory_order_acquire);
    if (who.top != nullptr && wait_word::epoch_of(joining) == joiner.epoch()) add(edges_, {&who, &s, joining});
  }

  /// The place of the first edge from `s`; edges_.size() if there is none.
  [[nodiscard]] std::size_t from(const stack* s) const noexcept {
    const auto at =
        std::lower_bound(edges_.begin(), edges_.end(), s, [](const edge& e, const stack* key) { return e.from < key; });
    return at == edges_.end() || at->from != s ? edges_.size() : static_cast<std::size_t>(at - edges_.begin());
  }

  bool hold_and_check(const edge* circle, std::size_t n) noexcept {
    if (RAMIE_PLANT(circles_unchecked)) return true;
    std::uint32_t words[circle_most];
    std::size_t held = 0;
    bool stands_still = true;
    while (stands_still && held < n) {
      const edge& e = circle[held];
      const std::uint32_t word = try_hold_parked(during_, *e.from);
      if (word != 0) words[held++] = word;
      stands_still = word != 0 && wait_word::epoch_of(word) == wait_word::epoch_of(e.word);
    }
    for (std::size_t i = 0; stands_still && i < n && !RAMIE_PLANT(circles_of_old_edges); ++i)
      stands_still = stands(circle[i]);
    while (held != 0) {
      --held;
      let_stand(*circle[held].from, words[held]);
    }
    return stands_still;
  }

  inspection during_;
  std::int64_t begun_before_ns_ = 0;
  std::vector<edge> edges_;
  std::vector<member> owners_;    // of scopes, that wait for them
  std::vector<member> children_;  // of scopes, that wait for something
  bool incomplete_ = false;       // too many, or no memory
};

const char* relation(const fiber_facts& f) noexcept {
  if (f.reason == mutex_reason) return ", which the next holds";
  if (f.reason == scope_reason) return ", of which the next is a child";
  if (std::string_view{f.reason} == "fork_join") return ", of which the next is a branch";
  return " of the next";
}

/// The same for the same place in the program. If the wait is in a library, its calls are the place.
std::uintptr_t place_of(const fiber_facts& f) noexcept {
  std::uintptr_t place = reinterpret_cast<std::uintptr_t>(f.file) + (std::uintptr_t{f.line} << 48);
  if (f.line == 0 || is_of_library(f.file))
    for (std::size_t i = 0; i < f.frames; ++i) place = place * 31 + f.pcs[i];
  return place;
}

/// C3.
void describe(const edge* circle, std::size_t n, const scheduler& of) {
  std::vector<fiber_facts> facts(n);
  std::uintptr_t key = 0;
  {
    const inspection during;
    for (std::size_t i = 0; i < n; ++i) {
      if (!look_at_stack(during, *circle[i].from, false, facts[i].pcs.size(), facts[i])) return;
      key += place_of(facts[i]);
    }
  }
  if (!may_notice(key | 1)) return;
  text_writer out{STDERR_FILENO, 16'384, notice_seconds_most};
  out << "ramie: notice: in runtime ";
  out.quoted(of.options().name.c_str()) << ", " << std::uint64_t{n}
                                        << " fibers or actors wait for each other in a circle:\n";
  for (const fiber_facts& f : facts) {
    out << "  ";
    write_title(out, f.who);
    out << ": " << f.reason << relation(f);
    write_place(out, f);
    out << "\n";
  }
}

}  // namespace

std::size_t count_circles(std::int64_t begun_before_ns) {
  search all;
  all.collect(begun_before_ns);
  std::size_t n = 0;
  all.for_each_circle([&](const edge*, std::size_t) { ++n; });
  return n;
}

void tell_of_circles(scheduler& of) noexcept try {
  if (!notices_are_on()) return;
  search all;
  all.collect(now_ns() - circles_every_ns);
  all.for_each_circle([&](const edge* circle, std::size_t n) { describe(circle, n, of); });
} catch (const std::bad_alloc&) {
  // Next time.
}

}  // namespace ramie::detail
