// Two programs without replies: many messages to few actors, and many actors with one message each.
#include <lab/workloads/savina/savina.hpp>

#include <atomic>
#include <cmath>

namespace ramie::lab {
namespace {

struct work {
  double of;
};

/// A small computation, as the suite has it. True if it is right.
bool compute(double of) {
  const double sine = std::sin(of);
  return sine * sine <= 1.0;
}

class worker : public ramie::actor<worker> {
 public:
  worker(std::atomic<std::int64_t>* finished, std::int64_t wanted) : finished_{finished}, wanted_{wanted} {}
  void on(work w) {
    right_ += static_cast<std::int64_t>(compute(w.of));
    if (++done_ < wanted_) return;
    finished_->fetch_add(right_, std::memory_order_relaxed);
    stop();
  }

 private:
  std::atomic<std::int64_t>* finished_;
  std::int64_t wanted_;
  std::int64_t done_ = 0;
  std::int64_t right_ = 0;
};

run_result throughput(session& s) {
  const std::int64_t actors = s.parameter("actors");
  const std::int64_t messages = s.parameter("messages");
  return run_savina(s, [&] {
    std::atomic<std::int64_t> finished{0};
    const std::vector<ramie::actor_ref<worker>> all = spawn_actors<worker>(actors, &finished, messages);
    for (std::int64_t m = 0; m < messages; ++m) {
      for (const auto& a : all) a.tell(work{37.2 + static_cast<double>(m)});
      if (m % 64 == 63) ramie::this_fiber::yield();
    }
    for (const auto& a : all) a.join();
    return savina_outcome{actors * messages, finished.load() == actors * messages};
  });
}

run_result create(session& s) {
  const std::int64_t actors = s.parameter("actors");
  return run_savina(s, [&] {
    std::atomic<std::int64_t> finished{0};
    std::vector<ramie::actor_ref<worker>> last;
    last.reserve(64);
    for (std::int64_t i = 0; i < actors; ++i) {
      last.push_back(ramie::spawn_actor<worker>(&finished, std::int64_t{1}));
      last.back().tell(work{static_cast<double>(i)});
      if (last.size() < 64 && i + 1 < actors) continue;
      ramie::this_fiber::yield();
      for (const auto& a : last) a.join();
      last.clear();
    }
    return savina_outcome{actors, finished.load() == actors};
  });
}

}  // namespace

workload savina_fork_join_throughput() {
  return savina_workload(
      "fork_join_throughput", "many messages to few actors, none of which answers",
      {{.name = "actors", .help = "actors", .standard = 60, .min = 1, .max = 100'000},
       {.name = "messages", .help = "messages to each", .standard = 10'000, .min = 1, .max = 10'000'000}},
      throughput);
}

workload savina_fork_join_create() {
  return savina_workload("fork_join_create", "actors that get one message, compute, and end",
                         {{.name = "actors", .help = "actors", .standard = 400'000, .min = 1, .max = 100'000'000}},
                         create);
}

}  // namespace ramie::lab
