// What all workers of a runtime are blocked in: D4 of sched/deadlock.cpp.
#pragma once

#include <cstdint>

namespace ramie::detail {

class scheduler;

/// Looks for a lock of the C or C++ library (the guard of a function-local static, std::call_once, a std::mutex) that
/// half of the workers or more are blocked in, and tells on standard error which one that is. False if there is none.
/// Any thread but those.
bool report_stall(const scheduler& of, std::int64_t since_ns) noexcept;

}  // namespace ramie::detail
