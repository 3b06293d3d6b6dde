// What a running program does: dumps, snapshots, the use of stacks, statistics, what components show.
#pragma once

#include <ramie/inspect/dump.hpp>
#include <ramie/inspect/stack_use.hpp>
#include <ramie/inspect/status.hpp>
#include <ramie/runtime/metrics.hpp>
#include <ramie/runtime/snapshot.hpp>
#include <ramie/runtime/statistics.hpp>
