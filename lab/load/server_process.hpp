// A server under measurement: a process of its own, bound to its own cores, whose processor time and memory are told.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace ramie::lab {

/// The cores of a measurement: the server has as many as it has workers, what drives it has the others, or all if
/// there are no others.
struct core_split {
  std::vector<int> server;
  std::vector<int> driver;
};

/// Of the cores that the calling thread might run on at the first call: bind_to() changes nothing. Throws lab_error if
/// the kernel does not tell.
core_split split_cores(int workers);

/// From now on the calling thread runs on `cores` only. Throws lab_error if the kernel refuses.
void bind_to(const std::vector<int>& cores);

class server_process {
 public:
  /// Starts `command` (path and arguments) on `cores`, and waits until it has printed the line `port NUMBER`. Throws
  /// lab_error if it cannot be started or ends before.
  server_process(const std::vector<std::string>& command, const std::vector<int>& cores);
  server_process(const server_process&) = delete;
  server_process& operator=(const server_process&) = delete;
  /// Ends it by SIGKILL.
  ~server_process();

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// Processor time of all its threads so far. Throws lab_error if it has ended.
  [[nodiscard]] double cpu_seconds() const;
  /// Throws lab_error if it has ended.
  [[nodiscard]] std::int64_t resident_bytes() const;

 private:
  void read_port();
  void end() noexcept;

  std::string name_;
  pid_t pid_ = -1;
  int output_ = -1;
  std::uint16_t port_ = 0;
};

}  // namespace ramie::lab
