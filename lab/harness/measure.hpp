// Measures one style in this process.
#pragma once

#include <lab/harness/request.hpp>
#include <lab/harness/workload.hpp>

namespace ramie::lab {

/// Warms up, then runs yardstick and style alternately, A B A B, for about equal times. An exception of a style ends
/// the measurement and is in the record's `error`. `w` must be the workload that `r` names. Throws usage_error if `w`
/// has no such style or ramie no such placement.
///
/// Memory is that of the whole process, so call it once in a process for figures to keep; see measure_in_children().
record measure_here(const workload& w, const request& r);

}  // namespace ramie::lab
