#include <ramie/fiber/stop_token.hpp>

#include <ramie/base/error.hpp>
#include <ramie/fiber/this_fiber.hpp>

#include <chrono>

namespace ramie::detail {

token_watch::token_watch() {
  // With a name it is a fiber of its own: a fork job might not run before the owner's join.
  children_.spawn(fiber_options{.name = "stop token"}, [this] {
    try {
      for (;;) this_fiber::sleep_until(std::chrono::steady_clock::time_point::max());
    } catch (const cancelled&) {
      if (!over_.load(std::memory_order_acquire)) source_.request_stop();
    }
  });
}

token_watch::~token_watch() {
  over_.store(true, std::memory_order_release);
  children_.cancel();
}

}  // namespace ramie::detail
