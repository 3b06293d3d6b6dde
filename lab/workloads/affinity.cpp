// Experiment 5: actors with state of their own, which each message reads and writes at random places. Who runs whom,
// and whether what a worker has in its caches is of use to it again, decides the time. The original lets each actor
// give itself its next message; talking actors send it to each other, as in real systems.
#include <lab/harness/error.hpp>
#include <lab/harness/memory.hpp>
#include <lab/harness/session.hpp>
#include <lab/peers/common/random.hpp>
#include <lab/workloads/registry.hpp>

#include <fmt/core.h>
#include <ramie/ramie.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

namespace ramie::lab {
namespace {

/// A message, and how many more of its line are to be sent.
struct work {
  std::int64_t left;
};

class cell;

/// What all actors share and nobody changes while they run.
struct world {
  std::int64_t accesses;
  bool talking;
  std::vector<ramie::actor_ref<cell>> cells = {};
  ramie::latch* all_done = nullptr;
};

/// The states are the experiment's: their owner adds them up at the end.
using state = std::vector<std::uint64_t>;

class cell : public ramie::actor<cell> {
 public:
  cell(const world& w, state& words, std::uint64_t seed) : world_{w}, words_{words}, random_{seed} {}

  void on(work m) {
    peer::touch(words_, world_.accesses, random_);
    if (m.left == 0) {
      world_.all_done->count_down();
    } else if (world_.talking) {
      world_.cells[random_.below(world_.cells.size())].tell(work{m.left - 1});
    } else {
      self().tell(work{m.left - 1});
    }
  }

 private:
  const world& world_;
  state& words_;
  peer::random_numbers random_;
};

void check_memory(std::int64_t actors, std::int64_t bytes) {
  const double wanted = static_cast<double>(actors) * static_cast<double>(bytes);
  constexpr double gib = 1024.0 * 1024 * 1024;
  constexpr double share_max = 0.9;
  const double available = static_cast<double>(available_memory());
  if (wanted <= available * share_max) return;
  throw lab_error{fmt::format("--actors {} --state {}: would take {:.1f} GiB, {:.1f} GiB are available", actors, bytes,
                              wanted / gib, available / gib)};
}

run_result by_actors(session& s) {
  const std::int64_t actors = s.parameter("actors");
  const bool talking = s.parameter("talking") != 0;
  const std::int64_t lines = talking ? s.parameter("messages") : actors;
  const std::int64_t each = std::max<std::int64_t>(1, s.parameter("count") / lines);
  check_memory(actors, s.parameter("state"));

  std::vector<state> states(static_cast<std::size_t>(actors),
                            state(static_cast<std::size_t>(s.parameter("state")) / sizeof(std::uint64_t)));
  world w{.accesses = s.parameter("accesses"), .talking = talking};
  double seconds = 0;
  s.time([&] {
    ramie::latch all_done{static_cast<std::ptrdiff_t>(lines)};
    w.all_done = &all_done;
    for (state& words : states) w.cells.push_back(ramie::spawn_actor<cell>(w, words, w.cells.size() + 1));
    const auto start = std::chrono::steady_clock::now();
    for (std::int64_t i = 0; i < lines; ++i) {
      w.cells[static_cast<std::size_t>(i % actors)].tell(work{each - 1});
    }
    all_done.wait();
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    for (auto& c : w.cells) c.stop();
    for (auto& c : w.cells) c.join();
  });
  std::uint64_t touched = 0;
  for (const state& words : states) touched = std::accumulate(words.begin(), words.end(), touched);
  return {.seconds = seconds,
          .units = lines * each,
          .ok = touched == static_cast<std::uint64_t>(lines * each * w.accesses)};
}

}  // namespace

workload affinity_workload() {
  return {
      .name = "affinity",
      .summary = "experiment 5: actors whose messages read and write their state at random places",
      .unit = "message",
      .parameters =
          {{.name = "actors", .help = "actors", .standard = 24, .min = 1, .max = 1'000'000},
           {.name = "state", .help = "bytes of state of each", .standard = 32'000, .min = 8, .max = 1'000'000'000},
           {.name = "accesses", .help = "of the state, a message", .standard = 100, .min = 0, .max = 1'000'000},
           {.name = "talking", .help = "1: to a random actor; 0: to itself", .standard = 0, .min = 0, .max = 1},
           {.name = "messages", .help = "on their way at once, if talking", .standard = 12, .min = 1, .max = 1'000'000},
           {.name = "count", .help = "messages in all", .standard = 1'000'000, .min = 1, .max = 1'000'000'000}},
      .styles = {{"actor", "actors; --placement says who runs them", true, by_actors}},
      .yardstick = "",
  };
}

}  // namespace ramie::lab
