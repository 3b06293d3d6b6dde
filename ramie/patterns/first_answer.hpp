// Asking several actors the same, for the answer that comes first.
#pragma once

#include <ramie/actor/ref.hpp>
#include <ramie/base/atomic.hpp>
#include <ramie/future/promise.hpp>

#include <cstddef>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

namespace ramie::detail {

template <class R>
struct first_answer {
  atomic<bool> answered{false};
  atomic<std::size_t> left;  // that have not failed
  promise<R> to;
  explicit first_answer(std::size_t asked) noexcept(false) : left{asked} {}
};

/// One of those who share it.
template <class R>
struct first_answer_sink {
  std::shared_ptr<first_answer<R>> all;
  template <class... Value>
  void set_value(Value&&... value) {
    if (!all->answered.exchange(true, std::memory_order_acq_rel)) all->to.set_value(std::forward<Value>(value)...);
  }
  void set_exception(std::exception_ptr failure) {
    if (all->left.fetch_sub(1, std::memory_order_acq_rel) == 1 &&
        !all->answered.exchange(true, std::memory_order_acq_rel))
      all->to.set_exception(std::move(failure));
  }
};

/// Waits for nobody's room. Throws std::bad_alloc, and what copying `m` throws.
template <class A, class M, class T>
auto ask_each(const std::vector<actor_ref<A>>& members, const T& m) {
  using R = answer_of<A, M>;
  const auto all = std::make_shared<first_answer<R>>(members.size());
  auto first = all->to.get_future();
  const steady::time_point at_once = steady::time_point::min();
  for (const actor_ref<A>& member : members)
    ask_by_sink<A, M>(*member.cell(), T(m), first_answer_sink<R>{all}, &at_once);
  return first;
}

}  // namespace ramie::detail
