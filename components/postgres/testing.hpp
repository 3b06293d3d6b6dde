// A PostgreSQL server of the tests' own: in a scratch folder, on a local socket, as a user without rights.
#pragma once

#include <ramie/net/testing.hpp>
#include <ramie/postgres.hpp>

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ramie::postgres {

class scratch_server {
 public:
  /// Null where PostgreSQL's server is not installed.
  [[nodiscard]] static std::unique_ptr<scratch_server> start() {
    const std::string programs = folder_of_programs();
    if (programs.empty()) return nullptr;
    return std::unique_ptr<scratch_server>{new scratch_server{programs}};
  }
  scratch_server(const scratch_server&) = delete;
  scratch_server& operator=(const scratch_server&) = delete;
  ~scratch_server() { stop(); }

  [[nodiscard]] std::string where() const { return "host=" + folder_.path() + " user=tester dbname=postgres"; }
  /// At once, as by a crash.
  void stop() {
    if (server_.id() == 0) return;
    server_.kill(SIGQUIT);
    server_.wait();
    server_ = {};
  }
  void start_again() {
    server_ = net::child{
        as_another({programs_ + "/postgres", "-D", folder_ / "data", "-k", folder_.path(), "-c",
                    "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=16MB", "-c", "max_connections=60"}),
        {.in = net::child_io::null, .out = net::child_io::null, .err = net::child_io::null}};
    for (;;) {
      try {
        connection c{{.where = where()}};
        return;
      } catch (const connection_error&) {
        if (server_.id() != 0 && ::kill(server_.id(), 0) != 0) throw std::runtime_error{"the server has ended"};
        this_fiber::sleep_for(std::chrono::milliseconds{20});
      }
    }
  }

 private:
  explicit scratch_server(std::string programs) : programs_{std::move(programs)} {
    if (::geteuid() == 0) {
      // NOLINTBEGIN(concurrency-mt-unsafe): nothing else looks up users
      user_ = ::getpwnam("postgres") != nullptr ? "postgres" : "nobody";
      const passwd* who = ::getpwnam(user_.c_str());
      // NOLINTEND(concurrency-mt-unsafe)
      if (::chown(folder_.path().c_str(), who->pw_uid, who->pw_gid) != 0) throw std::runtime_error{"chown failed"};
    }
    const net::child_output made =
        net::run_child(as_another({programs_ + "/initdb", "-D", folder_ / "data", "-U", "tester", "--auth=trust",
                                   "--no-sync", "--no-instructions", "--locale=C", "--encoding=UTF8"}));
    if (!made.status.success()) throw std::runtime_error{"initdb " + made.status.to_string() + ": " + made.err};
    start_again();
  }

  /// The server refuses to run as root.
  [[nodiscard]] std::vector<std::string> as_another(std::vector<std::string> arguments) const {
    if (user_.empty()) return arguments;
    std::vector<std::string> all{"setpriv", "--reuid", user_, "--clear-groups", "--"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return all;
  }

  [[nodiscard]] static std::string folder_of_programs() {
    const std::filesystem::path all{"/usr/lib/postgresql"};
    if (!std::filesystem::exists(all)) return {};
    for (const auto& version : std::filesystem::directory_iterator{all})
      if (std::filesystem::exists(version.path() / "bin/initdb")) return version.path() / "bin";
    return {};
  }

  std::string programs_, user_;
  net::scratch_folder folder_;
  net::child server_;
};

using servers = net::shared_server<scratch_server>;

/// Tests with a server, or skipped.
class with_postgres : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!servers::get()) GTEST_SKIP() << "PostgreSQL's server is not installed (Debian: postgresql)";
  }
  static std::string where() { return servers::get()->where(); }
  static connection connect() { return connection{{.where = where()}}; }
};

}  // namespace ramie::postgres
