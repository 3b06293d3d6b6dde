// The two kinds of errors of the lab.
#pragma once

#include <stdexcept>
#include <string>

namespace ramie::lab {

/// The command line asks for something impossible. Ends the program with exit code 2. The message names the option
/// and the limit.
class usage_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Something outside of the measured code failed: a child could not be started, a file not be written.
class lab_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline constexpr int exit_fine = 0;
inline constexpr int exit_wrong_result = 1;
inline constexpr int exit_usage = 2;

}  // namespace ramie::lab
