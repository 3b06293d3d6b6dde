#include <ramie/future/future.hpp>

#include <string>

namespace ramie {

namespace detail {

void throw_without_state(const char* call) {
  throw future_error{
      std::future_errc::no_state,
      std::string{"ramie: "} + call + ": no future, promise or task: default-constructed, moved from, or used up"};
}

void throw_called_twice() {
  throw future_error{std::future_errc::promise_already_satisfied,
                     "ramie: packaged_task: called twice without a reset in between"};
}

void shared_state_base::make_deferred_call() {
  const std::unique_ptr<deferred_call> mine{deferred_.exchange(nullptr, std::memory_order_acq_rel)};
  if (mine != nullptr) mine->make();
}

bool shared_state_base::wait_before(steady_time deadline, const std::source_location& where) {
  const std::uint64_t value = queue_.lock();
  if (value != ready)
    return queue_.unlock_and_wait_until(value, {"future", where}, deadline,
                                        [&] { return wait_before(deadline, where); });
  queue_.unlock(ready);
  return true;
}

void shared_state_base::begin_writing() {
  const std::uint64_t value = queue_.lock();
  queue_.unlock(value == pending ? being_written : value);
  if (value != pending)
    throw future_error{std::future_errc::promise_already_satisfied, "ramie: promise: the result was already set"};
}

void shared_state_base::abandon_writing() noexcept {
  static_cast<void>(queue_.lock());
  queue_.unlock(pending);
}

void shared_state_base::end_writing() noexcept {
  claimed_waits woken;
  static_cast<void>(queue_.lock());
  queue_.claim_all(woken);
  queue_.unlock(ready);
}

void shared_state_base::set_exception(std::exception_ptr failure) {
  begin_writing();
  failure_ = std::move(failure);
  end_writing();
}

void shared_state_base::break_promise() noexcept {
  if (is_ready()) return;
  try {
    set_exception(std::make_exception_ptr(
        broken_promise{"ramie: promise: it went away without a result, so this future will never have one"}));
  } catch (const usage_error&) {
    // Another writer stores a result at this moment.
  }
}

void shared_state_base::take_future() {
  if (future_taken_.exchange(true, std::memory_order_relaxed))
    throw future_error{std::future_errc::future_already_retrieved, "ramie: promise: get_future was called before"};
}

}  // namespace detail

}  // namespace ramie
