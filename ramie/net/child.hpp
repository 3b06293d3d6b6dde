// Child processes: started with pipes, waited for by fibers, killed when their owner goes.
#pragma once

#include <ramie/net/pipe.hpp>
#include <ramie/poll/descriptor.hpp>

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

namespace ramie::net {

/// Where a standard stream of a child comes from or goes to.
enum class child_io {
  inherit,  // this process's own
  null,     // /dev/null
  pipe,     // a pipe whose other end the `child` has
  to_out,   // standard error only: where standard output goes
};

struct child_options {
  child_io in = child_io::inherit;
  child_io out = child_io::inherit;
  child_io err = child_io::inherit;
  std::string directory{};                                // to run in; empty: this process's
  std::optional<std::vector<std::string>> environment{};  // "NAME=value" each, all of it; none: this process's
  /// It leads a process group of its own (setpgid(2)): signals go to the whole group, and what is left of that is
  /// killed when `wait`, `try_wait` or the destructor finds that the child has ended. So what it has started ends with
  /// it, unless it has left the group. Such a group is not in the foreground of a terminal: it cannot read from it, and
  /// ^C does not reach it.
  bool own_group = false;
  /// Of this process, which the child gets as 3, 4, ...; they stay open here. Those of ramie's sockets and pipes do not
  /// block, there neither.
  std::vector<int> descriptors{};
  std::size_t output_most = std::size_t{64} << 20;  // run_child: bytes of out and of err that are kept, each
  /// run_child: how long it waits for the end of the pipes once the process has ended. Processes that it has started,
  /// and that live on, may have them. Then what has come by that time is the output.
  std::chrono::nanoseconds output_wait = std::chrono::nanoseconds::max();
};

/// How a child ended.
struct child_status {
  int code = 0;    // what it returned from main or gave to exit
  int signal = 0;  // the signal that killed it; 0: none did
  [[nodiscard]] bool success() const noexcept { return code == 0 && signal == 0; }
  /// "exited with 1", "killed by signal 9 (Killed)".
  [[nodiscard]] std::string to_string() const;
  friend bool operator==(const child_status&, const child_status&) noexcept = default;
};

/// A child process, started by a thread of the library's own that lives as long as this process: `setpriv --pdeathsig
/// KILL PROGRAM` ends with this process, even if that is killed. What the kernel keeps for each thread (capabilities,
/// filters of system calls, niceness) it gets from the thread that starts the first child of all: so give up privileges
/// before that. Its owner waits for it or, by destroying it, kills it: a fiber that is cancelled while it waits leaves
/// no process behind. All descriptors but the three standard ones and those that it is given are closed in the child;
/// its signal mask is empty, and signals that this process handles or SIGPIPE have their default actions there.
class child {
 public:
  child() noexcept = default;
  /// Starts arguments[0], looked for in PATH if it has no slash. Suspends while the process starts. Throws io_error
  /// that names the program (ENOENT if there is none), invalid_argument if `arguments` is empty, `cancelled` (then
  /// nothing was started), resource_error.
  explicit child(std::vector<std::string> arguments, const child_options& options = {},
                 std::source_location where = std::source_location::current());
  child(child&& other) noexcept;
  child& operator=(child&& other) noexcept;
  /// Kills the process (SIGKILL) unless it has been waited for, and suspends until it has ended. No stop request or
  /// deadline reaches that wait.
  ~child();

  /// Suspends until the process has ended. May be called again: it returns the same. One fiber at a time. Throws
  /// `cancelled`; io_error (ECHILD) if this process ignores SIGCHLD or has waited for it elsewhere.
  child_status wait(std::source_location where = std::source_location::current());
  /// How it has ended, if it has. Does not suspend. Not during `wait`. Throws as `wait` does, but not `cancelled`.
  [[nodiscard]] std::optional<child_status> try_wait();
  /// Asks it to end (SIGTERM), and kills it (SIGKILL) if it has not ended after `grace`. Suspends until it has ended.
  /// Throws as `wait` and `kill` do.
  child_status terminate(std::chrono::nanoseconds grace, std::source_location where = std::source_location::current());
  /// Sends a signal; does nothing if the process has ended and was waited for. Never reaches another process that has
  /// its number by now (with `own_group`, or in a kernel without pidfds: unless this process ignores SIGCHLD, or waits
  /// for the child elsewhere in the same instant). Any thread, also during `wait`. Throws io_error (EPERM, EINVAL).
  void kill(int signal = SIGTERM);
  [[nodiscard]] pid_t id() const noexcept { return id_; }
  /// Lets it go on by itself: nobody waits for it or kills it any more, and our ends of its pipes are closed. Returns
  /// its id. No call is under way.
  pid_t release() noexcept;

  /// Our ends of the pipes that the options asked for; the others are closed streams. Close `in` to end its input.
  [[nodiscard]] pipe_writer& in() noexcept { return in_; }
  [[nodiscard]] pipe_reader& out() noexcept { return out_; }
  [[nodiscard]] pipe_reader& err() noexcept { return err_; }

 private:
  friend struct detail::socket_access;
  void end() noexcept;
  bool reap();
  void check_started(const char* call) const;

  /// There are no pidfds here: it is looked for now and then.
  [[nodiscard]] bool by_number() const noexcept { return id_ != 0 && process_.get() == nullptr; }

  /// Its number is used, for itself or for its group.
  [[nodiscard]] bool uses_number() const noexcept { return by_number() || leads_group_; }

  detail::handle process_;  // a pidfd
  pid_t id_ = 0;
  bool leads_group_ = false;
  std::optional<child_status> status_;
  pipe_writer in_;
  pipe_reader out_, err_;
};

struct child_output {
  child_status status;
  std::string out, err;
};
/// Runs a child to its end: gives it `input`, collects what it writes. `in`, `out` and `err` of the options that are
/// `inherit` become pipes. Suspends (a plain thread blocks, and starts a thread for each pipe). Throws what `child`
/// throws; io_errc::too_long if there is more output than options.output_most; then, as by any exception, the process
/// is killed.
child_output run_child(std::vector<std::string> arguments, std::string_view input = {}, child_options options = {},
                       std::source_location where = std::source_location::current());

}  // namespace ramie::net
