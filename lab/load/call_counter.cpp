#include <lab/load/call_counter.hpp>

#include <lab/harness/child.hpp>
#include <lab/harness/error.hpp>

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ramie::lab {
namespace {

/// The process that traces a thread; 0: none.
pid_t tracer_of(const std::string& task) {
  std::ifstream status{task + "/status"};
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("TracerPid:")) return std::atoi(line.c_str() + sizeof "TracerPid:");
  return 0;
}

bool traces_all_threads(pid_t tracer, pid_t of) {
  std::error_code gone;
  for (const auto& task : std::filesystem::directory_iterator{fmt::format("/proc/{}/task", of), gone})
    if (tracer_of(task.path().string()) != tracer) return false;
  return !gone;
}

}  // namespace

call_counter::call_counter(pid_t pid) {
  std::string name = (std::filesystem::temp_directory_path() / "ramie-lab.XXXXXX").string();
  const int file = mkostemp(name.data(), O_CLOEXEC);
  if (file < 0) throw lab_error{fmt::format("{}: {}", name, std::generic_category().message(errno))};
  close(file);
  summary_ = name;
  const std::string whom = std::to_string(pid);
  strace_ = fork();
  if (strace_ == 0) {
    die_with_parent();
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(nowhere, STDERR_FILENO);
    execlp("strace", "strace", "-f", "-qq", "-c", "-U", "calls,name", "-o", name.c_str(), "-p", whom.c_str(),
           static_cast<char*>(nullptr));
    _exit(127);
  }
  while (!traces_all_threads(strace_, pid)) {
    if (waitpid(strace_, nullptr, WNOHANG) == strace_) {
      strace_ = -1;
      unlink(summary_.c_str());
      throw lab_error{"system calls are counted by strace, which is not installed or may not look at other processes"};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
}

call_counter::~call_counter() {
  if (strace_ > 0) {
    kill(strace_, SIGKILL);
    waitpid(strace_, nullptr, 0);
  }
  unlink(summary_.c_str());
}

std::int64_t call_counter::stop() {
  kill(strace_, SIGINT);  // it detaches and writes its table
  waitpid(strace_, nullptr, 0);
  strace_ = -1;
  std::ifstream table{summary_};
  for (std::string line; std::getline(table, line);) {
    std::istringstream words{line};
    std::int64_t calls = 0;
    if (std::string name; words >> calls >> name && name == "total") return calls;
  }
  throw lab_error{"strace has counted nothing"};
}

}  // namespace ramie::lab
