// The parts of semaphore, latch, wait_group, event and limited_scope that need not be inlined.
#include <ramie/base/error.hpp>
#include <ramie/sync/event.hpp>
#include <ramie/sync/latch.hpp>
#include <ramie/sync/limited_scope.hpp>
#include <ramie/sync/semaphore.hpp>
#include <ramie/sync/wait_group.hpp>

#include <string>

namespace ramie {

namespace detail {

void throw_too_many_permits(std::ptrdiff_t n, std::uint64_t free, std::ptrdiff_t most) {
  throw usage_error{"ramie: semaphore: release(" + std::to_string(n) + ") with " + std::to_string(free) +
                    " free permits; the maximum is " + std::to_string(most)};
}

void throw_bad_count(const char* what, std::ptrdiff_t count, std::ptrdiff_t most) {
  throw invalid_argument{std::string{"ramie: "} + what + ": a count of " + std::to_string(count) +
                         "; it must be from 0 to " + std::to_string(most)};
}

std::ptrdiff_t checked_limit(std::ptrdiff_t limit) {
  if (limit <= 0)
    throw invalid_argument{"ramie: limited_scope: limit is " + std::to_string(limit) + "; it must be more than 0"};
  return limit;
}

bool await_zero(wait_queue& queue, const wait_site& site, steady_time deadline) {
  const std::uint64_t left = queue.lock();
  if (left != 0)
    return queue.unlock_and_wait_until(left, site, deadline, [&] { return await_zero(queue, site, deadline); });
  queue.unlock(0);
  return true;
}

}  // namespace detail

void latch::count_down(std::ptrdiff_t n) {
  detail::claimed_waits woken;
  const std::uint64_t left = queue_.lock();
  if (n < 0 || static_cast<std::uint64_t>(n) > left) [[unlikely]] {
    queue_.unlock(left);
    throw usage_error{"ramie: latch: count_down(" + std::to_string(n) + ") with a count of " + std::to_string(left)};
  }
  const std::uint64_t rest = left - static_cast<std::uint64_t>(n);
  if (rest == 0) queue_.claim_all(woken);
  queue_.unlock(rest);
}

void wait_group::add(std::ptrdiff_t n) {
  detail::claimed_waits woken;
  const std::uint64_t before = queue_.lock();
  const std::uint64_t after = before + static_cast<std::uint64_t>(n);
  if (n < 0 && after > before) [[unlikely]] {
    queue_.unlock(before);
    throw usage_error{"ramie: wait_group: add(" + std::to_string(n) + ") with a counter of " + std::to_string(before)};
  }
  if (after == 0) queue_.claim_all(woken);
  queue_.unlock(after);
}

void event::set() noexcept {
  detail::claimed_waits woken;
  std::uint64_t value = queue_.lock();
  if (how_ == event_reset::manual) {
    queue_.claim_all(woken);
    value = 1;
  } else if (!queue_.claim_first(woken)) {
    value = 1;
  }
  queue_.unlock(value);
}

void event::reset() noexcept {
  static_cast<void>(queue_.lock());
  queue_.unlock(0);
}

bool event::wait_before(detail::steady_time deadline, const std::source_location& where) {
  if (queue_.lock() == 0)
    return queue_.unlock_and_wait_until(0, {"event", where}, deadline, [&] { return wait_before(deadline, where); });
  queue_.unlock(how_ == event_reset::manual ? 1 : 0);
  return true;
}

}  // namespace ramie
