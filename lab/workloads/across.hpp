// Experiment 8: actors of two processes. Only where ramie::cluster is built, whose CMakeLists.txt defines
// RAMIE_LAB_CLUSTER.
#pragma once

#include <lab/harness/workload.hpp>

#include <vector>

namespace ramie::lab {

/// The hidden command that runs serve_across().
inline constexpr const char* across_far_command = "across_far";

/// The other process, with a nats-server of its own: prints the line `ready URL PID`, the server's, and serves until
/// the process that started it ends.
int serve_across(int workers);

std::vector<workload> across_workloads();

}  // namespace ramie::lab
