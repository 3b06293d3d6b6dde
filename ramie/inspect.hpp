// What a running program does: dumps, the use of stacks, statistics.
#pragma once

#include <ramie/inspect/dump.hpp>
#include <ramie/inspect/stack_use.hpp>
#include <ramie/runtime/metrics.hpp>
#include <ramie/runtime/statistics.hpp>
