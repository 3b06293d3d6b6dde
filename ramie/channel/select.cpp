#include <ramie/channel/select_case.hpp>

#include <ramie/base/error.hpp>
#include <ramie/base/random.hpp>
#include <ramie/channel/select.hpp>
#include <ramie/task/current.hpp>

namespace ramie::detail {

template std::size_t select_ready(case_pointers&, std::size_t);
template std::size_t select_poll(case_pointers&, std::size_t);
template std::size_t select_take_out(case_pointers&, std::size_t) noexcept;
template select_case::step select_add(case_pointers&, std::size_t, wait&, std::size_t&);

std::uint32_t random_below(std::uint32_t bound) noexcept {
  if (worker_base* w = current_worker(); w != nullptr) return w->random.below(bound);
  static thread_local random_source own{reinterpret_cast<std::uintptr_t>(&own) | 1};
  return own.below(bound);
}

bool select_case::is_ready_for(const stack* self) const noexcept {
  if (core_->closed.load(std::memory_order_relaxed)) return true;
  const std::size_t size = core_->size.count();
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
  if (in_line_) [[unlikely]]
    return step::added;  // the same object is twice among the cases
  channel_guard guard{*core_};
  if (!RAMIE_PLANT(select_without_second_look) && is_ready_for(pause.ref().who())) {
    if (!pause.withdraw()) return step::claimed;
    return attempt_locked(guard) ? step::done : step::again;
  }
  mine_.waiter = pause.ref();
  mine_.slot = slot_(*this);
  mine_.result = operation::outcome::pending;
  line().add(mine_);
  in_line_ = true;
  guard.unlock_for_nothing();
  return step::added;
}

bool select_case::take_out() noexcept {
  if (!in_line_) return false;
  in_line_ = false;
  // Written by the claimer of the wait, before this fiber resumed; there is no other writer.
  const operation::outcome result = mine_.result;
  if (result == operation::outcome::pending) core_->leave(line(), mine_);
  if (result == operation::outcome::pending) return false;
  status_ = result == operation::outcome::done ? channel_status::ok : channel_status::closed;
  must_retry_ = result == operation::outcome::retry;
  return true;
}

void throw_no_cases() {
  throw invalid_argument{"ramie: select: no cases and no timeout were given: it would never return"};
}

}  // namespace ramie::detail
