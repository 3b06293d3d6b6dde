// Options as given, completed from the environment, checked.
#pragma once

#include <ramie/sched/options.hpp>

namespace ramie::detail {

/// Fills in what is left open: from RAMIE_WORKERS, RAMIE_PLACEMENT, RAMIE_STACK_SIZE (bytes, or with suffix K or M),
/// else from the machine. Throws invalid_argument, naming option or variable, value and range.
runtime_options resolve(runtime_options options);

}  // namespace ramie::detail
