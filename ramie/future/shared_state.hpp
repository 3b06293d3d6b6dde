// What a promise and its futures share: a result that comes once, or the exception in its place.
//
//  S1 The number: pending, being written, ready. A writer turns pending into being written, so a second one learns that
//     it is late; it writes with the lock free, because moving a value may do anything.
//  S2 Then it makes it ready and wakes all waiters. From then on there are no writers: readers need no lock.
//  S3 References are counted; the last one deletes. A writer has one while it writes, so a reader may drop its own as
//     soon as it has the result.
//  S4 A deferred call belongs to the one that takes its pointer out: the first waiter, which makes it; others wait for
//     its result, as for any other. A call without a waiter is deleted with the state, unmade.
// The rest as in wait_queue.hpp.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/sync/deadline.hpp>
#include <ramie/sync/wait_queue.hpp>

#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>

namespace ramie {

/// As std::future_error, with the same code: a promise that has its result already, a future that was taken before, or
/// that is no future.
class future_error : public usage_error {
 public:
  future_error(std::future_errc why, const std::string& what) : usage_error{what}, why_{why} {}
  /// Of std::future_category().
  [[nodiscard]] std::error_code code() const noexcept { return std::make_error_code(why_); }

 private:
  std::future_errc why_;
};

}  // namespace ramie

namespace ramie::detail {

/// A call that its first waiter makes, for async(std::launch::deferred, ...).
class deferred_call {
 public:
  deferred_call() noexcept = default;
  deferred_call(const deferred_call&) = delete;
  deferred_call& operator=(const deferred_call&) = delete;
  virtual ~deferred_call() = default;
  /// Makes the call and stores the result. Suspends if the function does.
  virtual void make() = 0;
};

class shared_state_base {
 public:
  shared_state_base() noexcept = default;
  shared_state_base(const shared_state_base&) = delete;
  shared_state_base& operator=(const shared_state_base&) = delete;

  void refer() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  /// True if it was the last reference.
  [[nodiscard]] bool let_go() noexcept { return references_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

  [[nodiscard]] bool is_ready() const noexcept { return queue_.is(ready); }

  RAMIE_ALWAYS_INLINE void wait(const std::source_location& where) {
    ready_point();
    if (is_ready()) return;
    if (is_deferred()) [[unlikely]]
      make_deferred_call();
    if (const std::uint64_t value = queue_.lock(); value == ready) queue_.unlock(ready);
    else queue_.unlock_and_wait(value, {"future", where}, [this, where] { wait(where); });
  }
  bool wait_before(steady_time deadline, const std::source_location& where);

  /// S1. Throws future_error if there is a result, or one on its way.
  void begin_writing();
  void abandon_writing() noexcept;
  /// S2.
  void end_writing() noexcept;

  void set_exception(std::exception_ptr failure);
  /// For a promise that is destroyed: stores an exception, unless there is a result.
  void break_promise() noexcept;
  /// The one future. Throws future_error the second time.
  void take_future();

  /// Before the state is shared; it owns the call.
  void defer(std::unique_ptr<deferred_call> call) noexcept {
    deferred_.store(call.release(), std::memory_order_release);
  }
  /// Is there a deferred call without a waiter yet? (S4) The exchange that takes it acquires it.
  [[nodiscard]] bool is_deferred() const noexcept { return deferred_.load(std::memory_order_relaxed) != nullptr; }
  /// S4. Does nothing if somebody else makes it.
  void make_deferred_call();

 protected:
  ~shared_state_base() { delete deferred_.load(std::memory_order_relaxed); }
  std::exception_ptr failure_;

 private:
  friend struct waitable_access;
  static constexpr std::uint64_t pending = 0, being_written = 1, ready = 2;
  wait_queue queue_;
  atomic<std::uint32_t> references_{1};
  atomic<bool> future_taken_{false};
  atomic<deferred_call*> deferred_{nullptr};
};

[[noreturn]] void throw_without_state(const char* call);
[[noreturn]] void throw_called_twice();

/// The form in which an R is kept.
template <class R>
using kept_result =
    std::conditional_t<std::is_void_v<R>, std::monostate,
                       std::conditional_t<std::is_reference_v<R>, std::remove_reference_t<R>*, std::remove_cv_t<R>>>;

template <class R>
class shared_state : public shared_state_base {
 public:
  template <class... Args>
  void set_value(Args&&... args) {
    begin_writing();
    try {
      value_.emplace(std::forward<Args>(args)...);
    } catch (...) {
      abandon_writing();
      throw;
    }
    end_writing();
  }

  /// The result of a ready state; rethrows the exception.
  [[nodiscard]] kept_result<R>& result() {
    if (failure_) std::rethrow_exception(failure_);
    return *value_;
  }

 private:
  std::optional<kept_result<R>> value_;
};

/// A counted reference to a state, or none.
template <class R>
class state_reference {
 public:
  state_reference() noexcept = default;
  explicit state_reference(shared_state<R>* adopted) noexcept : state_{adopted} {}
  state_reference(const state_reference& other) noexcept : state_{other.state_} {
    if (state_ != nullptr) state_->refer();
  }
  state_reference(state_reference&& other) noexcept : state_{std::exchange(other.state_, nullptr)} {}
  state_reference& operator=(state_reference other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~state_reference() {
    if (state_ != nullptr && state_->let_go()) delete state_;
  }
  [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr; }
  /// Throws usage_error, naming `call`, if there is none.
  [[nodiscard]] shared_state<R>& get(const char* call) const {
    if (state_ == nullptr) [[unlikely]]
      throw_without_state(call);
    return *state_;
  }

 private:
  shared_state<R>* state_ = nullptr;
};

}  // namespace ramie::detail
