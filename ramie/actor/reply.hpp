// Answers that are given later, and what became of a request.
//
// A reply<T> is a reference to a core that copies share. Two things come together there, in either order: the answer,
// and the one who asked (when the handler has returned the reply). The second of the two, under the core's lock, takes
// both out and delivers, after the lock. The last copy to go without an answer delivers that there will be none.
#pragma once

#include <ramie/actor/exit.hpp>
#include <ramie/base/atomic.hpp>
#include <ramie/machine/spin_lock.hpp>
#include <ramie/task/wait.hpp>

#include <concepts>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

namespace ramie {

/// Thrown by `ask` when the reply was dropped without an answer, by an actor that lives on.
class broken_reply : public error {
 public:
  broken_reply() : error{"ramie: ask: the reply was dropped without an answer"} {}
};

/// What became of a request: a value, or what `ask` would have thrown.
template <class T>
class [[nodiscard]] answer {
 public:
  using value_type = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

  explicit answer(value_type value) : is_{std::in_place_index<0>, std::move(value)} {}
  explicit answer(std::exception_ptr failure) noexcept : is_{std::in_place_index<1>, std::move(failure)} {}

  [[nodiscard]] explicit operator bool() const noexcept { return is_.index() == 0; }
  /// Moves the value out, or throws.
  T value() {
    if (is_.index() != 0) std::rethrow_exception(std::get<1>(is_));
    if constexpr (!std::is_void_v<T>) return std::move(std::get<0>(is_));
  }
  /// Null if there is a value.
  [[nodiscard]] std::exception_ptr failure() const noexcept { return *this ? nullptr : std::get<1>(is_); }

 private:
  std::variant<value_type, std::exception_ptr> is_;
};

namespace detail {

struct actor_cell;

/// Where the reply goes: on the stack of the fiber that asks. Written by the thread that has claimed its wait.
struct reply_state {
  enum class kind : std::uint8_t { none, value, down, full, failure };
  kind is = kind::none;
  exit_reason why;  // `failure`: its exception is thrown as it is
};
template <class R>
struct reply_slot : reply_state {
  std::optional<std::conditional_t<std::is_void_v<R>, std::monostate, R>> value;
};

/// The asker, if it still waits, gets this.
void give_failure(waiter_ref who, reply_state& slot, std::exception_ptr failure) noexcept;

template <class R, class... Value>
RAMIE_ALWAYS_INLINE void give_reply(waiter_ref who, reply_slot<R>* slot, Value&&... value) {
  claimed_wait asker = claim(who);
  if (!asker) return;
  // The slot is there as long as the claim is.
  try {
    slot->value.emplace(std::forward<Value>(value)...);
    slot->is = reply_state::kind::value;
  } catch (...) {
    slot->why = exit_reason{exit_kind::failed, std::current_exception()};
    slot->is = reply_state::kind::down;
  }
  asker.go_on();
}

/// One that gets an answer without waiting for it.
template <class T>
struct reply_listener {
  virtual ~reply_listener() = default;
  virtual void get(answer<T> a) noexcept = 0;
};

/// A reference to the cell, for the reason of its end. `actor_down` if it has ended or ends, else broken_reply.
void keep_cell(actor_cell& c) noexcept;
void let_cell_go(actor_cell& c) noexcept;
std::exception_ptr no_answer_of(actor_cell* c) noexcept;

[[noreturn]] void throw_answered();
[[noreturn]] void throw_two_askers();

/// One of them: a fiber or thread that waits, or a listener; or nobody, for one that was told.
template <class T>
struct asker {
  waiter_ref who{};
  reply_slot<T>* slot = nullptr;
  std::unique_ptr<reply_listener<T>> listener{};

