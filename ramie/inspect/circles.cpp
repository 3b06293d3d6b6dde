// Finds circles: fibers and actors of which each waits for the next, and the last for the first. What a wait is for is
// known for three kinds:
//   mutex   its holder                                (owned_wait_site)
//   ask     the stack on which the actor handles mail (asking_wait_site); not if the answer may come from elsewhere
//   join    the fiber that is joined: its `completion` has the waiter, so here the edge is found at its end
// Nothing is recorded for this when a fiber waits, except that an `ask` notes whom it asks.
//
// The monitor looks, about once a second and never for more than half a per cent of the time:
//  C1 It holds each parked fiber (wait_word.hpp) for a moment, and notes the edge from it, or to it if it is joined. A
//     fiber waits for one thing at a time, so there is one edge from each, and a walk along them ends or runs in a circle.
//  C2 The edges were seen at different moments, so a circle of them may never have been. All fibers on it are held at
//     once, and each edge is looked at again. If all of them stand, none of these fibers can have run between the first
//     of those looks and the last: the circle is there, and only a deadline or a cancellation can end it.
//  C3 All are let go, and then described, as a dump would.
//
// Safety. try_hold_parked does not wait, so C2, which holds several, cannot wait for another holder, nor another for it
// longer than a waker waits for any inspector. While a fiber is held its stack stands still: its wait's site may be
// read, and so may the mutex that it waits for and the actor that it asks, since they outlive the wait. A joined fiber
// is parked and held itself when its `completion` is read. Descriptors of stacks are never unmapped. The holder of a
// mutex is the stack that locked it: a fiber that ended while it held a mutex may be mistaken for the next one on its
// stack.
#include <ramie/inspect/circles.hpp>

#include <ramie/base/atomic.hpp>
#include <ramie/base/notice.hpp>
#include <ramie/inspect/describe.hpp>
#include <ramie/inspect/library_code.hpp>
#include <ramie/sched/scheduler.hpp>
#include <ramie/stack/pool.hpp>
#include <ramie/task/task.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
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

/// For whom `s` waits, which is held; null if that is not known from its side. Not for a plain thread.
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

/// Who joins the fiber on `s`, which is held. Empty if there is nobody.
waiter_ref joiner_of(const stack& s) noexcept {
  const auto* t = static_cast<const task*>(s.occupant.load(std::memory_order_acquire));
  if (t == nullptr || (t->flags.load(std::memory_order_relaxed) & task::strand_flag) != 0 || t->type == nullptr ||
      t->type->kind != task_kind::fiber)
    return {};
  const std::uint64_t seen = t->completion.load(std::memory_order_acquire);
  return (seen & ~std::uint64_t{task::detached | task::done}) == 0 ? waiter_ref{} : waiter_ref::from_bits(seen);
}

