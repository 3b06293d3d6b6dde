// Kills of the server, and of workers: a few of them, and with RAMIE_TEST_LARGE=1 as many as the promises are made for:
// a hundred kills of the server, and 20,000 jobs.
// Mostly waits.
#include "../soak/history.hpp"
#include "../test_nodes.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace ramie {
namespace {

using namespace cluster_tests;

bool is_large() {
  const char* const wish = std::getenv("RAMIE_TEST_LARGE");
  return wish != nullptr && *wish == '1';
}

TEST(kills, of_the_server_lose_no_tell_and_keep_the_order) {
  run([] {
    // It is away for as long as the kills take to pass it by, so nobody is lost, however slow the machine is.
    far_node n{"steady", 60s};
    const int kills = is_large() ? 100 : 4;
    std::atomic<std::uint64_t> sent{0};
    std::atomic<bool> over{false};
    auto sender = spawn([&] {
      while (!over) {
        for (int i = 0; i < 50; ++i) {
          EXPECT_EQ(n.there.tell(number{sent}), tell_status::ok);
          ++sent;
        }
        this_fiber::sleep_for(2ms);
      }
    });
    std::vector<std::int64_t> pauses_ms;
    for (int i = 0; i < kills; ++i) {
      server().kill();
      this_fiber::sleep_for(500ms);
      blocking([] { server().start_again(); });
      const auto back = std::chrono::steady_clock::now();
      // What is asked comes behind what was told.
      const std::uint64_t at_least = sent;
      const std::int64_t came = n.there.ask(order_kept{});
      ASSERT_GE(came, static_cast<std::int64_t>(at_least)) << "after kill " << i;
      pauses_ms.push_back(
          std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - back).count());
    }
    over = true;
    sender.join();
    EXPECT_EQ(n.there.ask(order_kept{}), static_cast<std::int64_t>(sent));
    std::sort(pauses_ms.begin(), pauses_ms.end());
    std::printf("%d kills, %llu tells; it went on after %lld ms (median; the longest %lld)\n", kills,
                static_cast<unsigned long long>(sent.load()), static_cast<long long>(pauses_ms[pauses_ms.size() / 2]),
                static_cast<long long>(pauses_ms.back()));
  });
}

/// Reads what workers have written, as often as it is asked.
class worker_log {
 public:
  explicit worker_log(const std::string& path) : in_{path} {}
  /// How many jobs have been handled.
  std::size_t handled() {
    for (std::string rest; std::getline(in_, rest);) {
      if (in_.eof()) {  // not all of a line
        part_ += rest;
        break;
      }
      const std::string line = part_ + rest;
      part_.clear();
      history.read(line);
      if (line.starts_with("J ")) jobs_.insert(line);
    }
    in_.clear();
    return jobs_.size();
  }
  soak::judge history;

 private:
  std::ifstream in_;
  std::string part_;
  std::set<std::string> jobs_;
};

TEST(kills, of_workers_and_the_server_lose_no_job_and_double_no_effect) {
  const std::string file = "/tmp/ramie_cluster_jobs." + std::to_string(::getpid());
  std::ofstream{file};
  run([&] {
    cluster here{options_for(server().url(), "here")};
    const std::size_t count = is_large() ? 20'000 : 1200;
    auto jobs = here.queue<text>("killed", jobs_options());
    int workers = 0;
    const auto start = [&] {
      process p{{program("test_cluster_node"), server().url(), "worker-" + std::to_string(++workers), "-", file}, "-"};
      EXPECT_EQ(blocking([&] { return p.line(); }), "ready\n");
      return p;
    };
    std::vector<process> serving;
    for (int i = 0; i < 3; ++i) serving.push_back(start());
    std::atomic<std::size_t> next{0}, stored{0};
    std::mutex lock;
    worker_log log{file};
    std::vector<join_handle<void>> putters;
    for (int i = 0; i < 16; ++i)
      putters.push_back(spawn([&] {
        for (std::size_t k; (k = next++) < count;) {
          const std::string id = "job-" + std::to_string(k);
          jobs.put(text{id}, id);
          const std::lock_guard guard{lock};
          log.history.read("P " + id);
          ++stored;
        }
      }));
    // By what was done, not by time: a server at each quarter of what is put, a worker between.
    for (std::size_t eighth = 1; eighth < 7; ++eighth) {
      while (stored < eighth * count / 8) this_fiber::sleep_for(1ms);
      if (eighth % 2 == 0) {
        server().kill();
        this_fiber::sleep_for(200ms);
        blocking([] { server().start_again(); });
      } else {
        process& one = serving[eighth / 2];
        one.end(SIGKILL);
        one = start();
      }
    }
    for (auto& p : putters) p.join();
    while (log.handled() < count) this_fiber::sleep_for(20ms);
    const soak::verdict v = log.history.decide();
    EXPECT_TRUE(v.wrong.empty()) << v.wrong.front();
    EXPECT_EQ(v.jobs, count);
    std::printf("%zu jobs, %zu effects\n", count, static_cast<std::size_t>(v.effects));
    EXPECT_GE(v.effects + 3 * 64, count);  // one that was begun by a worker that was killed may be missing
  });
  ::unlink(file.c_str());
}

}  // namespace
}  // namespace ramie
