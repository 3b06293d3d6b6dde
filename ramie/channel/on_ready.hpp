// Cases of a select that wait for something else than channels: ends, events, counts, results, permits.
#pragma once

#include <ramie/channel/cases.hpp>
#include <ramie/channel/waitable.hpp>
#include <ramie/fiber/join_handle.hpp>
#include <ramie/future/future.hpp>
#include <ramie/future/join_set.hpp>
#include <ramie/sync/event.hpp>
#include <ramie/sync/latch.hpp>
#include <ramie/sync/semaphore.hpp>
#include <ramie/sync/wait_group.hpp>

#include <concepts>
#include <cstddef>
#include <functional>
#include <type_traits>
#include <utility>
#include <variant>

namespace ramie {

namespace detail {

class future_waitable : public queue_waitable {
 public:
  future_waitable(shared_state_base& state, wait_queue& queue) noexcept
      : queue_waitable{queue, queue_rule::until_two}, state_{&state} {}
  // A deferred call is made here, by the first select that comes to it.
  [[nodiscard]] bool may_be_ready() const noexcept override {
    return queue_waitable::may_be_ready() || state_->is_deferred();
  }
  [[nodiscard]] bool attempt() override {
    if (state_->is_deferred()) state_->make_deferred_call();
    return queue_waitable::attempt();
  }

 protected:
  ~future_waitable() = default;

 private:
  shared_state_base* state_;
};

struct waitable_access {
  template <class Self>
  [[nodiscard]] static wait_queue& queue(zero_count<Self>& c) noexcept {
    return c.queue_;
  }
  [[nodiscard]] static wait_queue& queue(event& e) noexcept { return e.queue_; }
  template <std::ptrdiff_t Most>
  [[nodiscard]] static wait_queue& queue(counting_semaphore<Most>& s) noexcept {
    return s.queue_;
  }
  [[nodiscard]] static bool is_automatic(const event& e) noexcept { return e.how_ == event_reset::automatic; }
  template <class R>
  [[nodiscard]] static shared_state_base& state(const future_base<R>& f) {
    return f.state_.get("select");
  }
  [[nodiscard]] static wait_queue& queue(shared_state_base& s) noexcept { return s.queue_; }
  template <class R>
  [[nodiscard]] static task* task_of(const join_handle<R>& h) noexcept {
    return h.task_;
  }
  template <class R>
  [[nodiscard]] static child_end& end_of(const child_result<R>& r) noexcept {
    return *r.outcome_;
  }
  template <class R>
  [[nodiscard]] static event& event_of(join_set<R>& s) noexcept {
    return s.some_;
  }
};

}  // namespace detail

/// Made by on_ready and on_acquire.
template <class Waitable, class F>
class ready_case final : public Waitable {
 public:
  template <class... Args>
  explicit ready_case(F f, Args&&... args) : Waitable(std::forward<Args>(args)...), f_{std::move(f)} {}
  void finish() { std::invoke(f_); }
  [[nodiscard]] static std::monostate outcome() noexcept { return {}; }

 private:
  F f_;
};

/// Ready when x.wait(), x.get() or x.join() would not wait; calls f(), which may then call it. A join_set: when a child
/// has ended whose result was not taken. An automatic event is
/// reset by that, as by `wait`. `x` is an event, latch, wait_group, future, shared_future, the join_handle of a fiber
/// or the child_result of a scope's child; it has to stay until the select has returned. Several selects may wait for
/// the same x, except for a join_handle or child_result: only one select, join or get at a time, otherwise usage_error.
/// Throws usage_error for a future or handle that holds nothing.
template <std::invocable F = detail::do_nothing>
[[nodiscard]] auto on_ready(event& x, F&& f = {}) {
  using rule = detail::queue_rule;
  return ready_case<detail::queue_waitable, std::decay_t<F>>{
      std::forward<F>(f), detail::waitable_access::queue(x),
      detail::waitable_access::is_automatic(x) ? rule::one_becomes_zero : rule::until_one};
}
template <class Count, std::invocable F = detail::do_nothing>
  requires std::derived_from<Count, detail::zero_count<Count>>
[[nodiscard]] auto on_ready(Count& x, F&& f = {}) {
  return ready_case<detail::queue_waitable, std::decay_t<F>>{std::forward<F>(f), detail::waitable_access::queue(x),
                                                             detail::queue_rule::until_zero};
}
template <class R, std::invocable F = detail::do_nothing>
[[nodiscard]] auto on_ready(const detail::future_base<R>& x, F&& f = {}) {
  detail::shared_state_base& state = detail::waitable_access::state(x);
  return ready_case<detail::future_waitable, std::decay_t<F>>{std::forward<F>(f), state,
                                                              detail::waitable_access::queue(state)};
}
template <class R, std::invocable F = detail::do_nothing>
[[nodiscard]] auto on_ready(const join_handle<R>& x, F&& f = {}) {
  return ready_case<detail::join_waitable, std::decay_t<F>>{std::forward<F>(f), detail::waitable_access::task_of(x)};
}

template <class R, std::invocable F = detail::do_nothing>
[[nodiscard]] auto on_ready(const child_result<R>& x, F&& f = {}) {
  return ready_case<detail::child_waitable, std::decay_t<F>>{std::forward<F>(f), detail::waitable_access::end_of(x)};
}

template <class R, std::invocable F = detail::do_nothing>
[[nodiscard]] auto on_ready(join_set<R>& x, F&& f = {}) {
  return on_ready(detail::waitable_access::event_of(x), std::forward<F>(f));
}

/// Acquires a permit of `from`, then calls f(), which has to release it.
template <std::ptrdiff_t Most, std::invocable F = detail::do_nothing>
[[nodiscard]] auto on_acquire(counting_semaphore<Most>& from, F&& f = {}) {
  return ready_case<detail::queue_waitable, std::decay_t<F>>{std::forward<F>(f), detail::waitable_access::queue(from),
                                                             detail::queue_rule::one_less};
}

}  // namespace ramie
