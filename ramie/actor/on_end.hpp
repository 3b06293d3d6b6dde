// The case of a select that waits for the end of an actor. The protocol is V5 of channel/waitable.hpp.
#pragma once

#include <ramie/actor/ref.hpp>
#include <ramie/channel/on_ready.hpp>

#include <concepts>
#include <utility>

namespace ramie {

namespace detail {

class actor_end : public waitable_case {
 public:
  /// Throws usage_error if it is empty, or the caller itself.
  explicit actor_end(any_actor whom);
  [[nodiscard]] bool may_be_ready() const noexcept override { return !whom_.alive(); }
  [[nodiscard]] bool attempt() override { return !whom_.alive(); }
  select_case::step add(wait& pause) override;
  bool take_out() noexcept override;

 protected:
  ~actor_end() = default;

 private:
  any_actor whom_;
  bool in_line_ = false;
  joiner node_;
};

}  // namespace detail

/// The case in which x.join() would not have to wait, because the actor has ended for good: f(). Any number of selects
/// may wait for one actor. Throws usage_error if `x` is empty, or the caller itself.
template <std::derived_from<any_actor> A, std::invocable F = detail::do_nothing>
[[nodiscard]] auto on_ready(const A& x, F&& f = {}) {
  return ready_case<detail::actor_end, std::decay_t<F>>{std::forward<F>(f), any_actor{x}};
}

}  // namespace ramie
