// Works through a list of measurements, each in a process of its own, and says on standard error how far it is.
#pragma once

#include <lab/harness/request.hpp>
#include <lab/harness/workload.hpp>

#include <functional>
#include <string>
#include <vector>

namespace ramie::lab {

/// The command that this program understands as: measure the request of the next argument, and print the record.
inline constexpr const char* child_command = "measure-in-this-process";

/// Measures in a child, a run of this very program; in one child a run if the workload wants that. A child that
/// crashes, or prints no record, is a record that is not ok.
record measure_in_children(const workload& w, const request& r);

/// Measures all, one after the other, and passes each record on as soon as it is there.
void measure_all(const std::vector<request>& requests, const std::function<void(const record&)>& receive);

/// What the child does. `text` is a request as JSON, standard output receives the record. Returns the exit code.
int measure_as_child(const std::string& text);

/// "skynet fork_join, 2 workers, leaves=1000000".
std::string describe(const request& r);

/// "6.12 ns a fiber, 1.65 x plain", or what went wrong.
std::string describe_result(const record& r);

}  // namespace ramie::lab
