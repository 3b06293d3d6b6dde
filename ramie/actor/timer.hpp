// Messages that an actor gets later, and timers that it knows by a key.
#pragma once

#include <ramie/actor/cell.hpp>
#include <ramie/actor/dispatch.hpp>
#include <ramie/base/atomic.hpp>
#include <ramie/task/timer_queue.hpp>

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <new>
#include <string>
#include <string_view>
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
  bool at_once = false;           // messages are made by the thread that fires it: the receiver is a fiber actor
  bool keyed = false;             // its message is handled only while the actor knows it by its key
  bool forgotten = false;         // the actor's own: it does not any more
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

/// Puts it into the calling worker's queue; it ends with the incarnation of `target` that the caller is. Throws
/// std::bad_alloc; then it is gone.
void launch_timer(actor_timer* t, actor_cell& target, std::chrono::nanoseconds delay, std::chrono::nanoseconds period);
/// The same by anybody else: it ends with the incarnation that runs now. If there is none it is cancelled.
void launch_timer_for(actor_timer* t, actor_cell& target, std::chrono::nanoseconds delay);

/// What a message that is made late is asked.
struct making {
  actor_cell* cell;
  bool unwanted = false;
};

/// The timer's message is being handled: the key is free.
void forget_key(actor_cell& c, actor_timer& t) noexcept;

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

/// A message whose payload the receiver makes: the thread that fires a timer, perhaps the monitor, runs no code of the
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
      if (auto& now = *static_cast<making*>(context); node.from->keyed) {
        now.unwanted = node.from->forgotten;
        if (now.unwanted) return;  // it is discarded
        if (node.from->period_ns == 0) forget_key(*now.cell, *node.from);
      }
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
    } else if (verb == message_verb::type) {
      node.from->act(self, verb, context);
    }
  }
};

template <class M>
message* typed_timer<M>::make() {
  if constexpr (std::is_trivially_copy_constructible_v<M>)
    if (!keyed) return make_message<tell_node<M>>(act, message::own, body);
  if (at_once) return make_message<tell_node<M>>(act, message::own, std::move(body));
  return make_message<late_node<M>>(&late_node<M>::act_late, message::own | message::late, this);
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
  /// False once it was cancelled, has ended with its actor, or has sent its only message. Any thread.
  [[nodiscard]] bool running() const noexcept {
    return timer_ != nullptr && !timer_->cancelled.load(std::memory_order_acquire);
  }

  /// Internal.
  explicit timer_handle(detail::actor_timer* timer) noexcept : timer_{timer} {}
  [[nodiscard]] detail::actor_timer* timer() const noexcept { return timer_; }

 private:
  detail::actor_timer* timer_ = nullptr;
};

namespace detail {

template <class M, class T>
timer_handle start_timer(actor_cell& target, message_function act, std::chrono::nanoseconds delay,
                         std::chrono::nanoseconds period, T&& m, bool keyed = false) {
  auto* t = new typed_timer<M>{act, std::forward<T>(m)};
  t->keyed = keyed;
  launch_timer(t, target, delay, period);
  return timer_handle{t};
}

}  // namespace detail

/// By what an actor knows a timer: a text, a number or an enumerator.
class timer_key {
 public:
  template <class T>
    requires(std::is_integral_v<T> || std::is_enum_v<T>)
  timer_key(T number) noexcept : is_text_{false}, number_{static_cast<std::uint64_t>(number)} {}
  template <class T>
    requires(std::convertible_to<const T&, std::string_view>)
  timer_key(const T& text) : is_text_{true}, text_{std::string_view{text}} {}
  friend bool operator==(const timer_key&, const timer_key&) noexcept = default;

 private:
  bool is_text_;
  std::string text_{};
  std::uint64_t number_ = 0;
};

namespace detail {

/// `h` gets the key's place; what had it is cancelled, and not heard of any more. Throws std::bad_alloc; then it is not
/// running.
void keep_timer(actor_cell& c, timer_key key, timer_handle h);
bool cancel_keyed(actor_cell& c, const timer_key& key) noexcept;
[[nodiscard]] bool is_running(actor_cell& c, const timer_key& key) noexcept;

}  // namespace detail

}  // namespace ramie
