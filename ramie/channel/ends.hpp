// The two ends of a channel that nobody else owns: it lives as long as an end, and closes with the last of either kind.
//
//  E1 The state is the channel and three counts: of senders, of receivers, and of both. Each end is counted, and keeps
//     the state; the last one of both kinds destroys it.
//  E2 The last sender to go closes the channel: receivers get what is buffered, then nothing.
//  E3 The last receiver to go closes the channel, so that senders learn of it, and drops what is buffered: an element
//     may own the sender of an answer, for which somebody waits. A sender that got in before the close is in the buffer
//     by then, and none comes later. Elements are destroyed one by one, without the channel's lock.
//  E4 An end is copied from one that exists, so a count that has become zero stays zero, and each close happens once.
//     The decrement is acq_rel: what the other ends have done is visible to the one that closes.
#pragma once

#include <ramie/channel/cases.hpp>
#include <ramie/channel/channel.hpp>

#include <chrono>
#include <cstddef>
#include <optional>
#include <source_location>
#include <utility>

namespace ramie {

namespace detail {

[[noreturn]] void throw_no_end(const char* call);

template <class T>
struct shared_channel {
  template <class Capacity>
  explicit shared_channel(Capacity capacity) : c{capacity} {}
  channel<T> c;
  atomic<std::size_t> ends[2]{};   // senders, receivers
  atomic<std::size_t> holders{0};  // both
};

/// One end, counted.
template <class T, int Which>
class channel_end {
 public:
  channel_end() noexcept = default;
  channel_end(const channel_end& other) noexcept : state_{other.state_} { enter(); }
  channel_end(channel_end&& other) noexcept : state_{std::exchange(other.state_, nullptr)} {}
  channel_end& operator=(channel_end other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~channel_end() { leave(); }

  /// Lets go of this end now, as its destructor would.
  void reset() noexcept { leave(); }
  /// False if default-constructed, moved from, or reset. Anything else then throws usage_error.
  [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr; }

  /// True if all ends of the other kind are gone; may be outdated at once.
  [[nodiscard]] bool is_closed() const { return get("is_closed").is_closed(); }
  /// How many elements are buffered; may be outdated at once.
  [[nodiscard]] std::size_t size() const { return get("size").size(); }
  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] std::size_t capacity() const { return get("capacity").capacity(); }
  [[nodiscard]] channel_statistics statistics() const { return get("statistics").statistics(); }

  /// Internal.
  explicit channel_end(shared_channel<T>& state) noexcept : state_{&state} { enter(); }
  [[nodiscard]] channel<T>& get(const char* call) const {
    if (state_ == nullptr) [[unlikely]]
      throw_no_end(call);
    return state_->c;
  }

 private:
  void enter() noexcept {
    if (state_ == nullptr) return;
    state_->ends[Which].fetch_add(1, std::memory_order_relaxed);
    state_->holders.fetch_add(1, std::memory_order_relaxed);
  }
  void leave() noexcept {
    if (state_ == nullptr) return;
    shared_channel<T>& s = *std::exchange(state_, nullptr);
    if (s.ends[Which].fetch_sub(1, std::memory_order_acq_rel) == 1) {
      s.c.close();  // E2, E3
      if constexpr (Which == 1)
        while (s.c.try_recv()) {
        }
    }
    if (s.holders.fetch_sub(1, std::memory_order_acq_rel) == 1) delete &s;
  }

  shared_channel<T>* state_ = nullptr;
};

}  // namespace detail

/// A sending end of a channel made by make_channel; copies share it. When the last one is destroyed the channel closes.
/// Thread-safe, except for assignment, `reset` and destruction. The functions are those of channel; `closed` means that
/// no receiver is left.
template <class T>
class sender : public detail::channel_end<T, 0> {
 public:
  using value_type = T;
  using detail::channel_end<T, 0>::channel_end;

