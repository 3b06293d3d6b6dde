#include <ramie/sync/barrier.hpp>

#include <string>

namespace ramie::detail {

namespace {
constexpr std::uint64_t count_mask = 0x7fff'ffff;
}

barrier_core::barrier_core(std::ptrdiff_t expected)
    : queue_{static_cast<std::uint64_t>(expected) & count_mask}, expected_{static_cast<std::uint64_t>(expected)} {
  if (expected < 0 || expected_ > count_mask)
    throw invalid_argument{"ramie: barrier: the number of arrivals is " + std::to_string(expected) +
                           "; it must be from 0 to " + std::to_string(count_mask)};
}

bool barrier_core::arrive(std::ptrdiff_t n, bool drop, std::uint32_t& phase) {
  const std::uint64_t value = queue_.lock();
  const std::uint64_t missing = value & count_mask;
  if (n < 0 || static_cast<std::uint64_t>(n) > missing) [[unlikely]] {
    queue_.unlock(value);
    throw usage_error{"ramie: barrier: arrive(" + std::to_string(n) + "), but " + std::to_string(missing) +
                      " arrivals are still expected in this phase"};
  }
  phase = phase_of(value);
  if (drop) --expected_;
  const bool last = n != 0 && missing == static_cast<std::uint64_t>(n);
  queue_.unlock(value - static_cast<std::uint64_t>(n));
  return last;
}

void barrier_core::finish() noexcept {
  claimed_waits woken;
  const std::uint64_t value = queue_.lock();
  queue_.claim_all(woken);
  queue_.unlock(std::uint64_t{(phase_of(value) + 1) & count_mask} << 31 | expected_);
}

}  // namespace ramie::detail
