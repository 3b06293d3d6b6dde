// A node for tests: test_node URL NAME [SHARDS [FILE [LOST_AFTER_MS]]], "-": none. Its keeper is called keeper-NAME; it
// takes part in these shards, or handles the jobs of the queue "killed", and writes down in FILE what it did. It prints
// "ready", and runs until it is killed.
#include "test_cluster.hpp"

#include "soak/log_file.hpp"

#include <optional>

namespace {

std::string argument(int argc, char** argv, int i) {
  return argc > i && std::string{argv[i]} != "-" ? argv[i] : std::string{};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  return ramie::run([&] {
    const std::string set = argument(argc, argv, 3), file = argument(argc, argv, 4), ms = argument(argc, argv, 5);
    ramie::cluster c{
        cluster_tests::options_for(argv[1], argv[2], std::chrono::milliseconds{ms.empty() ? 3000 : std::stoi(ms)})};
    c.knows<cluster_tests::keeper>();
    c.hosts<cluster_tests::greeter, std::string, std::int64_t>();
    cluster_tests::this_node() = &c;
    const auto k = ramie::spawn_actor<cluster_tests::keeper>();
    if (!c.register_name(std::string{"keeper-"} + argv[2], k)) return 1;
    if (!set.empty())
      static_cast<void>(c.shards<cluster_tests::counter>(set, {.count = 32, .lease = std::chrono::seconds{1}}));
    std::optional<soak::history_file> log;
    std::optional<ramie::cluster_queue<cluster_tests::text>> jobs;
    std::optional<ramie::queue_worker> worker;
    if (!file.empty()) {
      log.emplace(file);
      jobs.emplace(c.queue<cluster_tests::text>("killed", cluster_tests::jobs_options()));
      worker.emplace(jobs->serve([&](const cluster_tests::text& job) {
        jobs->once(job.value, [&] { log->write("E " + job.value); });
        log->write("J " + job.value);
      }));
    }
    std::puts("ready");
    std::fflush(stdout);
    ramie::this_fiber::sleep_for(std::chrono::hours{1});
    return 0;
  });
}
