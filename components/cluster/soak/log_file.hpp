// What a process writes down of what it did, for the judge of history.hpp.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace soak {

/// Lines that stay when the process is killed.
class history_file {
 public:
  explicit history_file(const std::string& path) : file_{::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600)} {}
  history_file(const history_file&) = delete;
  history_file& operator=(const history_file&) = delete;
  ~history_file() { ::close(file_); }
  void write(std::string line) const {
    line += '\n';
    if (::write(file_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) std::perror("history");
  }

 private:
  int file_;
};

}  // namespace soak
