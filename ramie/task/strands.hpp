// Which strands run for which task: fork jobs that other workers took, and children of scopes that are fibers of their
// own. A stop of the task, or of a scope of it, goes down this tree, and costs what is in it.
//
//  N1 A strand is linked at the stack of the task that it runs for, its parent, before it runs anything, and taken out
//     before its end is told. The parent waits for that. So what is linked lives, and so do all its parents.
//  N2 A stop sets its flag, or makes the scope known; heavy fence (inspection); then it walks: the strands of the stack,
//     and below each its own.
//  N3 A strand arms its wait, light fence, and then looks at flags and scopes, its parents' too (task/wait_word.hpp). It
//     was linked before that. So either it sees what stops it, or N2's fence comes later than its link, and the walk
//     finds it.
//  N4 The walk pins a link inside the bucket's lock, and looks at the strand outside of it, since a claim may spin, and
//     has to wake. A strand that ends meanwhile waits until its link is not pinned. A link is pinned until the strands below it
//     have been walked; these must end before it, so it seldom waits for more than one look. A pinned link also leads
//     back to its parent's, hence neither recursion nor memory.
//  N5 New links come first in their list, behind the walk, which ends however many come. N3 has them.
//  N6 The walk holds one bucket's lock at a time, and none while it looks.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/machine/spin_lock.hpp>
#include <ramie/stack/stack.hpp>

#include <cstdint>

namespace ramie::detail {

struct stopped_scope;  // task/region.hpp

/// Lies in the strand's own memory.
struct strand_link {
  const stack* of = nullptr;  // the parent's; null: not linked
  stack* place = nullptr;     // where the strand runs and waits
  strand_link* up = nullptr;  // the parent's link, if that is a strand, too
  strand_link* next = nullptr;
  strand_link* previous = nullptr;     // null: the first of the parent's
  strand_link* next_family = nullptr;  // of the first: that of another parent in the bucket
  std::uint32_t pins = 0;              // walks that are here, or below
};

/// Tasks with strands, or with scopes that have failed, by their stacks.
struct alignas(64) family_bucket {
  spin_lock lock;
  atomic<strand_link*> families{nullptr};   // the first link of one; written inside the lock
  atomic<stopped_scope*> stopped{nullptr};  // the same
};
[[nodiscard]] family_bucket& family_bucket_of(const stack& s) noexcept;

/// N1. Begin with begin_strand (task.hpp).
void link_strand(strand_link& link, const stack& of, strand_link* up, stack& place) noexcept;
/// Not linked: does nothing. May spin as long as a walk looks at it.
void unlink_strand(strand_link& link) noexcept;

/// N2: calls `visit(argument, stack)` for the stacks of all strands below the task on `top`, but for those below one
/// for which it has returned false. Any thread. If another task is on `top` meanwhile, it may be for that one's. Does
/// not suspend.
void visit_strands(const stack& top, bool (*visit)(void* argument, stack& s), void* argument) noexcept;

}  // namespace ramie::detail
