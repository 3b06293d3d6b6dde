// For tests: child processes, and a server of their own.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace cluster_tests {

/// A child process; killed with its owner, and with this process, however that ends.
class process {
 public:
  process() = default;
  explicit process(const std::vector<std::string>& command, const std::string& log = "/dev/null") {
    std::vector<char*> argv;
    argv.reserve(command.size() + 1);
    for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    int pipe_ends[2];
    if (::pipe2(pipe_ends, O_CLOEXEC) != 0) throw std::runtime_error{"pipe"};
    id_ = ::fork();
    if (id_ == 0) {
      if (log != "-") ::setpgid(0, 0);  // a terminal's control-C is not for it
      // What outlives a test that crashes ends some time.
      const rlimit processor_s{900, 900};
      ::setrlimit(RLIMIT_CPU, &processor_s);
      ::dup2(pipe_ends[1], 1);
      if (log != "-") ::dup2(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), 2);
      ::close_range(3, ~0U, 0);  // locks of whoever started the test, too
      ::execvp(argv[0], argv.data());
      ::_exit(127);
    }
    ::close(pipe_ends[1]);
    out_ = ::fdopen(pipe_ends[0], "r");
    watch();
  }
  process(process&& other) noexcept
      : id_{std::exchange(other.id_, -1)},
        out_{std::exchange(other.out_, nullptr)},
        watcher_{std::exchange(other.watcher_, -1)},
        tether_{std::exchange(other.tether_, -1)} {}
  process& operator=(process&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(out_, other.out_);
    std::swap(watcher_, other.watcher_);
    std::swap(tether_, other.tether_);
    return *this;
  }
  ~process() {
    end(SIGKILL);
    if (out_ != nullptr) std::fclose(out_);
  }
  void signal(int which) const {
    if (id_ > 0) ::kill(id_, which);
  }
  [[nodiscard]] pid_t id() const noexcept { return id_; }
  /// Whether it has ended by itself.
  [[nodiscard]] bool has_ended() {
    if (id_ > 0 && ::waitpid(id_, nullptr, WNOHANG) != id_) return false;
    id_ = -1;
    unwatch();
    return true;
  }
  void end(int by) {
    if (id_ <= 0) return;
    ::kill(id_, by);
    ::waitpid(id_, nullptr, 0);
    id_ = -1;
    unwatch();
  }
  /// A line that it prints, or "" at its end.
  std::string line() {
    char text[256];
    return std::fgets(text, sizeof(text), out_) == nullptr ? "" : std::string{text};
  }

 private:
  /// A second child, which kills the first one when this process ends without having said that it need not.
  void watch() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error{"pipe"};
    watcher_ = ::fork();
    if (watcher_ == 0) {
      ::setpgid(0, 0);
      ::dup2(ends[0], 0);
      ::close_range(1, ~0U, 0);
      char word = 0;
      if (::read(0, &word, 1) == 0) ::kill(id_, SIGKILL);
      ::_exit(0);
    }
    ::close(ends[0]);
    tether_ = ends[1];
  }
  void unwatch() {
    if (watcher_ <= 0) return;
    static_cast<void>(::write(tether_, "x", 1));
    ::close(tether_);
    ::waitpid(watcher_, nullptr, 0);
    watcher_ = tether_ = -1;
  }

  pid_t id_ = -1;
  std::FILE* out_ = nullptr;
  pid_t watcher_ = -1;
  int tether_ = -1;
};

/// The server that ./run has built (build/tools), seen from a program in build/<preset>/bin; else what is on PATH, or
/// Debian's, whose place is not on everybody's.
inline std::string nats_server_program() {
  char path[4096];
  const ssize_t n = ::readlink("/proc/self/exe", path, sizeof(path));
  std::string at{path, static_cast<std::size_t>(n < 0 ? 0 : n)};
  for (int up = 0; up < 3; ++up) at.resize(std::min(at.size(), at.rfind('/')));
  at += "/tools/nats-server";
  return ::access(at.c_str(), X_OK) == 0 ? at : "nats-server";
}

/// nats-server on a free port of loopback, with a store that goes when it does.
class nats_server {
 public:
  nats_server() : nats_server{[](const std::string& folder) { return stored_in(folder); }} {}
  /// `more`: arguments besides those for the store.
  explicit nats_server(const std::vector<std::string>& more)
      : nats_server{[&](const std::string& folder) {
          std::vector<std::string> all = stored_in(folder);
          all.insert(all.end(), more.begin(), more.end());
          return all;
        }} {}
  static std::vector<std::string> stored_in(const std::string& folder) { return {"-js", "-sd", folder + "/store"}; }
  /// `prepare(folder)` returns more arguments: at least where JetStream's store is. The working directory is `folder`.
  template <std::invocable<const std::string&> Prepare>
  explicit nats_server(Prepare prepare) {
    char name[] = "/tmp/ramie_cluster_XXXXXX";
    if (::mkdtemp(name) == nullptr) throw std::runtime_error{"mkdtemp"};
    folder_ = name;
    more_ = prepare(folder_);
    start("-1");
  }
  nats_server(const nats_server&) = delete;
  nats_server& operator=(const nats_server&) = delete;
  ~nats_server() {
    kill();
    run({"rm", "-rf", folder_});
  }
  void kill() { server_.end(SIGKILL); }
  void start_again() { start(port_); }
  void signal(int which) const { server_.signal(which); }
  [[nodiscard]] pid_t id() const noexcept { return server_.id(); }
  [[nodiscard]] bool has_ended() { return server_.has_ended(); }
  [[nodiscard]] std::uint16_t port() const { return static_cast<std::uint16_t>(std::stoi(port_)); }
  [[nodiscard]] std::string url() const { return "nats://127.0.0.1:" + port_; }
  [[nodiscard]] const std::string& folder() const noexcept { return folder_; }
  /// "nats-server: v2.15.2", for those who read what a test did.
  static std::string version() { return run({"env", path(), nats_server_program(), "--version"}); }

 private:
  /// The first line that it prints.
  static std::string run(const std::vector<std::string>& command) {
    process p{command};
    std::string line = p.line();
    if (!line.empty() && line.back() == '\n') line.pop_back();
    return line;
  }
  static std::string path() {
    const char* known = ::getenv("PATH");
    return std::string{"PATH="} + (known == nullptr ? "" : known) + ":/usr/sbin";
  }
  void start(const std::string& port) {
    std::vector<std::string> command{"env",  "-C",        folder_, path(), nats_server_program(),
                                     "-a",   "127.0.0.1", "-p",    port,   "--ports_file_dir",
                                     folder_};
    command.insert(command.end(), more_.begin(), more_.end());
    server_ = process{command, folder_ + "/log"};
    // It writes the file when it listens: {"nats":["nats://127.0.0.1:<port>"],...
    for (;;) {
      if (server_.has_ended()) throw std::runtime_error{"nats-server does not start; see " + folder_ + "/log"};
      std::this_thread::sleep_for(std::chrono::milliseconds{2});
      const std::string text = run({"sh", "-c", "cat " + folder_ + "/*nats-server*.ports 2>/dev/null"});
      const std::size_t at = text.find("127.0.0.1:", std::min(text.size(), text.find("\"nats\"")));
      if (at == std::string::npos) continue;
      port_ = text.substr(at + 10, text.find('"', at) - at - 10);
      break;
    }
    run({"sh", "-c", "rm -f " + folder_ + "/*nats-server*.ports"});
  }
  std::string folder_, port_;
  std::vector<std::string> more_;
  process server_;
};

}  // namespace cluster_tests
