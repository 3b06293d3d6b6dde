// The wait for a file descriptor, for reports: dumps, gdb.
#pragma once

#include <ramie/task/wait.hpp>

namespace ramie::detail {

/// What such waits are for. By the address of its reason a wait is recognised as one.
struct io_reasons {
  char read[5] = "read";
  char write[6] = "write";
  char accept[7] = "accept";
  char connect[8] = "connect";
  char receive[8] = "receive";
  char send[5] = "send";
  char signal[7] = "signal";
  char watch[6] = "watch";
  char child[17] = "wait for a child";
  char readable[14] = "wait_readable";
  char writable[14] = "wait_writable";
};
extern const io_reasons io_reason;

[[nodiscard]] inline bool is_io_reason(const char* reason) noexcept {
  const auto at = reinterpret_cast<std::uintptr_t>(reason), first = reinterpret_cast<std::uintptr_t>(&io_reason);
  return at - first < sizeof io_reason;
}

/// The wait_site of one whose reason is among them. The descriptor stays open as long as the wait.
struct io_wait_site : wait_site {
  int fd;
  bool writes;  // waits for room, not for data
};

}  // namespace ramie::detail
