// The two kinds of a scope's children. Part of scope.hpp.
#pragma once

#include <ramie/fiber/cancellation.hpp>
#include <ramie/fiber/scope.hpp>

namespace ramie {

template <class Closure>
struct scope::child_of : child {
  template <class F>
  RAMIE_ALWAYS_INLINE child_of(std::in_place_t, F&& f) : closure(std::forward<F>(f)) {}
  Closure closure;

  // Called by the owner and by thieves.
  static void run(detail::fork_frame& f) noexcept {
    auto& me = static_cast<child_of&>(f);
    if (me.of().rare_.load_relaxed() != nullptr) [[unlikely]]
      return me.run_if_wanted();
    me.run_closure();
  }
  // The owner is read again where it is needed, which leaves a register to the closure.
  [[nodiscard]] RAMIE_ALWAYS_INLINE scope& of() const noexcept { return *static_cast<scope*>(this->owner); }
  RAMIE_ALWAYS_INLINE void run_closure() noexcept {
    if constexpr (noexcept(closure())) {
      closure();
    } else {
      try {
        closure();
      } catch (...) {
        of().fail(std::current_exception());
      }
    }
    std::destroy_at(&closure);
  }
  RAMIE_COLD void run_if_wanted() noexcept {
    if (!of().has_failed()) run_closure();
    else if constexpr (std::is_trivially_destructible_v<Closure>) std::destroy_at(&closure);
    else detail::call_quietly([this] { std::destroy_at(&closure); });
  }
};

template <class Closure>
void scope::run_child(Closure& closure) noexcept {
  if (rare_.load_relaxed() != nullptr && has_failed()) return;
  if constexpr (noexcept(closure())) {
    closure();
  } else {
    try {
      closure();
    } catch (...) {
      fail(std::current_exception());
    }
  }
}

template <class F>
struct scope::fiber_child : detail::scope_child {
  fiber_child(detail::task* t, scope& of, F& f) : scope_child{of, t}, closure(std::move(f)) {}
  F closure;

  static void run(detail::task& t) noexcept {
    auto& me = detail::placed<fiber_child>(&t);
    me.owner().fiber_began(me);
    me.owner().run_child(me.closure);
    end(me);
  }
  static void skip(detail::task& t, std::exception_ptr why) noexcept {
    auto& me = detail::placed<fiber_child>(&t);
    me.owner().fail(std::move(why));
    end(me);
  }
  /// The closure's destructor may wait, and nothing could catch what such a wait threw.
  static void end(fiber_child& me) noexcept {
    if constexpr (!std::is_trivially_destructible_v<F>)
      me.self->flags.fetch_or(detail::task::ending_flag, std::memory_order_relaxed);
    std::destroy_at(&me.closure);
    me.owner().fiber_ended(me);
  }
  static void drop(detail::task&) noexcept {}
  static constexpr detail::task_type type{&run, &skip, &drop};
};

template <class F>
void scope::spawn_elsewhere(F& f, const fiber_options* options) {
  if (detail::current_forks() == nullptr) {
    const detail::bound_scope here{detail::bound_scope::as_at{this}};
    return run_child(f);
  }
  detail::task* t = detail::fiber_task<void, fiber_child<F>>::make_in_place(*this, f);
  auto& made = detail::placed<fiber_child<F>>(t);
  struct until_started {  // not a handler, as until_submitted
    fiber_child<F>* made;
    detail::task* t;
    ~until_started() {
      if (made == nullptr) return;
      detail::call_quietly([this] { fiber_child<F>::end(*made); });  // by the spawner
      detail::destroy_task(t);
    }
  } owner{&made, t};
  start(made, options);
  owner.made = nullptr;
}

}  // namespace ramie
