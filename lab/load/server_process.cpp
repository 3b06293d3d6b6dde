#include <lab/load/server_process.hpp>

#include <lab/harness/child.hpp>
#include <lab/harness/error.hpp>
#include <lab/harness/memory.hpp>

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <system_error>

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ramie::lab {
namespace {

cpu_set_t set_of(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  return set;
}

cpu_set_t allowed_cores() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
    throw lab_error{fmt::format("sched_getaffinity: {}", std::generic_category().message(errno))};
  return allowed;
}

}  // namespace

core_split split_cores(int workers) {
  static const cpu_set_t allowed = allowed_cores();
  core_split split;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed)) continue;
    (static_cast<int>(split.server.size()) < workers ? split.server : split.driver).push_back(core);
  }
  if (split.driver.empty()) split.driver = split.server;
  return split;
}

void bind_to(const std::vector<int>& cores) {
  const cpu_set_t set = set_of(cores);
  if (sched_setaffinity(0, sizeof set, &set) != 0)
    throw lab_error{fmt::format("sched_setaffinity: {}", std::generic_category().message(errno))};
}

server_process::server_process(const std::vector<std::string>& command, const std::vector<int>& cores)
    : name_{command.at(0)} {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw lab_error{fmt::format("pipe2: {}", std::generic_category().message(errno))};
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const cpu_set_t set = set_of(cores);
  pid_ = fork();
  if (pid_ == 0) {
    die_with_parent();
    setpgid(0, 0);  // a start script's children end with it
    sched_setaffinity(0, sizeof set, &set);
    dup2(ends[1], STDOUT_FILENO);
    execvp(words[0], words.data());
    _exit(127);
  }
  close(ends[1]);
  output_ = ends[0];
  if (pid_ < 0) {
    const int why = errno;
    close(output_);
    throw lab_error{fmt::format("fork: {}", std::generic_category().message(why))};
  }
  setpgid(pid_, pid_);
  try {
    read_port();
  } catch (...) {
    end();
    throw;
  }
}

server_process::~server_process() { end(); }

void server_process::end() noexcept {
  kill(-pid_, SIGKILL);
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  close(output_);
}

void server_process::read_port() {
  std::string text;
  for (;;) {
    char c;
    const ssize_t n = read(output_, &c, 1);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw lab_error{fmt::format("{} ended before it printed 'port NUMBER'; it printed '{}'", name_, text)};
    text += c;
    if (c != '\n') continue;
    int port = 0;
    if (std::sscanf(text.c_str(), "port %d", &port) == 1 && port > 0 && port < 65'536) {
      port_ = static_cast<std::uint16_t>(port);
      return;
    }
    text.clear();  // a line of a runtime's own
  }
}

double server_process::cpu_seconds() const {
  clockid_t clock{};
  timespec time{};
  if (clock_getcpuclockid(pid_, &clock) != 0 || clock_gettime(clock, &time) != 0)
    throw lab_error{fmt::format("{} has ended", name_)};
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

std::int64_t server_process::resident_bytes() const {
  return read_memory_use(fmt::format("/proc/{}/status", pid_)).resident_bytes;
}

}  // namespace ramie::lab