  void get(answer<T> a) noexcept {
    if (listener) {
      listener->get(std::move(a));
    } else if (slot != nullptr) {
      if (std::exception_ptr failure = a.failure()) give_failure(who, *slot, std::move(failure));
      else if constexpr (std::is_void_v<T>) give_reply(who, slot);
      else give_reply(who, slot, a.value());
    }
  }
};

template <class T>
class reply_core {
 public:
  reply_core() = default;
  reply_core(const reply_core&) = delete;
  reply_core& operator=(const reply_core&) = delete;
  ~reply_core() {
    if (of_ != nullptr) let_cell_go(*of_);
  }
  void add_reference() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() noexcept {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    if (!answered_ && asked_) by_.get(answer<T>{no_answer_of(of_)});
    delete this;
  }
  /// False if there is an answer already.
  bool settle(answer<T> a) noexcept {
    {
      const std::lock_guard guard{lock_};
      if (answered_) return false;
      answered_ = true;
      if (!asked_) {
        early_.emplace(std::move(a));
        return true;
      }
    }
    by_.get(std::move(a));
    return true;
  }
  /// `of`: who is to answer. False if somebody else has asked.
  bool attach(actor_cell& of, asker<T>&& by) noexcept {
    {
      const std::lock_guard guard{lock_};
      if (asked_) return false;
      asked_ = true;
      if (!answered_) {
        keep_cell(of);
        of_ = &of;
        by_ = std::move(by);
        return true;
      }
    }
    by.get(*std::move(early_));
    return true;
  }
  /// The wait has ended without anybody having got the request: the next one. Nobody else knows the core.
  void wait_anew(waiter_ref who) noexcept { by_.who = who; }

 private:
  atomic<std::uint32_t> references_{1};
  spin_lock lock_;
  bool answered_ = false;  // lock, until both are set; the same for all that follow
  bool asked_ = false;
  asker<T> by_;
  std::optional<answer<T>> early_;
  actor_cell* of_ = nullptr;
};

}  // namespace detail

/// An answer that is given later. A handler makes one, keeps a copy, and returns the other; the asker waits until
/// set_value or set_exception is called on any copy, by any actor, fiber or thread. If all copies go without that,
/// `ask` throws broken_reply, or actor_down if the actor that was asked has ended or is being restarted.
template <class T>
class [[nodiscard]] reply {
 public:
  /// One that nobody has answered. Throws std::bad_alloc.
  reply() : core_{new detail::reply_core<T>} {}
  /// One that is answered already.
  template <class V>
    requires(!std::is_void_v<T> && !std::same_as<std::decay_t<V>, reply> && std::convertible_to<V, T>)
  reply(V&& value) : reply() {
    set_value(T(std::forward<V>(value)));
  }
  reply(const reply& other) noexcept : core_{other.core_} {
    if (core_ != nullptr) core_->add_reference();
  }
  reply(reply&& other) noexcept : core_{std::exchange(other.core_, nullptr)} {}
  reply& operator=(reply other) noexcept {
    std::swap(core_, other.core_);
    return *this;
  }
  ~reply() {
    if (core_ != nullptr) core_->release();
  }

  /// Answers. Does not suspend. Throws usage_error if there is an answer already.
  template <class V = T>
    requires(!std::is_void_v<T> && std::convertible_to<V, T>)
  void set_value(V&& value) const {
    if (!core_->settle(answer<T>{T(std::forward<V>(value))})) detail::throw_answered();
  }
  void set_value() const
    requires std::is_void_v<T>
  {
    if (!core_->settle(answer<T>{std::monostate{}})) detail::throw_answered();
  }
  /// `ask` throws this. Not null.
  void set_exception(std::exception_ptr failure) const {
    if (!core_->settle(answer<T>{std::move(failure)})) detail::throw_answered();
  }

  /// For ramie's own floors.
  [[nodiscard]] detail::reply_core<T>* core() const noexcept { return core_; }

 private:
  detail::reply_core<T>* core_;
};

/// What a fiber actor gets from those who `ask` it with an M: among the types of its mailbox. Answers with an R.
template <class M, class R>
struct request {
  M body;
  ramie::reply<R> reply;
};

namespace detail {

template <class R>
struct answer_type : std::type_identity<R> {};
template <class T>
struct answer_type<reply<T>> : std::type_identity<T> {};
template <class R>
inline constexpr bool is_reply = false;
template <class T>
inline constexpr bool is_reply<reply<T>> = true;
template <class M>
inline constexpr bool is_request = false;
template <class M, class R>
inline constexpr bool is_request<request<M, R>> = true;

}  // namespace detail
}  // namespace ramie
