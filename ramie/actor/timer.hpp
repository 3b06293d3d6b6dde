// Messages that an actor gets later.
#pragma once

#include <ramie/actor/cell.hpp>
#include <ramie/actor/dispatch.hpp>
#include <ramie/base/atomic.hpp>
#include <ramie/task/timer_queue.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>

namespace ramie {

namespace detail {

/// References: one for the timer queue while it is in there or fires, one for the handle. The actor's list needs none:
/// a timer takes itself out of it before the queue's reference goes.
struct actor_timer : timer_node {
  atomic<std::uint32_t> references{2};
  atomic<bool> cancelled{false};
  actor_cell* target = nullptr;  // a reference
  timer_queue* home = nullptr;   // always the same: that of the worker that started it
  std::int64_t deadline_ns = 0;
  std::int64_t period_ns = 0;     // 0: once
  std::uint32_t incarnation = 0;  // of the target, which alone gets the message
  bool owned = false;             // by that one: it is in its list
  actor_timer* next = nullptr;    // of the actor's timers, under their lock
  actor_timer* previous = nullptr;

  actor_timer() = default;
  actor_timer(const actor_timer&) = delete;
  actor_timer& operator=(const actor_timer&) = delete;
  virtual ~actor_timer() = default;
  /// The message, once or again and again. Throws std::bad_alloc.
  virtual message* make() = 0;

  void release() noexcept;
  void cancel() noexcept;
};

/// Puts it into the calling worker's queue. `owned`: it ends with the incarnation of `target` that the caller is.
/// Throws std::bad_alloc, usage_error; then it is gone.
void launch_timer(actor_timer* t, actor_cell& target, std::chrono::nanoseconds delay, std::chrono::nanoseconds period,
                  bool owned);

template <class M>
struct typed_timer final : actor_timer {
  message_function act;
  M body;
  template <class T>
  typed_timer(message_function f, T&& m) : act{f}, body(std::forward<T>(m)) {}
  message* make() override;

  /// The body for one message.
  void make_body(void* at) {
    if constexpr (std::is_copy_constructible_v<M>) {
      if (period_ns != 0) {
        ::new (at) M(body);
        return;
      }
    }
    ::new (at) M(std::move(body));
  }
};

/// A message whose payload the receiver makes: whoever fires a timer, the monitor it may be, runs no code of the
/// user's. Until then it has a reference to the timer.
template <class M>
struct late_node : body_node<M> {
  typed_timer<M>* from;
  explicit late_node(typed_timer<M>* t) noexcept : body_node<M>(typename body_node<M>::without_payload{}), from{t} {
    from->references.fetch_add(1, std::memory_order_relaxed);
  }

  static void act_late(message& self, message_verb verb, void* context) {
    auto& node = static_cast<late_node&>(self);
    if (verb == message_verb::make) {
      node.flags &= static_cast<std::uint8_t>(~message::late);
      struct letting_go {
        typed_timer<M>* timer;
        ~letting_go() { timer->release(); }
      } afterwards{node.from};
      // From now on it is like any other.
      node.act = node.from->act;
      node.from->make_body(&node.body);
    } else if (verb == message_verb::discard) {
      node.from->release();
    } else {
      node.from->act(self, verb, context);  // its type: a message that has no payload is not handled
    }
  }
};

template <class M>
message* typed_timer<M>::make() {
  const std::uint8_t flags = owned ? message::own : std::uint8_t{0};
  if constexpr (std::is_trivially_copy_constructible_v<M>) return make_message<tell_node<M>>(act, flags, body);
  else return make_message<late_node<M>>(&late_node<M>::act_late, flags | message::late, this);
}

}  // namespace detail

/// A timer that was started by send_after or send_every. Dropping it lets the timer run.
class timer_handle {
 public:
  timer_handle() noexcept = default;
  timer_handle(timer_handle&& other) noexcept : timer_{std::exchange(other.timer_, nullptr)} {}
  timer_handle& operator=(timer_handle other) noexcept {
    std::swap(timer_, other.timer_);
    return *this;
  }
  ~timer_handle() {
    if (timer_ != nullptr) timer_->release();
  }
  /// No message is sent from now on; one that was sent may still wait in the mailbox. Any thread, does not suspend.
  void cancel() noexcept {
    if (timer_ != nullptr) timer_->cancel();
  }

  /// Internal.
  explicit timer_handle(detail::actor_timer* timer) noexcept : timer_{timer} {}

 private:
  detail::actor_timer* timer_ = nullptr;
};

namespace detail {

template <class M, class T>
timer_handle start_timer(actor_cell& target, message_function act, std::chrono::nanoseconds delay,
                         std::chrono::nanoseconds period, T&& m, bool owned = true) {
  auto* t = new typed_timer<M>{act, std::forward<T>(m)};
  launch_timer(t, target, delay, period, owned);
  return timer_handle{t};
}

}  // namespace detail
}  // namespace ramie