  [[nodiscard]] RAMIE_ALWAYS_INLINE channel_status
  send(T&& value, std::source_location where = std::source_location::current()) const {
    return this->get("send").send(std::move(value), where);
  }
  [[nodiscard]] channel_status send(const T& value,
                                    std::source_location where = std::source_location::current()) const {
    return this->get("send").send(value, where);
  }
  template <class U, class Clock, class Duration>
  [[nodiscard]] channel_status send_until(U&& value, std::chrono::time_point<Clock, Duration> deadline,
                                          std::source_location where = std::source_location::current()) const {
    return this->get("send_until").send_until(std::forward<U>(value), deadline, where);
  }
  template <class U, class Rep, class Period>
  [[nodiscard]] channel_status send_for(U&& value, std::chrono::duration<Rep, Period> timeout,
                                        std::source_location where = std::source_location::current()) const {
    return this->get("send_for").send_for(std::forward<U>(value), timeout, where);
  }
  template <class U>
  [[nodiscard]] channel_status try_send(U&& value) const {
    return this->get("try_send").try_send(std::forward<U>(value));
  }
};

/// A receiving end, likewise. Each element goes to one receiver. When the last one is destroyed the channel closes, and
/// what is buffered is dropped.
template <class T>
class receiver : public detail::channel_end<T, 1> {
 public:
  using value_type = T;
  using detail::channel_end<T, 1>::channel_end;

  RAMIE_ALWAYS_INLINE std::optional<T> recv(std::source_location where = std::source_location::current()) const {
    return this->get("recv").recv(where);
  }
  template <class Clock, class Duration>
  channel_status recv_until(std::optional<T>& got, std::chrono::time_point<Clock, Duration> deadline,
                            std::source_location where = std::source_location::current()) const {
    return this->get("recv_until").recv_until(got, deadline, where);
  }
  template <class Rep, class Period>
  channel_status recv_for(std::optional<T>& got, std::chrono::duration<Rep, Period> timeout,
                          std::source_location where = std::source_location::current()) const {
    return this->get("recv_for").recv_for(got, timeout, where);
  }
  template <class Clock, class Duration>
  std::optional<T> recv_until(std::chrono::time_point<Clock, Duration> deadline,
                              std::source_location where = std::source_location::current()) const {
    return this->get("recv_until").recv_until(deadline, where);
  }
  template <class Rep, class Period>
  std::optional<T> recv_for(std::chrono::duration<Rep, Period> timeout,
                            std::source_location where = std::source_location::current()) const {
    return this->get("recv_for").recv_for(timeout, where);
  }
  channel_status try_recv(std::optional<T>& got) const { return this->get("try_recv").try_recv(got); }
  std::optional<T> try_recv() const { return this->get("try_recv").try_recv(); }

  /// For `for (T& x : receiver)`: receives until the channel is closed and empty. `begin` and `++` receive: they
  /// suspend, and throw as `recv` does.
  [[nodiscard]] auto begin(std::source_location where = std::source_location::current()) const {
    return this->get("begin").begin(where);
  }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }
};

/// What make_channel returns.
template <class T>
struct channel_ends {
  ramie::sender<T> sender;
  ramie::receiver<T> receiver;
};

/// The two ends of a new channel: auto [to, from] = make_channel<int>(8). Throws as the constructors of channel.
template <class T>
[[nodiscard]] channel_ends<T> make_channel(std::size_t capacity = 0) {
  auto& state = *new detail::shared_channel<T>(capacity);
  return {sender<T>{state}, receiver<T>{state}};
}
template <class T>
[[nodiscard]] channel_ends<T> make_channel(unbounded_t) {
  auto& state = *new detail::shared_channel<T>(unbounded);
  return {sender<T>{state}, receiver<T>{state}};
}

/// For select, same as on_recv of a channel. The end has to stay until the select has returned. Throws usage_error for
/// an empty end.
template <class T, class F>
[[nodiscard]] auto on_recv(const receiver<T>& from, F&& f) {
  return on_recv(from.get("on_recv"), std::forward<F>(f));
}
/// The same without a function, for select_value.
template <class T>
[[nodiscard]] auto on_recv(const receiver<T>& from) {
  return on_recv(from.get("on_recv"));
}
/// For select_value, same as on_send of a channel. The end has to stay until the select has returned. Throws
/// usage_error for an empty end.
template <class T, class U>
[[nodiscard]] auto on_send(const sender<T>& to, U&& value) {
  return on_send(to.get("on_send"), std::forward<U>(value));
}
/// The same with a function f(channel_status), or a channel_status that gets the outcome.
template <class T, class U, class F>
[[nodiscard]] auto on_send(const sender<T>& to, U&& value, F&& f) {
  return on_send(to.get("on_send"), std::forward<U>(value), std::forward<F>(f));
}

}  // namespace ramie
