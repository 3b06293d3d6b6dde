// Runs a list of measurements, each in a process of its own, and reports progress on standard error.
#pragma once

#include <lab/harness/request.hpp>
#include <lab/harness/workload.hpp>

#include <functional>
#include <string>
#include <vector>

namespace ramie::lab {

/// The command that makes this program measure the request in the next argument and print the record.
inline constexpr const char* child_command = "measure-in-this-process";

/// Measures in a child process, a run of this very program; in one child for each run if the workload asks for that. A
/// child that crashes, or prints no record, gives a record that is not ok.
record measure_in_children(const workload& w, const request& r);

/// Measures all, one after the other, and passes each record on as soon as it is complete.
void measure_all(const std::vector<request>& requests, const std::function<void(const record&)>& receive);

/// The work of the child. `text` is a request as JSON; the record goes to standard output. Returns the exit code.
int measure_as_child(const std::string& text);

/// "skynet fork_join, 2 workers, leaves=1000000".
std::string describe(const request& r);

/// "6.12 ns a fiber, 1.65 x plain", or what went wrong.
std::string describe_result(const record& r);

}  // namespace ramie::lab
