#include <ramie/task/ready_point.hpp>

#include <ramie/machine/cycles.hpp>
#include <ramie/task/clean_up.hpp>
#include <ramie/task/region.hpp>

namespace {
// In the simulator each call looks, so that a run can be repeated. A guess: then a look, which takes as long as a few
// calls, or some ten if there is a deadline, does not show.
constexpr std::uint32_t least = RAMIE_INTERLEAVE ? 1 : 32;

/// From 0 to 63. The counter's lowest bits need not be random: some advance by more than one.
std::uint32_t more() noexcept {
  return RAMIE_INTERLEAVE ? 0 : static_cast<std::uint32_t>(ramie::detail::cycles()) * 0x9e3779b9u >> 26;
}
}  // namespace

__thread std::uint32_t ramie_ready_calls __attribute__((tls_model("initial-exec"), used)) = least;

namespace ramie::detail {

RAMIE_NOINLINE bool looks_and_is_to_stop() noexcept {
  ramie_ready_calls = least + more();
  return is_to_stop();
}

void stop_if_asked() {
  if (looks_and_is_to_stop()) begin_again([] {});
}

}  // namespace ramie::detail
