// Runs another program and collects what it prints.
#pragma once

#include <string>
#include <vector>

namespace ramie::lab {

struct child_outcome {
  std::string output;  // all of its standard output
  int exit_code = 0;   // meaningless if `signal` is not 0
  int signal = 0;      // what ended it, or 0

  [[nodiscard]] bool ended_well() const noexcept { return signal == 0 && exit_code == 0; }
  /// "ended with exit code 3", "was ended by signal 11 (Segmentation fault)".
  [[nodiscard]] std::string describe() const;
};

/// Runs `command` (path and arguments) and waits for its end. Standard input and standard error are shared with this
/// process. Throws lab_error if it cannot be started.
child_outcome run_child(const std::vector<std::string>& command);

/// The path of the running program. Throws lab_error if the kernel does not tell.
std::string this_program();

/// Called in a measuring child: asks the kernel to end it when the process that waits for it ends.
void die_with_parent() noexcept;

}  // namespace ramie::lab
