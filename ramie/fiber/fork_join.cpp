#include <ramie/fiber/fork_join.hpp>

#include <ramie/fiber/this_fiber.hpp>
#include <ramie/task/task.hpp>

#include <exception>
#include <string>

namespace ramie {

void detail::report_second_failure(const std::exception_ptr& failure) noexcept {
  report_lost_exception(nullptr, failure, "a branch of fork_join failed after another one", false);
}

}  // namespace ramie
