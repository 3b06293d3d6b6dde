#include <ramie/poll/retry.hpp>

#include <ramie/fiber/this_fiber.hpp>
#include <ramie/task/ready_point.hpp>
#include <ramie/worker/worker.hpp>

#include <cstdint>
#include <utility>

namespace ramie::net::detail {

namespace {

constexpr std::uint32_t in_a_row_most = ramie::detail::worker::turns_most;  // about 0.2 ms of small messages

}  // namespace

RAMIE_NOINLINE void give_way() {
  ramie::detail::ready_point();
  ramie::detail::worker* const w = ramie::detail::worker::current();
  if (w == nullptr) return;
  // A fiber that has been somewhere else meanwhile was dispatched again.
  if (const std::uint64_t now = w->dispatches.value(); std::exchange(w->streak.counted_in, now) != now)
    w->streak.calls = 0;
  if (++w->streak.calls < in_a_row_most) return;
  w->streak.calls = 0;
  w->leaves_for_events();
  this_fiber::yield();
  if (ramie::detail::worker* const here = ramie::detail::worker::current(); here != nullptr)
    here->goes_on_after_events();
}

}  // namespace ramie::net::detail
