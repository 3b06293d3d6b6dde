// A variable of which every fiber has its own, as thread_local is for threads.
#pragma once

#include <ramie/sched/local_table.hpp>

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace ramie {

namespace detail {

/// Never given twice.
[[nodiscard]] std::uint64_t new_local_key() noexcept;
/// The calling fiber's, or plain thread's, value. Null if it has none.
[[nodiscard]] local_node* find_local(std::uint64_t key) noexcept;
/// Keeps it with the fiber or thread, or returns the one that another fork job of the fiber made first.
local_node& keep_local(std::unique_ptr<local_node> made);

}  // namespace detail

/// Gives every fiber, and every plain thread, a T of its own, made at its first use and destroyed when the fiber, or
/// the thread, ends: before a join sees the end, in the reverse order of their making. Fork jobs share that of the
/// fiber that forked them, and may run at the same time. Usable from any fiber or thread; no call suspends unless
/// making a T does.
///
/// Meant to live long, as a static or a member of something that lives long: values that fibers have made stay with
/// them to their end, even if the fiber_local is gone before. A fiber that uses none pays nothing; one that uses n
/// looks through at most n.
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

  /// The caller's value, made if this is its first use: then it throws what making it throws, std::bad_alloc. The
  /// reference stays good until the fiber ends, and may be kept across suspensions.
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
