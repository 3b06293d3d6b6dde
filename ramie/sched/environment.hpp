// Options as given, completed from the environment, checked.
#pragma once

#include <ramie/machine/test_options.hpp>
#include <ramie/sched/options.hpp>

namespace ramie::detail {

/// Fills in what is left open: from RAMIE_WORKERS, RAMIE_PLACEMENT, RAMIE_PIN_THREADS, RAMIE_PAINT_STACKS and
/// RAMIE_STACK_SIZE (bytes, or with suffix K or M), else from the machine. Throws invalid_argument, naming option or
/// variable, value and range.
runtime_options resolve(runtime_options options);

/// What is left open there from RAMIE_MIGRATE_ALWAYS and RAMIE_SPREADING. Throws invalid_argument.
test_options resolve(test_options options);

/// What a runtime may have; picked out of thin air, far above what has been tried.
inline constexpr int workers_most = 1024;
inline constexpr int spares_most = 256;
inline constexpr int blocking_threads_most = 4096;

}  // namespace ramie::detail
