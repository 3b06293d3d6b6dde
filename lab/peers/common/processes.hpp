// For peers of experiment 8, which are two processes and perhaps a server: children, and their processor time.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace peer {

/// Ends with its owner, and with the thread that made it.
class child {
 public:
  explicit child(std::vector<std::string> command) {
    std::vector<char*> words;
    words.reserve(command.size() + 1);
    for (std::string& word : command) words.push_back(word.data());
    words.push_back(nullptr);
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error{"pipe2"};
    id_ = ::fork();
    if (id_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(ends[1], 1);
      ::execvp(words[0], words.data());
      ::_exit(127);
    }
    ::close(ends[1]);
    out_ = ::fdopen(ends[0], "r");
  }
  child(const child&) = delete;
  child& operator=(const child&) = delete;
  ~child() {
    ::kill(id_, SIGKILL);
    ::waitpid(id_, nullptr, 0);
    std::fclose(out_);
  }
  [[nodiscard]] std::string id() const { return std::to_string(id_); }
  /// A line that it prints, without its end; throws at the end of its output.
  std::string line() {
    std::string text;
    for (int c = 0; (c = std::fgetc(out_)) != '\n';) {
      if (c == EOF) throw std::runtime_error{"a child process ended"};
      text += static_cast<char>(c);
    }
    return text;
  }

 private:
  pid_t id_;
  std::FILE* out_;
};

/// Of all threads of a process ("self": of this one) so far.
inline double processor_s(const std::string& id) {
  std::ifstream file{"/proc/" + id + "/stat"};
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  unsigned long user = 0, system = 0;
  const std::size_t at = text.rfind(')');
  if (at != std::string::npos)
    std::sscanf(text.c_str() + at + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system);
  return static_cast<double>(user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

inline std::string this_program() {
  char path[4096];
  const ssize_t n = ::readlink("/proc/self/exe", path, sizeof path);
  return std::string(path, n > 0 ? static_cast<std::size_t>(n) : 0);
}

/// nats-server with JetStream, on a free port of the loopback.
class nats_server {
 public:
  nats_server() : folder_{make_folder()}, it_{command(folder_)} {
    for (int tries = 0; port_.empty(); ++tries) {
      if (tries == 5000) throw std::runtime_error{"nats-server does not start"};
      std::this_thread::sleep_for(std::chrono::milliseconds{2});
      std::ifstream file{folder_ + "/nats-server_" + it_.id() + ".ports"};
      const std::string text{std::istreambuf_iterator<char>{file}, {}};
      const std::size_t at = text.find("127.0.0.1:");
      const std::size_t end = text.find('"', at == std::string::npos ? 0 : at);
      if (at != std::string::npos && end != std::string::npos) port_ = text.substr(at + 10, end - at - 10);
    }
  }
  ~nats_server() {
    if (std::system(("rm -rf " + folder_).c_str()) != 0) std::fprintf(stderr, "peer: %s is left\n", folder_.c_str());
  }
  nats_server(const nats_server&) = delete;
  nats_server& operator=(const nats_server&) = delete;
  [[nodiscard]] std::string url() const { return "nats://127.0.0.1:" + port_; }
  [[nodiscard]] std::string id() const { return it_.id(); }

 private:
  static std::string make_folder() {
    char name[] = "/tmp/peer_nats_XXXXXX";
    if (::mkdtemp(name) == nullptr) throw std::runtime_error{"mkdtemp"};
    return name;
  }
  static std::vector<std::string> command(const std::string& folder) {
    // Debian has it in /usr/sbin, which is not on everybody's PATH.
    const char* path = std::getenv("PATH");
    ::setenv("PATH", (std::string{path == nullptr ? "" : path} + ":/usr/sbin").c_str(), 1);
    return {"nats-server",      "-a",   "127.0.0.1", "-p",           "-1", "-js", "-sd", folder + "/store",
            "--ports_file_dir", folder, "-l",        folder + "/log"};
  }
  std::string folder_, port_;
  child it_;
};

}  // namespace peer
