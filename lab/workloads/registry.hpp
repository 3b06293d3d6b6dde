// All workloads. A new one is a file in this folder and a line in registry.cpp.
#pragma once

#include <lab/harness/workload.hpp>

#include <string_view>
#include <vector>

namespace ramie::lab {

/// In the order of `ramie-lab list`, the hidden ones last.
const std::vector<workload>& all_workloads();

/// Null if there is none of that name.
const workload* find_workload(std::string_view name);

// Each is defined in the file of its name.
workload skynet_workload();
workload sum_workload();
workload fib_workload();
workload yield_workload();
workload spawn_workload();
workload memory_workload();
workload pingpong_workload();
workload stream_workload();
workload select_workload();
workload mpmc_workload();
workload affinity_workload();
workload mutex_workload();
workload timers_workload();
workload operations_workload();
workload overhead_workload();
workload ticker_workload();
workload wake_workload();
workload idle_workload();
workload actors_workload();
workload idle_actors_workload();
workload supervision_workload();
workload mixed_workload();
workload echo_workload();
workload http_workload();
std::vector<workload> algorithm_workloads();
std::vector<workload> task_suite_workloads();
workload wavefront_workload();
workload files_workload();
workload self_test_workload();

}  // namespace ramie::lab
