// Taking what was sent to a worker that does not look: by thieves, and by the monitor.
#pragma once

#include <ramie/sched/ready_item.hpp>
#include <ramie/sched/scheduler.hpp>
#include <ramie/sched/worker.hpp>

namespace ramie::detail {

/// `take(item)` for each; what is pinned is sent anew. Any thread.
template <class Take>
void scheduler::take_from_inbox(worker& victim, Take take) noexcept {
  for (ready_item item = victim.sent.take_all(); item;) {
    const ready_item next = item.next();
    if (is_movable(item)) take(item);
    else post(victim, item);  // its owner may have looked meanwhile, and have found nothing
    item = next;
  }
}

}  // namespace ramie::detail