/// C2: does the edge stand? Both ends are held, with these words.
bool stands(const edge& e) noexcept {
  if (awaited_by(*e.from) == e.to) return true;
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
    if (edges_.size() >= edges_most || no_memory_) edges_.clear();
    std::sort(edges_.begin(), edges_.end(), [](const edge& a, const edge& b) { return a.from < b.from; });
  }

  /// Calls visit(edges, n) for each circle that stands.
  template <class Visit>
  void for_each_circle(Visit visit) {
    std::vector<std::size_t> visited_in(edges_.size(), 0);
    for (std::size_t start = 0; start < edges_.size(); ++start) {
      std::size_t at = start;
      while (at < edges_.size() && visited_in[at] == 0) {
        visited_in[at] = start + 1;
        at = from(edges_[at].to);
      }
      if (at >= edges_.size() || visited_in[at] != start + 1) continue;
      edge circle[circle_most];
      std::size_t n = 0;
      for (std::size_t i = at; n < circle_most; i = from(edges_[i].to)) {
        circle[n++] = edges_[i];
        if (edges_[i].to == edges_[at].from) break;
      }
      if (circle[n - 1].to == circle[0].from && hold_and_check(circle, n)) visit(circle, n);
    }
  }

 private:
  void add(const edge& e) noexcept {
    if (edges_.size() >= edges_most) return;
    try {
      edges_.push_back(e);
    } catch (const std::bad_alloc&) {
      no_memory_ = true;
    }
  }

  void look_at(stack& s) noexcept {
    const std::uint32_t word = try_hold_parked(during_, s);
    if (word == 0) return;
    stack* to = nullptr;
    waiter_ref joiner;
    if (s.occupant.load(std::memory_order_acquire) != nullptr) {
      const std::int64_t since_ns = wait::facts(*s.waiting).since_ns;
      if (since_ns != 0 && since_ns < begun_before_ns_) {
        to = awaited_by(s);
        joiner = joiner_of(s);
      }
    }
    let_stand(s, word);
    if (to != nullptr) add({&s, to, word});
    if (!joiner) return;
    // Its word, with everything but the epoch as C2 will find it if it waits then.
    stack& who = *joiner.who();
    const std::uint32_t joining = who.wait_word.load(std::memory_order_acquire);
    if (who.top != nullptr && wait_word::epoch_of(joining) == joiner.epoch()) add({&who, &s, joining});
  }

  /// The place of the edge from `s`; edges_.size() if there is none.
  [[nodiscard]] std::size_t from(const stack* s) const noexcept {
    const auto at =
        std::lower_bound(edges_.begin(), edges_.end(), s, [](const edge& e, const stack* key) { return e.from < key; });
    return at == edges_.end() || at->from != s ? edges_.size() : static_cast<std::size_t>(at - edges_.begin());
  }

  bool hold_and_check(const edge* circle, std::size_t n) noexcept {
    std::uint32_t words[circle_most];
    std::size_t held = 0;
    bool stands_still = true;
    while (stands_still && held < n) {
      const edge& e = circle[held];
      const std::uint32_t word = try_hold_parked(during_, *e.from);
      if (word != 0) words[held++] = word;
      stands_still = word != 0 && wait_word::epoch_of(word) == wait_word::epoch_of(e.word);
    }
    for (std::size_t i = 0; stands_still && i < n; ++i) stands_still = stands(circle[i]);
    while (held != 0) {
      --held;
      let_stand(*circle[held].from, words[held]);
    }
    return stands_still;
  }

  inspection during_;
  std::int64_t begun_before_ns_ = 0;
  std::vector<edge> edges_;
  bool no_memory_ = false;
};

const char* relation(const fiber_facts& f) noexcept {
  return f.reason == mutex_reason ? ", which the next holds" : " of the next";
}

/// C3.
void describe(const edge* circle, std::size_t n, const scheduler& of) {
  std::vector<fiber_facts> facts(n);
  std::uintptr_t key = 0;
  {
    const inspection during;
    for (std::size_t i = 0; i < n; ++i) {
      if (!look_at_stack(during, *circle[i].from, false, facts[i].pcs.size(), facts[i])) return;
      key += reinterpret_cast<std::uintptr_t>(facts[i].file) + (std::uintptr_t{facts[i].line} << 48);
    }
  }
  if (!may_notice(key | 1)) return;
  text_writer out{STDERR_FILENO, 16'384, 1};
  out << "ramie: notice: in runtime ";
  out.quoted(of.options().name.c_str()) << ", " << std::uint64_t{n}
                                        << " fibers or actors wait for each other in a circle:\n";
  for (const fiber_facts& f : facts) {
    out << "  ";
    write_title(out, f.who);
    out << ": " << f.reason << relation(f);
    if (f.line != 0 && !is_of_library(f.file)) {
      out << ", at " << f.file << ":" << f.line << " in " << f.function;
    } else {
      out << ",";
      write_caller(out, f.pcs.data(), f.frames);
    }
    out << "\n";
  }
}

}  // namespace

void tell_of_circles(scheduler& of) noexcept try {
  if (!notices_are_on()) return;
  search all;
  all.collect(now_ns() - circles_every_ns);
  all.for_each_circle([&](const edge* circle, std::size_t n) { describe(circle, n, of); });
} catch (const std::bad_alloc&) {
  // Next time.
}

}  // namespace ramie::detail
