// How many system calls another process makes, by strace(1): the kernel's own counters need rights that few have.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace ramie::lab {

class call_counter {
 public:
  /// Counts from now on, in all threads of `pid`, which runs some twenty times slower meanwhile. Throws lab_error if
  /// there is no strace or it may not look.
  explicit call_counter(pid_t pid);
  call_counter(const call_counter&) = delete;
  call_counter& operator=(const call_counter&) = delete;
  ~call_counter();

  /// Calls that began since the constructor returned, and few before. Once. Throws lab_error.
  std::int64_t stop();

 private:
  pid_t strace_ = -1;
  std::string summary_;  // a file
};

}  // namespace ramie::lab
