// How long it takes until another worker runs new work: one that sleeps, or one that looks for work.
#include <lab/harness/session.hpp>
#include <lab/workloads/registry.hpp>

#include <ramie/ramie.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ramie::lab {
namespace {

using std::chrono::steady_clock;

struct question {};

class answerer : public ramie::actor<answerer> {
 public:
  explicit answerer(ramie::binary_semaphore& answered) : answered_{answered} {}
  void on(question) { answered_.release(); }

 private:
  ramie::binary_semaphore& answered_;
};

double ns_between(steady_clock::time_point from, steady_clock::time_point to) {
  return std::chrono::duration<double, std::nano>(to - from).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

run_result to_the_last_worker(session& s) {
  const std::int64_t count = s.parameter("count");
  const std::chrono::microseconds pause{s.parameter("pause-us")};
  const int last = s.runtime().workers() - 1;
  std::vector<double> call_ns, round_ns;
  double seconds = 0;
  s.time([&] {
    ramie::spawn(ramie::fiber_options{.worker = 0}, [&] {
      ramie::binary_semaphore answered{0};
      const auto other = ramie::spawn_actor<answerer>(ramie::actor_options{.worker = last}, answered);
      for (std::int64_t i = 0; i < count; ++i) {
        if (pause.count() != 0) ramie::this_fiber::sleep_for(pause);
        const auto asked = steady_clock::now();
        other.tell(question{});
        const auto told = steady_clock::now();
        answered.acquire();
        const auto answered_at = steady_clock::now();
        call_ns.push_back(ns_between(asked, told));
        round_ns.push_back(ns_between(asked, answered_at));
        seconds += std::chrono::duration<double>(answered_at - asked).count();
      }
      other.stop();
      other.join();
    }).join();
  });
  return {.seconds = seconds,
          .units = count,
          .ok = round_ns.size() == static_cast<std::size_t>(count),
          .figures = {{"round_trip_p50_ns", median(round_ns)}, {"call_p50_ns", median(call_ns)}}};
}

}  // namespace

workload wake_workload() {
  return {
      .name = "wake",
      .summary = "a message to an actor of another worker, and its answer; pauses let that worker fall asleep",
      .unit = "round trip",
      .parameters = {{.name = "count", .help = "round trips", .standard = 1000, .min = 1, .max = 10'000'000},
                     {.name = "pause-us",
                      .help = "microseconds between them, not counted; 0: the other worker still looks for work",
                      .standard = 1000,
                      .min = 0,
                      .max = 1'000'000}},
      .styles = {{"actor", "an actor on the last worker, asked from the first", true, to_the_last_worker}},
      .yardstick = "",
  };
}

}  // namespace ramie::lab
