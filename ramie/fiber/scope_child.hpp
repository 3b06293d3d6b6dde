// The children of a scope, apart from fork jobs: those that are fibers of their own, and results.
#pragma once

#include <ramie/base/error.hpp>
#include <ramie/fiber/fiber_task.hpp>
#include <ramie/machine/spin_lock.hpp>

#include <cstddef>
#include <exception>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>

namespace ramie {

class scope;

namespace detail {

struct waitable_access;  // for select (channel/on_ready.hpp)

/// The type of the result when F is spawned.
template <class F>
using child_value = std::decay_t<std::invoke_result_t<std::decay_t<F>&>>;
template <class F>
concept gives_result = std::invocable<F&> && !std::is_void_v<std::invoke_result_t<F&>>;

/// A child that is a fiber of its own, behind its task (scope_place). Kept in the scope's lists, under its lock.
struct scope_child : scope_place {
  scope_child(scope& of, task* t) noexcept : scope_place{&of, 0, {}}, self{t} {}
  scope_child(const scope_child&) = delete;
  scope_child& operator=(const scope_child&) = delete;
  [[nodiscard]] scope& owner() const noexcept { return *static_cast<scope*>(const_cast<void*>(of_scope)); }

  task* self;
  bool begun = false;
  scope_child* next = nullptr;
  scope_child* previous = nullptr;
};

/// The end of one child, for the reader of its result. Lives as long as the scope.
class child_end {
 public:
  child_end() noexcept = default;
  child_end(const child_end&) = delete;
  child_end& operator=(const child_end&) = delete;
  virtual ~child_end() = default;

  [[nodiscard]] bool is_ready() const noexcept { return ended_.load(std::memory_order_acquire); }
  /// Suspends until the child has ended. Throws `cancelled`, resource_error, and usage_error if there is another
  /// waiter.
  void await(const std::source_location& where);
  /// Any fiber, once. `failure`: the child's exception, or null.
  void end(std::exception_ptr failure) noexcept;
  void rethrow_failure() const {
    if (failure_ != nullptr) rethrow_to_joiner(failure_);
  }

  /// For waits other than `await`: makes `pause` the waiter, once or twice. False if the child has ended, or there is
  /// another waiter.
  [[nodiscard]] bool put(const wait& pause) noexcept;
  /// Takes the waiter out again. False: the child has ended meanwhile.
  bool take_back(std::uint64_t waiter) noexcept;

  child_end* older = nullptr;

 private:
  spin_lock lock_;
  atomic<bool> ended_{false};  // written inside lock_
  std::uint64_t waiter_ = 0;   // inside lock_
  std::exception_ptr failure_;
};

template <class R>
struct child_outcome : child_end {
  std::optional<R> value;
};

/// The function of a child with a result. If it is destroyed without having been called, the child was dropped.
template <class R, class F>
class child_with_result {
 public:
  child_with_result(child_outcome<R>& to, F&& f) : to_{&to}, call_(std::move(f)) {}
  child_with_result(child_with_result&& other) noexcept(std::is_nothrow_move_constructible_v<F>)
      : to_{other.to_}, call_(std::move(other.call_)) {
    other.to_ = nullptr;
  }
  ~child_with_result() {
    if (to_ != nullptr) to_->end(std::make_exception_ptr(child_cancelled{}));
  }
  void operator()() {
    try {
      to_->value.emplace(call_());
    } catch (...) {
      std::exchange(to_, nullptr)->end(std::current_exception());
      throw;
    }
    std::exchange(to_, nullptr)->end(nullptr);
  }

 private:
  child_outcome<R>* to_;
  F call_;
};

}  // namespace detail

/// The result of a scope's child, once that has ended: scope::spawn returns it for a function with a result. Copyable;
/// valid as long as the scope.
template <class R>
class child_result {
 public:
  /// Waits until the child has ended, and returns its result, which stays with the scope. Suspends; after the scope's
  /// join it does not wait. Throws the child's exception; child_cancelled if the child was cancelled or never started;
  /// `cancelled` if the caller is asked to stop meanwhile; usage_error if another fiber waits for the same child.
  R& get(std::source_location where = std::source_location::current()) const {
    outcome_->await(where);
    outcome_->rethrow_failure();
    return *outcome_->value;
  }
  /// Has the child ended? Does not suspend.
  [[nodiscard]] bool is_ready() const noexcept { return outcome_->is_ready(); }

 private:
  friend scope;
  friend detail::waitable_access;
  explicit child_result(detail::child_outcome<R>& outcome) noexcept : outcome_{&outcome} {}
  detail::child_outcome<R>* outcome_;
};

}  // namespace ramie
