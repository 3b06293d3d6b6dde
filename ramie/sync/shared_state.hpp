// What a promise and its futures share: a result that comes once, or the exception in its place.
//
//  S1 The number: pending, being written, ready. A writer turns pending into being written, so a second one finds out
//     that it is late; it writes with the lock free, because moving a value may do anything.
//  S2 Then it makes it ready and lets all waiters go on. From then on nobody writes: readers need no lock.
//  S3 References are counted; the last one deletes. A writer has one while it writes, so a reader may let go of its own
//     as soon as it has the result.
// The rest as in wait_queue.hpp.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/sync/deadline.hpp>
#include <ramie/sync/wait_queue.hpp>

#include <exception>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>
#include <variant>

namespace ramie::detail {

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
    if (is_ready()) return;
    if (const std::uint64_t value = queue_.lock(); value == ready) queue_.unlock(ready);
    else queue_.unlock_and_wait(value, {"future", where});
  }
  bool wait_before(steady_time deadline, const std::source_location& where);

  /// S1. Throws usage_error if there is a result, or one on its way.
  void begin_writing();
  void abandon_writing() noexcept;
  /// S2.
  void end_writing() noexcept;

  void set_exception(std::exception_ptr failure);
  /// For a promise that goes away: an exception, unless there is a result.
  void break_promise() noexcept;
  /// The one future. Throws usage_error the second time.
  void take_future();

 protected:
  ~shared_state_base() = default;
  std::exception_ptr failure_;

 private:
  static constexpr std::uint64_t pending = 0, being_written = 1, ready = 2;
  wait_queue queue_;
  atomic<std::uint32_t> references_{1};
  atomic<bool> future_taken_{false};
};

[[noreturn]] void throw_without_state(const char* call);
[[noreturn]] void throw_called_twice();

/// What is kept of an R.
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
