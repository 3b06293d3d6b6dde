// Which strands run for a fiber: fork jobs that other workers took, and children of scopes that are fibers of their
// own. A stop of the fiber, or of a scope of it, has to find those that wait.
//
//  N1 A strand's worker marks the root (the fiber at the end of the strand's parents) with forked_flag, then links the
//     strand in the list of the root's bucket, under the bucket's lock, and takes it out again before the strand's end
//     is told. So the parents of what is in a list are alive.
//  N2 A stop sets its flag, or makes the scope known; heavy fence (inspection); then it copies the stacks of the root's
//     strands, under the lock, and looks at each of them without it, since a claim may spin, and has to wake.
//  N3 A strand arms its wait, light fence, and then looks at flags and scopes (task/wait_word.hpp). It was linked before
//     that. So either it sees what stops it, or N2's fence comes later than its link: then N2's lock is taken later, and
//     the strand is copied.
//  N4 A strand may end between the copy and the look, and its stack serve another fiber. Stacks are never freed
//     (stack.hpp), and a look holds the wait before it reads whose it is.
// If there are more strands than the copy has room for, it is made anew with room for all. Where there is no memory for
// that, all stacks are looked at.
//
// Before, each stop of a fiber that ever forked, and each scope that failed, looked at every stack there ever was.
#pragma once

#include <ramie/stack/stack.hpp>

namespace ramie::detail {

/// Lies in the strand's own memory.
struct strand_link {
  const void* root = nullptr;  // the task; null: not linked
  stack* place = nullptr;
  strand_link* next = nullptr;
  strand_link* previous = nullptr;
};

/// N1. `place`: the stack on which it runs and waits. Begin with begin_strand (task.hpp), which marks the root as well.
void link_strand(strand_link& link, const void* root, stack& place) noexcept;
void unlink_strand(strand_link& link) noexcept;

/// N2: calls `visit(argument, stack)` for the stacks of all strands of `root`, and perhaps for others. Any thread that
/// keeps the root alive; does not suspend.
void visit_strands(const void* root, void (*visit)(void* argument, stack& s), void* argument) noexcept;

}  // namespace ramie::detail
