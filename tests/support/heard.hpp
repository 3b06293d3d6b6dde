// What a process says on standard error, for tests that have to wait until it has said it.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <string>

namespace ramie::detail::testing {

/// Standard error of this process, read by itself.
class heard {
 public:
  heard() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    in_ = ends[0];
    real_ = ::dup(STDERR_FILENO);
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[1]);
  }
  heard(const heard&) = delete;
  heard& operator=(const heard&) = delete;
  /// Passes everything on, up to the line that has `what`. Does one of these lines have `other`? Blocks the thread.
  bool until(const std::string& what, const std::string& other = "") {
    bool found = false;
    for (std::string line; line.find(what) == std::string::npos;) {
      line.clear();
      for (char c = 0; c != '\n';) {
        if (::read(in_, &c, 1) != 1) std::abort();
        line += c;
      }
      found = found || line.find(other) != std::string::npos;
      pass_on(line);
    }
    return found;
  }
  /// How many lines with `what` there are, once all has been said.
  int count(const std::string& what) {
    ::dup2(real_, STDERR_FILENO);
    std::string all, line;
    for (char c = 0; ::read(in_, &c, 1) == 1;) all += c;
    pass_on(all);
    int n = 0;
    for (std::size_t at = 0; (at = all.find(what, at)) != std::string::npos; ++at) ++n;
    return n;
  }

 private:
  void pass_on(const std::string& text) const {
    if (::write(real_, text.data(), text.size()) < 0) std::abort();
  }
  int in_, real_;
};

}  // namespace ramie::detail::testing
