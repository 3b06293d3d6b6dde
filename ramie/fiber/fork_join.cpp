#include <ramie/fiber/fork_join.hpp>

#include <ramie/fiber/this_fiber.hpp>
#include <ramie/task/task.hpp>

#include <exception>
#include <utility>

namespace ramie {

void detail::outrank_or_report(std::exception_ptr failure) {
  const std::exception_ptr first = std::current_exception();
  if (first != nullptr && rank_of(failure) > rank_of(first)) std::rethrow_exception(std::move(failure));
  report_lost_exception(nullptr, failure, "a branch of fork_join failed after another one", false);
}

}  // namespace ramie
