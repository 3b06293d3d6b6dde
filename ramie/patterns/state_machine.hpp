// Actors that are state machines.
#pragma once

#include <ramie/actor/actor.hpp>

#include <chrono>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace ramie {

/// Base of actors whose handlers depend on a state: `class door : public ramie::state_machine<door, lock_state>`. State
/// is an enumeration, or a std::variant of structs with data of their own; handlers look at state(), by switch or
/// std::visit. If A has a public enter(const State& from), it is called after each change. All that is declared here is
/// for the actor's own handlers, and does not suspend.
template <class A, class State>
class state_machine : public actor<A> {
 protected:
  /// `enter` is not called for the first state.
  explicit state_machine(State first) : state_{std::move(first)} {}
  ~state_machine() = default;

  [[nodiscard]] State& state() noexcept { return state_; }

  /// Changes the state at once: ends the timeout of the state before, calls `enter`, and makes what was postponed come
  /// next, oldest first. Does nothing if the state is the same, an enumerator. Call it last in a handler.
  void next_state(State to) {
    if constexpr (std::is_scalar_v<State>)
      if (to == state_) return;
    change_to(std::move(to));
  }
  /// The same for the state that it is: as if it were left and entered again.
  void repeat_state() {
    State same = state_;
    change_to(std::move(same));
  }

  /// The message that is being handled comes again after the next change of state; a request is answered then. The
  /// handler must not have moved from it: see actor::stash.
  void postpone() { this->stash(); }

  /// `m` comes after `delay` if the state has not changed by then. A state has one such timer; the next call replaces
  /// it. Other timers, by a key, go on when the state changes: actor::start_timer. Throws std::bad_alloc.
  template <class T>
  void state_timeout(std::chrono::nanoseconds delay, T&& m) {
    this->start_timer(timeout_key(), delay, std::forward<T>(m));
  }
  void cancel_state_timeout() noexcept { this->cancel_timer(timeout_key()); }

 private:
  static timer_key timeout_key() noexcept { return timer_key{~std::uint64_t{0}}; }

  void change_to(State to) {
    cancel_state_timeout();
    [[maybe_unused]] const State from = std::exchange(state_, std::move(to));
    this->unstash_all();
    if constexpr (requires(A& a) { a.enter(from); }) static_cast<A*>(this)->enter(from);
  }

  State state_;
};

}  // namespace ramie
