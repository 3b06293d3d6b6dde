// Cases of a select that wait for sockets (readable, writable, a connection to accept), signals, changes of files, and
// the ends of children.
//
// They build on descriptor.hpp (N1 to N6) and on the steps of a select (select_case.hpp, S1 to S4; waitable.hpp, V1 to
// V5):
//  R1 A case is tried by taking the direction's `ready`, which may be a guess, and looking, by poll(2) or accept(2). If
//     something is there, `ready` is set again, for whatever the case's function calls. If nothing is there, `ready`
//     stays taken, and what comes after the look is a new edge. The descriptor is in the epoll set before that; without
//     it there would be no edge. So one that is in no set is tried whatever its flag says.
//  R2 A case waits as a reader does, by a node in the direction's queue, marked `in_a_select` (H5). If the number is not
//     `not_ready` under the lock, or the descriptor has left its epoll set (N6), the wait of the select is withdrawn, and
//     the select begins again at S1: a look is a system call and is not made under the lock.
//  R3 An edge that claims the node is the case's own: the case looks, without `ready`, before the select may pick
//     another case. If something is there, `ready` is set, as in R1, which wakes the next one that waits for the
//     direction, and the case is chosen. If nothing is there, because another call was faster, the edge is used up, and
//     the select begins again at S1. If the edge were handed on without a look, two selects would wake each other for
//     ever: each finds `ready` taken, by the edge that the other has been given.
//  R4 A closed descriptor is ready. What the function calls, and `accept`, then fail with io_errc::closed.
#pragma once

#include <ramie/channel/on_ready.hpp>
#include <ramie/channel/waitable.hpp>
#include <ramie/net/child.hpp>
#include <ramie/net/datagram.hpp>
#include <ramie/net/listener.hpp>
#include <ramie/net/signals.hpp>
#include <ramie/net/stream.hpp>
#include <ramie/net/watch.hpp>
#include <ramie/poll/descriptor.hpp>

#include <concepts>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

namespace ramie::net {

namespace detail {

class io_waitable : public ramie::detail::waitable_case {
 public:
  io_waitable(descriptor* d, direction way) noexcept : d_{d}, way_{way} {}
  [[nodiscard]] bool may_be_ready() const noexcept final;
  [[nodiscard]] bool attempt() final;
  ramie::detail::select_case::step add(ramie::detail::wait& pause) final;
  bool take_out() noexcept final;
  [[nodiscard]] bool must_retry() final;

 protected:
  ~io_waitable() = default;

 private:
  /// R1. Called during a use. If it throws, something is there, too.
  virtual bool look(int fd);
  bool look_at_it();

  descriptor* d_;  // null: closed
  direction way_;
  bool in_line_ = false;
  ramie::detail::queued_wait node_;
};

struct socket_access {
  template <class Socket>
  [[nodiscard]] static descriptor* record(const Socket& s) noexcept {
    return s.handle_.get();
  }
  [[nodiscard]] static bool accept_now(listener& l, int fd, handle& into) { return l.accept_now(fd, into); }
  [[nodiscard]] static std::optional<int> take_now(signals& s, int) noexcept { return s.take(); }
  [[nodiscard]] static std::optional<change> take_now(watch& w, int fd) { return w.take_now(fd); }
  [[nodiscard]] static int wait_for(signals& s) { return s.wait(); }
  [[nodiscard]] static change wait_for(watch& w) { return w.next(); }
  /// Null: `wait` is to be called at once.
  [[nodiscard]] static descriptor* end_of(const child& c) noexcept { return c.status_ ? nullptr : c.process_.get(); }
  static void count_pause(listener& l) noexcept { l.pauses_.fetch_add(1, std::memory_order_relaxed); }
  template <class Listener>
  [[nodiscard]] static auto made_of(const Listener& l, handle h) {
    return l.made_of(std::move(h));
  }
  /// In a shortage there was no connection to be had: waits for one.
  template <class Listener>
  [[nodiscard]] static auto accepted(Listener& l, handle taken) {
    return taken.get() == nullptr ? l.accept() : l.made_of(std::move(taken));
  }
};

/// Takes what came: a signal, a change.
template <class From, class Taken>
class taking_waitable : public io_waitable {
 public:
  explicit taking_waitable(From& from) noexcept
      : io_waitable{socket_access::record(from), direction::in}, from_{&from} {}

