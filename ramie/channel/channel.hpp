// Channels in the manner of CSP (C. A. R. Hoare, 1978) and Go: values pass from senders to receivers, through a buffer
// or, without one, from hand to hand. The protocol is in core.hpp.
#pragma once

#include <ramie/base/deadline.hpp>
#include <ramie/base/error.hpp>
#include <ramie/channel/core.hpp>
#include <ramie/channel/in_line.hpp>
#include <ramie/sync/deadline.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>

namespace ramie {

namespace detail {
[[noreturn]] void throw_bad_capacity(std::size_t capacity, std::size_t most);
}  // namespace detail

struct unbounded_t {
  explicit unbounded_t() = default;
};
/// In the place of a capacity: a channel that always has room.
inline constexpr unbounded_t unbounded{};

/// A queue of T between fibers, or plain threads, any number at either end; first in first out. With capacity 0 it is a
/// rendezvous: a send ends when a receiver has the value. Neither copied nor moved; share it by reference or by
/// std::shared_ptr. All members may be called from any fiber or thread. A channel may be destroyed once nothing waits
/// on it, even before the call that woke the last waiter has returned.
///
/// T is moved while the channel is locked: its move constructor must not suspend. If it throws, the element stays where
/// it was, the exception leaves the call that was moving, and the channel stays usable.
template <class T>
class channel {
  static_assert(std::is_object_v<T> && !std::is_array_v<T> && !std::is_const_v<T> && std::is_move_constructible_v<T>,
                "ramie::channel: elements must be movable objects");

 public:
  using value_type = T;

  /// Allocates memory for all of `capacity`. Throws std::bad_alloc, invalid_argument if it is more than could ever be
  /// allocated, or than 4,294,967,295.
  explicit channel(std::size_t capacity = 0) : core_{check(capacity)} {
    if (capacity != 0) ring_ = std::allocator<T>{}.allocate(capacity);
  }
  /// With room for 4,294,967,295 elements. Memory is allocated as it is needed, by senders, which then throw
  /// std::bad_alloc if there is none, and is kept until the channel is destroyed.
  explicit channel(unbounded_t) noexcept {
    static_assert(std::is_nothrow_move_constructible_v<T>,
                  "ramie::channel: elements of an unbounded channel are moved when it grows, so moving one must not "
                  "throw; send std::unique_ptr<T>");
  }
  channel(const channel&) = delete;
  channel& operator=(const channel&) = delete;
  /// Destroys the buffered elements. If anything still waits on it, the process ends with an error message.
  ~channel() {
    for (std::size_t left = core_.size.count(); left != 0; --left) drop_oldest();
    if (ring_ != nullptr) std::allocator<T>{}.deallocate(ring_, core_.places);
  }

  /// Sends `value`; suspends (a plain thread: blocks) while there is no room and no receiver. Returns `closed` if the
  /// channel is closed, before or during the call; `value` is then unchanged. Throws what moving T throws, and, having
  /// sent nothing, `cancelled` if the fiber is asked to stop.
  [[nodiscard]] RAMIE_ALWAYS_INLINE channel_status send(T&& value,
                                                        std::source_location where = std::source_location::current()) {
    return send_with(value, where, [](detail::wait& pause) RAMIE_LAMBDA_INLINE { return pause.suspend(); });
  }
  [[nodiscard]] RAMIE_ALWAYS_INLINE channel_status send(const T& value,
                                                        std::source_location where = std::source_location::current()) {
    T copy(value);
    return send(std::move(copy), where);
  }
  /// Same as `send`, but gives up at `deadline`, of any clock, or after a duration: `timeout`.
  template <class Clock, class Duration>
  [[nodiscard]] channel_status send_until(T&& value, std::chrono::time_point<Clock, Duration> deadline,
                                          std::source_location where = std::source_location::current()) {
    return detail::status_until(deadline, [&](detail::steady_time t) {
      return send_with(value, where, [t](detail::wait& pause) { return pause.suspend_until(t); });
    });
  }
  template <class Clock, class Duration>
  [[nodiscard]] channel_status send_until(const T& value, std::chrono::time_point<Clock, Duration> deadline,
                                          std::source_location where = std::source_location::current()) {
    T copy(value);
    return send_until(std::move(copy), deadline, where);
  }
  template <class Rep, class Period>
  [[nodiscard]] channel_status send_for(T&& value, std::chrono::duration<Rep, Period> timeout,
                                        std::source_location where = std::source_location::current()) {
    return send_until(std::move(value), detail::time_after(timeout), where);
  }
  template <class Rep, class Period>
  [[nodiscard]] channel_status send_for(const T& value, std::chrono::duration<Rep, Period> timeout,
                                        std::source_location where = std::source_location::current()) {
    T copy(value);
    return send_until(std::move(copy), detail::time_after(timeout), where);
  }
  /// Sends if that is possible at once: ok, full or closed. Does not suspend. Throws what moving T throws.
  [[nodiscard]] channel_status try_send(T&& value) {
    detail::operation* served = nullptr;
    detail::channel_guard guard{core_};
    const channel_status status = give(value, served);
    guard.unlock_and_release(served);
    return status;
  }
  [[nodiscard]] channel_status try_send(const T& value) {
    T copy(value);
    return try_send(std::move(copy));
  }

