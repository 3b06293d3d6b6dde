// A variable with a value for each fiber, as thread_local for threads.
#pragma once

#include <ramie/task/local_table.hpp>

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace ramie {

namespace detail {

/// Never given twice; not 0.
[[nodiscard]] std::uint64_t new_local_key() noexcept;
/// The value of the calling fiber or plain thread. Null if it has none.
[[nodiscard]] local_node* find_local(std::uint64_t key) noexcept;
/// Keeps it with the fiber or thread, or returns the one that another fork job of the fiber made first.
local_node& keep_local(std::unique_ptr<local_node> made);

}  // namespace detail

/// Gives every fiber, and every plain thread, a T of its own, made at its first use and destroyed when the fiber, or
/// the thread, ends: before a join sees the end, in the reverse order of construction. Functions of fork_join and
/// children of a scope share the value of their owner, and may run at the same time. Usable from any fiber or thread;
/// no call suspends unless making a T does.
///
/// For long-lived objects, such as a static or a member of one: a fiber keeps its value until it ends, even if the
/// fiber_local is destroyed first. Lookup is linear in the number of fiber_locals that the fiber uses; a fiber that
/// uses none pays nothing.
template <class T>
class fiber_local {
  static_assert(std::is_object_v<T> && !std::is_const_v<T>);

 public:
  /// Values are made by T{}.
  fiber_local()
    requires std::default_initializable<T>
      : fiber_local{[] { return T{}; }} {}
  /// Values are made by make(), which several fibers may call at once.
  template <class F>
    requires(!std::same_as<std::decay_t<F>, fiber_local> && std::is_invocable_r_v<T, const std::decay_t<F>&>)
  explicit fiber_local(F make) : make_{std::move(make)} {}
  fiber_local(const fiber_local&) = delete;
  fiber_local& operator=(const fiber_local&) = delete;

  /// The caller's value, created at the first call. Throws what creating it throws, and std::bad_alloc. The reference
  /// is valid until the fiber ends, and may be kept across suspensions.
  [[nodiscard]] T& get() const {
    detail::local_node* found = detail::find_local(key_);
    if (found == nullptr) [[unlikely]]
      found = &detail::keep_local(std::make_unique<holder>(key_, make_));
    return static_cast<holder*>(found)->value;
  }
  [[nodiscard]] T& operator*() const { return get(); }
  [[nodiscard]] T* operator->() const { return std::addressof(get()); }

  /// True if the caller has a value already.
  [[nodiscard]] bool has_value() const noexcept { return detail::find_local(key_) != nullptr; }

 private:
  struct holder final : detail::local_node {
    T value;
    holder(std::uint64_t k, const std::function<T()>& make) : local_node{k}, value(make()) {}
  };

  const std::uint64_t key_ = detail::new_local_key();
  const std::function<T()> make_;
};

}  // namespace ramie
