#include <ramie/channel/waitable.hpp>

#include <ramie/base/error.hpp>

namespace ramie::detail {

template std::size_t select_ready(mixed_cases&, std::size_t);
template std::size_t select_poll(mixed_cases&, std::size_t);
template std::size_t select_take_out(mixed_cases&, std::size_t) noexcept;
template select_case::step select_add(mixed_cases&, std::size_t, wait&, std::size_t&);

bool queue_waitable::is_ready(std::uint64_t value) const noexcept {
  switch (rule_) {
    case queue_rule::until_zero: return value == 0;
    case queue_rule::until_two: return value == 2;
    default: return value != 0;
  }
}

std::uint64_t queue_waitable::after(std::uint64_t value) const noexcept {
  switch (rule_) {
    case queue_rule::one_becomes_zero: return 0;
    case queue_rule::one_less: return value - 1;
    default: return value;
  }
}

bool queue_waitable::may_be_ready() const noexcept {
  bool unlocked = false;
  return is_ready(queue_->peek(unlocked));
}

bool queue_waitable::attempt() {
  const std::uint64_t value = queue_->lock();
  const bool ready = is_ready(value);
  queue_->unlock(ready ? after(value) : value);
  return ready;
}

select_case::step queue_waitable::add(wait& pause) {
  if (in_line_) return select_case::step::added;  // the same object is twice among the cases
  const std::uint64_t value = queue_->lock();
  if (is_ready(value) && !RAMIE_PLANT(select_without_second_look)) {
    // The holder of a claimed wait waits for nothing until it lets go (H5), not for this lock either.
    const bool mine = pause.withdraw();
    queue_->unlock(mine ? after(value) : value);
    return mine ? select_case::step::done : select_case::step::claimed;
  }
  node_.waiter = pause.ref();
  node_.in_a_select = true;
  node_.claimed = {};
  queue_->push_back(node_);
  in_line_ = true;
  queue_->unlock(value);
  return select_case::step::added;
}

bool queue_waitable::take_out() noexcept {
  if (!in_line_) return false;
  in_line_ = false;
  // Written by the one that has won the wait, before this fiber resumed. V4.
  if (node_.claimed) return true;
  const std::uint64_t value = queue_->lock();
  queue_->remove(node_);
  queue_->unlock(value);
  return false;
}

bool join_waitable::may_be_ready() const noexcept {
  return task_->completion.load(std::memory_order_acquire) == task::done;
}

select_case::step join_waitable::add(wait& pause) {
  std::uint64_t seen = 0;
  const std::uint64_t mine = pause.ref().bits();
  if (task_->completion.compare_exchange_strong(seen, mine, std::memory_order_acq_rel, std::memory_order_acquire)) {
    published_ = mine;
    return select_case::step::added;
  }
  if (seen == mine) return select_case::step::added;  // another case is on the same fiber
  if (!pause.withdraw()) return select_case::step::claimed;
  if (seen != task::done) throw usage_error{"ramie: select: another fiber or thread is already joining this fiber"};
  return select_case::step::done;
}

bool join_waitable::take_out() noexcept {
  // It fails if the fiber has ended meanwhile; may_be_ready acquires that.
  std::uint64_t mine = std::exchange(published_, 0);
  if (mine != 0)
    task_->completion.compare_exchange_strong(mine, 0, std::memory_order_relaxed, std::memory_order_relaxed);
  return false;  // V5
}

select_case::step child_waitable::add(wait& pause) {
  if (end_->put(pause)) {
    published_ = pause.ref().bits();
    return select_case::step::added;
  }
  if (!pause.withdraw()) return select_case::step::claimed;
  if (!end_->is_ready()) throw usage_error{"ramie: select: another fiber waits for this child already"};
  return select_case::step::done;
}

bool child_waitable::take_out() noexcept {
  if (published_ != 0) end_->take_back(std::exchange(published_, 0));
  return false;  // V5
}

}  // namespace ramie::detail
