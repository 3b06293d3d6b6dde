// The cases that a select is made of.
#pragma once

#include <ramie/channel/channel.hpp>
#include <ramie/channel/select_case.hpp>
#include <ramie/channel/spare_cases.hpp>

#include <concepts>
#include <cstddef>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

namespace ramie {

namespace detail {

[[noreturn]] void throw_no_cases();

struct guarded_base {};

template <class C>
inline constexpr bool is_channel_case = std::derived_from<C, select_case>;
template <class C>
inline constexpr bool is_guarded = std::derived_from<C, guarded_base>;
/// On something else than a channel: on_ready, on_acquire.
template <class C>
inline constexpr bool is_waitable = std::derived_from<C, waitable_case>;
template <class C>
inline constexpr bool is_waited_for = is_channel_case<C> || is_waitable<C> || is_guarded<C>;
template <class C>
concept any_case = is_waited_for<C> || is_timeout<C> || is_otherwise<C>;

/// In place of a function: the outcome stays in the case, for select_value.
struct keep_outcome {
  void operator()(auto&&...) const noexcept {}
};

}  // namespace detail

/// Made by on_recv.
template <class T, class F>
class recv_case : public detail::select_case {
 public:
  recv_case(channel<T>& from, F f)
      : select_case{from.core(), false, &attempt_it, &slot_of}, from_{&from}, f_{std::move(f)} {}
  void finish() {
    if constexpr (!std::is_same_v<F, detail::keep_outcome>) std::invoke(f_, std::move(got_));
  }
  std::optional<T> outcome() { return std::move(got_); }

 private:
  static channel_status attempt_it(select_case& me, detail::operation*& served) {
    auto& self = static_cast<recv_case&>(me);
    self.got_.reset();
    return self.from_->take(self.got_, served);
  }
  static void* slot_of(select_case& me) noexcept {
    auto& self = static_cast<recv_case&>(me);
    self.got_.reset();
    return &self.got_;
  }
  channel<T>* from_;
  F f_;
  std::optional<T> got_;
};

/// Made by on_send.
template <class T, class F>
class send_case : public detail::select_case {
 public:
  template <class U>
  send_case(channel<T>& to, U&& value, F f)
      : select_case{to.core(), true, &attempt_it, &slot_of},
        to_{&to},
        value_(std::forward<U>(value)),
        f_{std::move(f)} {}
  void finish() { std::invoke(f_, status()); }
  [[nodiscard]] channel_status outcome() const noexcept { return status(); }

 private:
  static channel_status attempt_it(select_case& me, detail::operation*& served) {
    auto& self = static_cast<send_case&>(me);
    return self.to_->give(self.value_, served);
  }
  static void* slot_of(select_case& me) noexcept { return std::addressof(static_cast<send_case&>(me).value_); }
  channel<T>* to_;
  T value_;
  F f_;
};

/// Made by on_send for a value that stays in place until it is sent. `Rvalue`: it may end with the expression.
template <class T, class F, bool Rvalue>
class send_reference_case : public detail::select_case {
 public:
  send_reference_case(channel<T>& to, T& value, F f)
      : select_case{to.core(), true, &attempt_it, &slot_of}, to_{&to}, value_{&value}, f_{std::move(f)} {}
  send_reference_case(send_reference_case&&)
    requires(!Rvalue)
  = default;
  void finish() { std::invoke(f_, status()); }
  [[nodiscard]] channel_status outcome() const noexcept { return status(); }

