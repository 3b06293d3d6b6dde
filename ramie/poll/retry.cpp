#include <ramie/poll/retry.hpp>

#include <ramie/fiber/this_fiber.hpp>
#include <ramie/worker/worker.hpp>

namespace ramie::net::detail {

namespace {

constexpr std::uint32_t in_a_row_most = 64;  // about 0.2 ms of small messages. A guess; tokio allows 128

/// Of this thread. A fiber that has been somewhere else meanwhile was dispatched again.
struct streak {
  std::uint64_t dispatches = 0;
  std::uint32_t calls = 0;
};
constinit thread_local streak latest;

}  // namespace

RAMIE_NOINLINE void give_way() noexcept {
  const ramie::detail::worker* const w = ramie::detail::worker::current();
  if (w == nullptr) return;
  const std::uint64_t dispatches = w->dispatches.value();
  if (latest.dispatches != dispatches) latest = {dispatches, 0};
  if (++latest.calls < in_a_row_most) return;
  latest.calls = 0;
  this_fiber::yield();
}

}  // namespace ramie::net::detail