 protected:
  ~taking_waitable() = default;
  /// R4: it was closed if nothing has been taken; then the wait says so.
  [[nodiscard]] Taken take() {
    std::optional<Taken> there = std::exchange(taken_, std::nullopt);
    return there ? std::move(*there) : socket_access::wait_for(*from_);
  }

 private:
  bool look(int fd) final {
    taken_ = socket_access::take_now(*from_, fd);
    return taken_.has_value();
  }

  From* from_;
  std::optional<Taken> taken_;
};

template <class Listener>
class accept_waitable : public io_waitable {
 public:
  explicit accept_waitable(Listener& from) noexcept
      : io_waitable{socket_access::record(from), direction::in}, from_{&from} {}

 protected:
  ~accept_waitable() = default;
  [[nodiscard]] auto take() { return socket_access::accepted(*from_, std::move(taken_)); }

 private:
  bool look(int fd) final { return socket_access::accept_now(*from_, fd, taken_); }

  Listener* from_;
  handle taken_;
};

}  // namespace detail

/// Made by on_accept, on_signal and on_change: calls the function with what was taken.
template <class Waitable, class F>
class taken_case final : public Waitable {
 public:
  template <class From>
  taken_case(From& from, F f) : Waitable{from}, f_{std::move(f)} {}
  void finish() { std::invoke(f_, this->take()); }
  [[nodiscard]] static std::monostate outcome() noexcept { return {}; }

 private:
  F f_;
};

template <class Socket>
concept selectable_socket = std::derived_from<Socket, stream> || std::derived_from<Socket, message_socket>;

/// Ready when a read (or write) of `x` would not wait: also at its end, after an error, and once it is closed. Calls
/// f(), which may then read (or write). With several readers another one may have been faster, and the read waits. `x`
/// is a stream or message socket, and has to stay until the select has returned. The select also throws io_error if the
/// kernel refuses to watch `x`. Any number of selects and other calls may wait for the same socket.
template <selectable_socket Socket, std::invocable F = ramie::detail::do_nothing>
[[nodiscard]] auto on_readable(const Socket& x, F&& f = {}) {
  return ready_case<detail::io_waitable, std::decay_t<F>>{std::forward<F>(f), detail::socket_access::record(x),
                                                          detail::direction::in};
}
template <selectable_socket Socket, std::invocable F = ramie::detail::do_nothing>
[[nodiscard]] auto on_writable(const Socket& x, F&& f = {}) {
  return ready_case<detail::io_waitable, std::decay_t<F>>{std::forward<F>(f), detail::socket_access::record(x),
                                                          detail::direction::out};
}

/// Accepts a connection, then calls f(tcp_stream), or f(unix_stream) for a unix_listener. If this case is not the one
/// that is chosen, no connection has been taken. Shortages are treated as by `accept`: once it is chosen it may have to
/// wait for a descriptor. The select throws what `accept` throws, also io_errc::closed. `from` has to stay until the
/// select has returned.
template <std::derived_from<listener> Listener, class F>
[[nodiscard]] taken_case<detail::accept_waitable<Listener>, std::decay_t<F>> on_accept(Listener& from, F&& f) {
  return {from, std::forward<F>(f)};
}

/// Takes the next signal, then calls f(int) with it. If this case is not the one that is chosen, no signal is taken.
/// The select also throws what `wait` throws. `from` has to stay until the select has returned.
template <std::invocable<int> F>
[[nodiscard]] taken_case<detail::taking_waitable<signals, int>, std::decay_t<F>> on_signal(signals& from, F&& f) {
  return {from, std::forward<F>(f)};
}

/// The same for the next change of files: f(change). Throws what `next` throws. As long as the select waits, no other
/// call is made of `from`.
template <std::invocable<change> F>
[[nodiscard]] taken_case<detail::taking_waitable<watch, change>, std::decay_t<F>> on_change(watch& from, F&& f) {
  return {from, std::forward<F>(f)};
}

/// Ready when x.wait() would not wait, as the process has ended; calls f(), which may then call it. (In a kernel
/// without pidfds it is always ready.) `x` has to stay until the select has returned, and no other call waits for it.
template <std::same_as<child> Child, std::invocable F = ramie::detail::do_nothing>
[[nodiscard]] auto on_ready(const Child& x, F&& f = {}) {
  return ready_case<detail::io_waitable, std::decay_t<F>>{std::forward<F>(f), detail::socket_access::end_of(x),
                                                          detail::direction::in};
}

}  // namespace ramie::net
