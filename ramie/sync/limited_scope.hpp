// A scope that limits how many of its children run at the same time.
#pragma once

#include <ramie/base/error.hpp>
#include <ramie/fiber/scope.hpp>
#include <ramie/fiber/this_fiber.hpp>
#include <ramie/sync/semaphore.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace ramie {

namespace detail {
/// Throws invalid_argument unless `limit` is positive.
std::ptrdiff_t checked_limit(std::ptrdiff_t limit);
}  // namespace detail

/// As scope, but a child begins only when fewer than `limit` of its siblings run: a crawler with ten connections, say.
/// `spawn` does not wait; the new child waits for its turn. A child that waits for something else still occupies its
/// slot, so a child may add children, but must not wait for one of them. A child that is cancelled before its turn is
/// dropped. Costs a semaphore, and a stack for a child that has to wait for its turn.
class limited_scope {
 public:
  /// Throws invalid_argument unless `limit` is positive.
  explicit limited_scope(std::ptrdiff_t limit) : turns_{detail::checked_limit(limit)} {}
  limited_scope(const limited_scope&) = delete;
  limited_scope& operator=(const limited_scope&) = delete;
  static void* operator new(std::size_t) = delete;

  /// As scope::spawn: with a result, child_result<R>. On a plain thread f runs at once.
  template <class F>
    requires std::invocable<std::decay_t<F>&>
  auto spawn(F&& f) {
    return children_.spawn(in_turn(std::forward<F>(f)));
  }
  template <class F>
    requires std::invocable<std::decay_t<F>&>
  auto spawn(const fiber_options& options, F&& f) {
    return children_.spawn(options, in_turn(std::forward<F>(f)));
  }
  /// Same as those of scope.
  void join() { children_.join(); }
  void cancel() noexcept { children_.cancel(); }
  [[nodiscard]] bool is_cancelled() const noexcept { return children_.is_cancelled(); }

 private:
  template <class F>
  auto in_turn(F&& f) {
    return [this, call = std::decay_t<F>(std::forward<F>(f))]() mutable -> std::invoke_result_t<std::decay_t<F>&> {
      turns_.acquire();
      struct end {
        counting_semaphore<>& turns;
        ~end() { turns.release(); }
      } const at_end{turns_};
      this_fiber::throw_if_stopped();
      try {
        return call();
      } catch (const cancelled&) {
        throw;
      } catch (...) {
        // Before the turn passes on: none begins after a failure.
        children_.cancel();
        throw;
      }
    };
  }

  counting_semaphore<> turns_;
  scope children_;  // gone before the semaphore
};

}  // namespace ramie