 private:
  static channel_status attempt_it(select_case& me, detail::operation*& served) {
    auto& self = static_cast<send_reference_case&>(me);
    return self.to_->give(*self.value_, served);
  }
  static void* slot_of(select_case& me) noexcept { return static_cast<send_reference_case&>(me).value_; }
  channel<T>* to_;
  T* value_;
  F f_;
};

namespace detail {

template <class C>
inline constexpr bool refers_to_rvalue = false;
template <class T, class F>
inline constexpr bool refers_to_rvalue<send_reference_case<T, F, true>> = true;

/// Can it be sent but once, because what is sent is moved out of the case?
template <class C>
inline constexpr bool sends_its_own = false;
template <class T, class F>
inline constexpr bool sends_its_own<send_case<T, F>> = !std::is_trivially_copyable_v<T>;

/// Made by `when`.
template <class C>
struct guarded_case : guarded_base {
  C* guarded;
  bool on;
  static constexpr bool waitable = is_waitable<C>;
  void finish() { guarded->finish(); }
  auto outcome() { return guarded->outcome(); }
};

template <class T>
struct store_received {
  std::optional<T>* into;
  void operator()(std::optional<T> got) const {
    into->reset();
    if (got) into->emplace(std::move(*got));
  }
};

template <class C>
inline constexpr bool keeps_outcome = false;
template <class T>
inline constexpr bool keeps_outcome<recv_case<T, keep_outcome>> = true;
template <class T>
inline constexpr bool keeps_outcome<send_case<T, keep_outcome>> = true;
template <class T, bool Rvalue>
inline constexpr bool keeps_outcome<send_reference_case<T, keep_outcome, Rvalue>> = true;
template <class C>
inline constexpr bool keeps_outcome<guarded_case<C>> = keeps_outcome<C>;

}  // namespace detail

/// A case that receives: f(std::optional<T>), nullopt if the channel is closed and empty.
template <class T, class F>
[[nodiscard]] recv_case<T, std::decay_t<F>> on_recv(channel<T>& from, F&& f) {
  static_assert(
      std::invocable<F&, std::optional<T>>,
      "ramie::on_recv: the function must take a std::optional of the element, which is empty when the channel "
      "is closed");
  return {from, std::forward<F>(f)};
}
/// The same without a function: the element is put into `got`, nullopt if the channel is closed and empty.
template <class T>
[[nodiscard]] recv_case<T, detail::store_received<T>> on_recv(channel<T>& from, std::optional<T>& got) {
  return {from, detail::store_received<T>{&got}};
}

/// A case that sends `value`: f(channel_status), ok or closed. As with channel::send, an rvalue of type T is moved from
/// only if it is sent; other values are copied into the case. Either case has to be made in the call of select. A case
/// of std::ref(value), or of a value that a move leaves unchanged (a number, say), may be kept and used again.
template <class T, class U, class F>
[[nodiscard]] auto on_send(channel<T>& to, U&& value, F&& f) {
  static_assert(std::constructible_from<T, U&&>, "ramie::on_send: the value cannot be made an element of this channel");
  static_assert(std::invocable<F&, channel_status>,
                "ramie::on_send: the function must take a channel_status: ok or closed");
  if constexpr (std::is_same_v<U, T> && !std::is_trivially_copyable_v<T>)
    return send_reference_case<T, std::decay_t<F>, true>{to, value, std::forward<F>(f)};
  else return send_case<T, std::decay_t<F>>{to, std::forward<U>(value), std::forward<F>(f)};
}
/// A case that sends what `value` refers to, by moving from it; it may be kept and used again.
template <class T, class F>
  requires std::invocable<F&, channel_status>
[[nodiscard]] send_reference_case<T, std::decay_t<F>, false> on_send(channel<T>& to, std::reference_wrapper<T> value,
                                                                     F&& f) {
  return {to, value.get(), std::forward<F>(f)};
}
/// A case that receives, without a function, for select_value: its outcome is the std::optional<T>.
template <class T>
[[nodiscard]] recv_case<T, detail::keep_outcome> on_recv(channel<T>& from) {
  return {from, {}};
}
/// A case that sends, without a function, for select_value: its outcome is the channel_status.
template <class T, class U>
[[nodiscard]] auto on_send(channel<T>& to, U&& value) {
  return on_send(to, std::forward<U>(value), detail::keep_outcome{});
}
/// A case that sends, without a function: the outcome is put into `status`.
template <class T, class U>
[[nodiscard]] auto on_send(channel<T>& to, U&& value, channel_status& status) {
  return on_send(to, std::forward<U>(value), [&status](channel_status s) { status = s; });
}

/// The case `c` if `on`; otherwise a disabled one, as with a nil channel in Go. To be made in the call of select.
template <class C>
  requires(detail::is_channel_case<std::remove_cvref_t<C>> || detail::is_waitable<std::remove_cvref_t<C>>)
[[nodiscard]] detail::guarded_case<std::remove_cvref_t<C>> when(bool on, C&& c) {
  return {{}, &c, on};
}

}  // namespace ramie
