#include <ramie/channel/select_case.hpp>

#include <ramie/base/error.hpp>
#include <ramie/base/random.hpp>
#include <ramie/channel/select.hpp>
#include <ramie/sched/worker.hpp>

namespace ramie::detail {

template std::size_t select_ready(case_pointers&, std::size_t);
template std::size_t select_take_out(case_pointers&, std::size_t) noexcept;
template select_case::step select_add(case_pointers&, std::size_t&, wait&, std::size_t&);

std::uint32_t random_below(std::uint32_t bound) noexcept {
  if (worker* w = current_worker(); w != nullptr) return w->random.below(bound);
  static thread_local random_source own{reinterpret_cast<std::uintptr_t>(&own) | 1};
  return own.below(bound);
}

bool select_case::is_ready_for(const stack* self) const noexcept {
  if (core_->closed.load(std::memory_order_relaxed)) return true;
  const std::size_t size = core_->size.load(std::memory_order_relaxed);
  return sends_ ? size < core_->capacity || core_->receivers.has_other_than(self)
                : size != 0 || core_->senders.has_other_than(self);
}

bool select_case::attempt_locked(channel_guard& guard) {
  operation* served = nullptr;
  const channel_status status = attempt_(*this, served);
  if (status == channel_status::full || status == channel_status::empty) {
    guard.unlock_for_nothing();
    return false;
  }
  guard.unlock_and_release(served);
  status_ = status;
  return true;
}

bool select_case::attempt() {
  channel_guard guard{*core_};
  return attempt_locked(guard);
}

select_case::step select_case::add(wait& pause) {
  channel_guard guard{*core_};
  if (!RAMIE_PLANT(select_without_second_look) && is_ready_for(pause.ref().who())) {
    if (!pause.withdraw()) return step::claimed;
    return attempt_locked(guard) ? step::done : step::again;
  }
  mine_.waiter = pause.ref();
  mine_.slot = slot_(*this);
  mine_.result = operation::outcome::pending;
  line().add(mine_);
  guard.unlock_for_nothing();
  return step::added;
}

bool select_case::take_out() noexcept {
  // Written by whoever claimed the wait, before this fiber went on; nobody else writes it.
  if (mine_.result == operation::outcome::pending) {
    core_->leave(line(), mine_);
    return false;
  }
  status_ = mine_.result == operation::outcome::done ? channel_status::ok : channel_status::closed;
  return true;
}

void throw_no_cases() {
  throw invalid_argument{"ramie: select: no cases were given, and no timeout: it would wait for ever"};
}

}  // namespace ramie::detail
