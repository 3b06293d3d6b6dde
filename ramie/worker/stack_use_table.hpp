// Measurements of stack use, for the worker that measures and for reports.
#pragma once

#include <ramie/stack/stack.hpp>
#include <ramie/task/task.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ramie::detail {

/// All of one name. Rows are never removed.
struct stack_use_row {
  std::array<char, 64> name{};      // "": known by `type`
  const task_type* type = nullptr;  // null: those for which there was no row
  std::atomic<std::uint64_t> measured{0};
  std::atomic<std::size_t> most{0};
  std::atomic<std::size_t> usable{0};
};

/// `t` begins on `here`, where the caller runs. Allocates; if it cannot, `t` is not measured.
void begin_stack_use(task& t, stack& here) noexcept;
/// `t` ends; only if its extras say that it began with the call above.
void end_stack_use(const task& t, const stack& here) noexcept;

/// Calls `visit(row)` for each row. Async-signal-safe, any thread.
void for_each_stack_use(void (*visit)(void* context, const stack_use_row& row), void* context) noexcept;

}  // namespace ramie::detail
