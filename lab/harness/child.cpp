#include <lab/harness/child.hpp>

#include <lab/harness/error.hpp>

#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace ramie::lab {
namespace {

[[noreturn]] void refuse(const std::string& what, int code) {
  throw lab_error{what + ": " + std::system_category().message(code)};
}

/// As strsignal(), which is not safe for several threads.
std::string signal_name(int number) {
  const char* text = ::sigdescr_np(number);
  return text != nullptr ? text : "unknown";
}

/// Closes the descriptor in its destructor.
class file_descriptor {
 public:
  explicit file_descriptor(int fd) noexcept : fd_{fd} {}
  file_descriptor(const file_descriptor&) = delete;
  file_descriptor& operator=(const file_descriptor&) = delete;
  ~file_descriptor() { close(); }
  void close() noexcept {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  [[nodiscard]] int get() const noexcept { return fd_; }

 private:
  int fd_;
};

/// Tells posix_spawn that the child's standard output is `fd`.
class output_redirection {
 public:
  explicit output_redirection(int fd) {
    ::posix_spawn_file_actions_init(&actions_);
    if (const int code = ::posix_spawn_file_actions_adddup2(&actions_, fd, STDOUT_FILENO); code != 0)
      refuse("posix_spawn", code);
  }
  output_redirection(const output_redirection&) = delete;
  output_redirection& operator=(const output_redirection&) = delete;
  ~output_redirection() { ::posix_spawn_file_actions_destroy(&actions_); }
  [[nodiscard]] const posix_spawn_file_actions_t* get() const noexcept { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

std::string read_all(int fd) {
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t count = ::read(fd, buffer, sizeof buffer);
    if (count == 0) return text;
    if (count > 0) {
      text.append(buffer, static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      refuse("reading from a child", errno);
    }
  }
}

}  // namespace

std::string child_outcome::describe() const {
  if (signal == 0) return "ended with exit code " + std::to_string(exit_code);
  return "was ended by signal " + std::to_string(signal) + " (" + signal_name(signal) + ")";
}

child_outcome run_child(const std::vector<std::string>& command) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) refuse("pipe", errno);
  const file_descriptor from_child{ends[0]};
  file_descriptor to_us{ends[1]};

  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  const output_redirection redirection{to_us.get()};
  pid_t child = 0;
  if (const int code = ::posix_spawnp(&child, arguments.front(), redirection.get(), nullptr, arguments.data(), environ);
      code != 0) {
    refuse("starting " + command.front(), code);
  }
  to_us.close();  // otherwise the end of the child would not end its output

  child_outcome outcome;
  outcome.output = read_all(from_child.get());
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) refuse("waiting for a child", errno);
  }
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  else outcome.exit_code = WEXITSTATUS(status);
  return outcome;
}

std::string this_program() {
  std::error_code code;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", code);
  if (code) throw lab_error{"/proc/self/exe cannot be read: " + code.message()};
  return path.string();
}

void die_with_parent() noexcept { ::prctl(PR_SET_PDEATHSIG, SIGKILL); }

}  // namespace ramie::lab
