// What a worker does next.
#pragma once

#include <ramie/task/ready_item.hpp>

#include <cstdint>

namespace ramie::detail {

struct fork_frame;

/// What a worker does next.
struct work {
  stack* resume = nullptr;
  task* start = nullptr;
  fork_frame* job = nullptr;
  std::uint64_t job_run = 0;  // the job's state when it was taken
  task* job_owner = nullptr;
  bool stop = false;  // leave the loop
  explicit operator bool() const noexcept { return resume != nullptr || start != nullptr || job != nullptr || stop; }
};

[[nodiscard]] inline work to_work(ready_item item) noexcept {
  if (item.is_resident()) return {.start = item.as_resident()};
  return {.resume = item.as_stack()};
}

}  // namespace ramie::detail
