// A kernel of the simulator's own, in place of poll/system.cpp: numbers, pipes, FIFOs, sockets and event sets. What the
// real one leaves open is chosen by the run's seed.
//
//  K1 A call is one step, before which others may run. It sees what was done before earlier calls on the same file, and
//     what its caller did is seen by later ones: as by the file's lock.
//  K2 There is room for a few bytes. A write takes what fits, or less. A read of what is no TCP may return less than there
//     is. Event sets report some of their files.
//  K3 An event set reports a file that has changed since it was reported last, or that was ready when it was added; and it
//     says what holds when it is asked, not what has changed. A file with nothing to say by then is passed over.
//  K4 Room is told of when half of it is free, to those whose call found too little; a pipe tells when it was full.
//  K5 The number of a new file is the smallest that is free, and below a limit. Accept wants it before it takes anything.
//  K6 A full backlog refuses a local socket at once, and leaves one of TCP waiting until there is room.
//  K7 Who closes a socket without having read all resets it: its peer reads what has come, and then that. Else the end of
//     a TCP stream is that of one direction; the first write to it succeeds, and is answered by a reset.
//  K8 Calls fail as the program has asked, and are interrupted now and then. One by a number that is not open ends the run.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ramie::interleave {

struct kernel_settings {
  int descriptors_most = 64;
  std::size_t room = 4;      // bytes that a pipe holds, and each way of a connection
  bool short_counts = true;  // K2
  bool interrupts = true;    // K8
};

enum class kernel_call : std::uint8_t {
  socket,
  pipe,
  bind,
  listen,
  connect,
  accept,
  read,   // of any kind
  write,  // likewise
  new_set,
  new_event,
  set_add,
  count
};

/// A program begins with it: no file is open, and nothing fails.
void begin_kernel(const kernel_settings& s = {});
/// The n-th of these calls from now on, from 1, fails with this errno, before it has done anything.
void fail_call(kernel_call c, int nth, int code);
/// Of them since begin_kernel.
[[nodiscard]] int calls_made(kernel_call c) noexcept;
/// Calls that found nothing to do, EAGAIN, and looks that found the same.
[[nodiscard]] int futile_calls() noexcept;
/// Numbers that are open: a check that none is lost.
[[nodiscard]] int open_numbers() noexcept;

/// A FIFO whose ends are opened as often as one likes; here that never waits for the other end. What is returned is
/// a number, or minus an errno.
class kernel_fifo {
 public:
  kernel_fifo();
  [[nodiscard]] int open_to_read();
  [[nodiscard]] int open_to_write();

 private:
  std::size_t which_;
};

}  // namespace ramie::interleave
