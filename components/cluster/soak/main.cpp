// ./run cluster: a server and three nodes on this machine. Without --minutes it shows who owns what until it is told to
// stop, and starts again whatever somebody kills. With it, it kills, freezes and cuts by itself, and judges what the
// nodes wrote down. Exits 0 only if every promise held.
//
// A node reaches the server through a forwarder of its own, which can stop one way, or both, without anybody being
// told, and break connections. As all goes over one server, a node is cut from all others or from none: what a cut
// between servers does is in tests/cuts.test.cpp.
#include "history.hpp"
#include "node.hpp"

#include "../test_cluster.hpp"
#include "../test_forwarder.hpp"

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>

namespace soak {

using cluster_tests::forwarder;
using cluster_tests::nats_server;
using cluster_tests::process;

std::string own_path() {
  char path[4096];
  const ssize_t n = ::readlink("/proc/self/exe", path, sizeof(path));
  return {path, static_cast<std::size_t>(std::max<ssize_t>(n, 0))};
}

int run_node(const std::string& url, const std::string& name, const std::string& folder) {
  return ramie::run([&] {
    here().name = name;
    here().life = name + "-" + std::to_string(::getpid()) + "-" +
                  std::to_string(std::chrono::steady_clock::now().time_since_epoch().count());
    const history_file log{folder + "/" + here().life + ".history"};
    here().log = &log;
    node{url, folder}.run();
    return 0;
  });
}

std::atomic<bool> told_to_stop{false};

class cluster_of_three {
 public:
  cluster_of_three() {
    std::filesystem::create_directories(folder_);
    for (std::size_t i = 0; i < 3; ++i) {
      ways_[i].emplace(server_.port());
      start_node(i);
    }
  }
  ~cluster_of_three() {
    stop_printing_ = true;
    for (process& n : nodes_) n.end(SIGKILL);
    for (auto& t : printers_)
      if (t.joinable()) t.join();
    if (!keep_) std::filesystem::remove_all(folder_);
  }
  cluster_of_three(const cluster_of_three&) = delete;
  cluster_of_three& operator=(const cluster_of_three&) = delete;

  static std::string name(std::size_t i) { return "n" + std::to_string(i + 1); }
  [[nodiscard]] pid_t server_id() const { return server_.id(); }

  void start_node(std::size_t i) {
    if (printers_[i].joinable()) printers_[i].join();
    nodes_[i] = process{{own_path(), "node", "nats://127.0.0.1:" + std::to_string(ways_[i]->port()), name(i), folder_},
                        folder_ + "/errors"};
    finished_[i] = false;
    std::printf("%s is process %d\n", name(i).c_str(), static_cast<int>(nodes_[i].id()));
    std::fflush(stdout);
    printers_[i] = std::thread{[this, i] {
      for (std::string line; !(line = nodes_[i].line()).empty();) {
        if (line == "done\n") finished_[i] = true;
        else if (line != "ready\n") std::printf("%s", line.c_str());
        std::fflush(stdout);
      }
    }};
  }
  void kill_node(std::size_t i) { nodes_[i].end(SIGKILL); }
  /// Again what has ended, except those that are done.
  void see_to_all() {
    for (std::size_t i = 0; i < 3; ++i)
      if (!finished_[i] && nodes_[i].has_ended()) start_node(i);
    if (server_.has_ended()) server_.start_again();
  }

  /// One fault, from its beginning to its end.
  void hurt(std::mt19937_64& random) {
    const std::size_t i = random() % 3;
    const auto wait = [&](int least, int most) {
      std::this_thread::sleep_for(
          std::chrono::milliseconds{least + static_cast<int>(random() % static_cast<std::uint64_t>(most - least))});
    };
    const auto cut = [&](forwarder::way which, const std::string& what) {
      say("cut " + name(i) + what);
      ways_[i]->cut(which);
      wait(500, 6000);
      ways_[i]->mend();
      say(name(i) + " is connected again");
    };
    switch (random() % 8) {
      case 0:
        say("kill -9 " + name(i));
        kill_node(i);
        wait(0, 3000);
        break;
      case 1:
        say("freeze " + name(i));
        nodes_[i].signal(SIGSTOP);
        wait(500, 6000);
        nodes_[i].signal(SIGCONT);
        say(name(i) + " goes on");
        break;
      case 2:
        say("kill -9 the server");
        server_.kill();
        wait(100, 1500);
        break;
      case 3:
        say("freeze the server");
        server_.signal(SIGSTOP);
        wait(100, 4000);
        server_.signal(SIGCONT);
        say("the server goes on");
        break;
      case 4: cut(forwarder::way::both, ""); break;
      case 5: cut(forwarder::way::to_server, ": it is not heard"); break;
      case 6: cut(forwarder::way::to_client, ": it hears nothing"); break;
      default:
        say("break the connection of " + name(i));
        ways_[i]->break_connections();
        break;
    }
    see_to_all();
  }

