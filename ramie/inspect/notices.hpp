// What is told of a program once, on standard error, since it is seldom meant (base/notice.hpp); and what the report of
// a stack overflow says of the fiber.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ramie::detail {

class scheduler;
struct stack;

/// The destructor of a handle has stopped a fiber. `returns_to`: the code after the caller's call, which stands for the
/// place. Any thread.
void tell_of_stopping_handle(const char* fiber_name, const void* returns_to) noexcept;

/// `of` is about to end: tells of detached fibers that still wait. Any thread.
void tell_of_those_left(scheduler& of) noexcept;

/// Why `of` has not ended yet; see reporters::slow_end. Any thread.
void tell_of_slow_end(scheduler& of) noexcept;

/// An occupant_namer and an overflow_tracer.
void describe_occupant(const stack& s, char* buffer, std::size_t size) noexcept;
void trace_overflow(const stack& s, const void* machine_context) noexcept;

}  // namespace ramie::detail
