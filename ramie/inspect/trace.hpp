// A recording, as a file for trace viewers.
#pragma once

#include <string>

namespace ramie::detail {

class scheduler;

/// The last recording of `s` in the JSON format of Chrome's trace viewer, which ui.perfetto.dev reads too: a track for
/// each worker, a slice for each turn of a fiber, arrows from wakers to the woken. Throws std::bad_alloc. Best
/// after the recording has been stopped.
[[nodiscard]] std::string trace_as_json(scheduler& s);

}  // namespace ramie::detail
