#include <ramie/actor/on_end.hpp>

#include <ramie/base/error.hpp>

#include <mutex>

namespace ramie::detail {

actor_end::actor_end(any_actor whom) : whom_{std::move(whom)} {
  if (!whom_) throw usage_error{"ramie: select: on_ready: the actor reference is empty"};
  if (this_actor() == whom_.cell()) throw usage_error{"ramie: select: an actor cannot wait for its own end"};
}

select_case::step actor_end::add(wait& pause) {
  if (in_line_) return select_case::step::added;  // the same object is twice among the cases
  actor_cell& cell = *whom_.cell();
  const std::lock_guard guard{cell.lock};
  if ((cell.status & actor_cell::ended) != 0)
    return pause.withdraw() ? select_case::step::done : select_case::step::claimed;
  node_.waiter = pause.ref();
  cell.joiners.push_back(node_);
  in_line_ = true;
  return select_case::step::added;
}

bool actor_end::take_out() noexcept {
  if (!std::exchange(in_line_, false)) return false;
  const std::lock_guard guard{whom_.cell()->lock};
  whom_.cell()->joiners.remove(node_);
  return false;  // V5
}

}  // namespace ramie::detail
