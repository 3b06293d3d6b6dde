// The yardstick of workloads without recursion: one function call for each unit.
#pragma once

#include <lab/harness/session.hpp>
#include <lab/harness/workload.hpp>

#include <cstdint>

namespace ramie::lab {

/// Makes `count` noinline calls, one after the other.
run_result run_plain_calls(session& s, std::int64_t count);

}  // namespace ramie::lab
