// The last report of a program that is deadlocked: D3 of sched/deadlock.cpp.
#pragma once

namespace ramie::detail {

class scheduler;

/// Lists the fibers of `of` that wait, with what they wait for and where, and a dump, on standard error. Ends the
/// process with status 2. Any thread.
[[noreturn]] void report_deadlock(const scheduler& of) noexcept;

}  // namespace ramie::detail