  /// Receives; suspends (a plain thread: blocks) while there is nothing. Returns nullopt when the channel is closed and
  /// empty. Throws `cancelled` if the fiber is asked to stop, and what moving T throws.
  RAMIE_ALWAYS_INLINE std::optional<T> recv(std::source_location where = std::source_location::current()) {
    std::optional<T> got;
    recv_with(got, where, [](detail::wait& pause) RAMIE_LAMBDA_INLINE { return pause.suspend(); });
    return got;
  }
  /// Same as `recv`, but gives up at `deadline`, of any clock, or after a duration. Returns ok, closed or timeout.
  template <class Clock, class Duration>
  channel_status recv_until(std::optional<T>& got, std::chrono::time_point<Clock, Duration> deadline,
                            std::source_location where = std::source_location::current()) {
    got.reset();
    return detail::status_until(deadline, [&](detail::steady_time t) {
      return recv_with(got, where, [t](detail::wait& pause) { return pause.suspend_until(t); });
    });
  }
  template <class Rep, class Period>
  channel_status recv_for(std::optional<T>& got, std::chrono::duration<Rep, Period> timeout,
                          std::source_location where = std::source_location::current()) {
    return recv_until(got, detail::time_after(timeout), where);
  }
  /// As above, without the reason: nullopt if the channel is closed, or too late.
  template <class Clock, class Duration>
  std::optional<T> recv_until(std::chrono::time_point<Clock, Duration> deadline,
                              std::source_location where = std::source_location::current()) {
    std::optional<T> got;
    recv_until(got, deadline, where);
    return got;
  }
  template <class Rep, class Period>
  std::optional<T> recv_for(std::chrono::duration<Rep, Period> timeout,
                            std::source_location where = std::source_location::current()) {
    return recv_until(detail::time_after(timeout), where);
  }
  /// Receives if that is possible at once: ok, empty or closed. Does not suspend. Throws what moving T throws.
  channel_status try_recv(std::optional<T>& got) {
    got.reset();
    detail::operation* served = nullptr;
    detail::channel_guard guard{core_};
    const channel_status status = take(got, served);
    guard.unlock_and_release(served);
    return status;
  }
  std::optional<T> try_recv() {
    std::optional<T> got;
    try_recv(got);
    return got;
  }

  /// No more sends: waiting senders get `closed`, waiting receivers get nothing, buffered elements can still be
  /// received. Closing again does nothing. Does not suspend.
  void close() noexcept { core_.close(); }

  /// True once `close` was called. Does not suspend.
  [[nodiscard]] bool is_closed() const noexcept { return core_.closed.load(std::memory_order_acquire); }
  /// How many elements are buffered; may be outdated at once.
  [[nodiscard]] std::size_t size() const noexcept { return core_.size.count(); }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  [[nodiscard]] std::size_t capacity() const noexcept { return core_.capacity; }  ///< 4,294,967,295: unbounded
  [[nodiscard]] channel_statistics statistics() const noexcept {
    return {size(), core_.senders.count(), core_.receivers.count()};
  }

  /// For `for (T& x : channel)`, until it is closed and empty. `begin` and `++` suspend, and throw, as `recv` does.
  class iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = T*;
    using reference = T&;
    iterator() noexcept = default;
    iterator(channel& from, const std::source_location& where) : from_{&from}, where_{where} { ++*this; }
    T& operator*() const noexcept { return *now_; }
    T* operator->() const noexcept { return &*now_; }
    RAMIE_ALWAYS_INLINE iterator& operator++() {
      now_.reset();
      from_->recv_with(now_, where_, [](detail::wait& pause) RAMIE_LAMBDA_INLINE { return pause.suspend(); });
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const iterator& it, std::default_sentinel_t) noexcept { return !it.now_; }

   private:
    channel* from_ = nullptr;
    std::source_location where_;
    mutable std::optional<T> now_;
  };
  [[nodiscard]] iterator begin(std::source_location where = std::source_location::current()) { return {*this, where}; }
  [[nodiscard]] std::default_sentinel_t end() noexcept { return {}; }

  /// For select. Under the lock: the operation if it is possible now, otherwise `full` or `empty`. `served`: the
  /// counterpart to wake afterwards.
  RAMIE_ALWAYS_INLINE channel_status give(T& value, detail::operation*& served);
  RAMIE_ALWAYS_INLINE channel_status take(std::optional<T>& got, detail::operation*& served);
  [[nodiscard]] detail::channel_core& core() noexcept { return core_; }

 private:
  static std::size_t check(std::size_t capacity) {
    constexpr std::size_t most =
        std::min<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max() / sizeof(T), detail::tally::most);
    if (capacity > most) detail::throw_bad_capacity(capacity, most);
    return capacity;
  }
  void drop_oldest() noexcept {
    std::destroy_at(ring_ + core_.head);
    if (++core_.head == core_.places) core_.head = 0;
    core_.size.decrease();
  }
  void append(T& value) {
    std::size_t at = core_.head + size();
    if (at >= core_.places) at -= core_.places;
    std::construct_at(ring_ + at, std::move(value));
    core_.size.increase();
  }
  RAMIE_NOINLINE detail::operation* take_in() noexcept;
  RAMIE_NOINLINE bool grow();
  template <class Suspend>
  RAMIE_ALWAYS_INLINE channel_status send_with(T& value, const std::source_location& where, Suspend suspend);
  template <class Suspend>
  RAMIE_ALWAYS_INLINE channel_status recv_with(std::optional<T>& got, const std::source_location& where,
                                               Suspend suspend);

  detail::channel_core core_;
  T* ring_ = nullptr;
};

}  // namespace ramie

#include <ramie/channel/channel_impl.hpp>