  /// Ends it all, and judges. False: not everything held.
  bool finish() {
    say("no more faults; all are to finish");
    touch("stop");
    bool finished = false;
    for (int tenths = 0; tenths < 1200 && !finished; ++tenths) {
      see_to_all();
      std::this_thread::sleep_for(std::chrono::milliseconds{100});
      finished = finished_[0] && finished_[1] && finished_[2];
    }
    if (!finished) say("WRONG: they have not finished in two minutes");
    touch("leave");
    for (std::size_t i = 0; i < 3; ++i)
      if (printers_[i].joinable() && finished) printers_[i].join();
    judge j;
    for (const auto& file : std::filesystem::directory_iterator{folder_}) {
      if (file.path().extension() != ".history") continue;
      std::ifstream in{file.path()};
      for (std::string line; std::getline(in, line);) j.read(line);
    }
    const verdict v = j.decide();
    std::printf("%llu operations handled, %llu answered, %llu failed; %llu jobs; %llu numbers told\n",
                static_cast<unsigned long long>(v.handled), static_cast<unsigned long long>(v.answered),
                static_cast<unsigned long long>(v.failed), static_cast<unsigned long long>(v.jobs),
                static_cast<unsigned long long>(v.told));
    for (const std::string& w : v.wrong) std::printf("WRONG: %s\n", w.c_str());
    const bool worked = v.answered != 0 && v.jobs != 0 && v.told != 0;
    if (!worked) std::puts("WRONG: nothing was done");
    const bool held = finished && worked && v.wrong.empty();
    keep_ = !held;
    std::puts(held ? "every promise held" : ("histories and errors are in " + folder_).c_str());
    return held;
  }

 private:
  void touch(const std::string& name) const { std::ofstream{folder_ + "/" + name} << "\n"; }
  static void say(const std::string& what) {
    std::printf("--- %s\n", what.c_str());
    std::fflush(stdout);
  }

  std::string folder_ = "/tmp/ramie_cluster_soak." + std::to_string(::getpid());
  nats_server server_;
  std::array<std::optional<forwarder>, 3> ways_;
  std::array<process, 3> nodes_;
  std::array<std::atomic<bool>, 3> finished_{};
  std::array<std::thread, 3> printers_;
  std::atomic<bool> stop_printing_{false};
  bool keep_ = false;
};

int orchestrate(double minutes, std::uint64_t seed) {
  cluster_of_three all;
  std::printf("the server is process %d, %s; seed %llu\n", static_cast<int>(all.server_id()),
              nats_server::version().c_str(), static_cast<unsigned long long>(seed));
  if (minutes == 0) {
    std::puts("kill -9 any of them; control-C ends it");
    while (!told_to_stop) {
      all.see_to_all();
      std::this_thread::sleep_for(std::chrono::milliseconds{200});
    }
    return all.finish() ? 0 : 1;
  }
  std::mt19937_64 random{seed};
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double, std::ratio<60>>{minutes};
  while (std::chrono::steady_clock::now() < until && !told_to_stop) {
    std::this_thread::sleep_for(std::chrono::milliseconds{500 + static_cast<int>(random() % 3000)});
    all.see_to_all();
    all.hurt(random);
  }
  return all.finish() ? 0 : 1;
}

int usage() {
  std::puts("usage: cluster_soak [--minutes N] [--seed N]");
  return 2;
}

int main_of(const std::vector<std::string>& words) {
  if (words.size() == 4 && words[0] == "node") return run_node(words[1], words[2], words[3]);
  double minutes = 0;
  std::uint64_t seed = std::random_device{}();
  for (std::size_t i = 0; i < words.size(); i += 2) {
    if (i + 1 == words.size()) return usage();
    if (words[i] == "--minutes") minutes = std::stod(words[i + 1]);
    else if (words[i] == "--seed") seed = std::stoull(words[i + 1]);
    else return usage();
  }
  // Its children are not told by the terminal: it ends them.
  std::signal(SIGINT, [](int) { told_to_stop = true; });
  std::signal(SIGTERM, [](int) { told_to_stop = true; });
  return orchestrate(minutes, seed);
}

}  // namespace soak

int main(int argc, char** argv) {
  try {
    return soak::main_of({argv + 1, argv + argc});
  } catch (const std::exception& e) {
    std::fprintf(stderr, "cluster_soak: %s\n", e.what());
    return 2;
  }
}
