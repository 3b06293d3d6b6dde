// Experiment 5: actors with state of their own, which each message reads and writes at random places. The time depends
// on the worker that runs an actor, and on whether that worker's caches are still useful. In the original each actor
// sends itself its next message; talking actors send it to each other, as in real systems: to all alike, or mostly to
// some that one worker has to itself where they are dealt to the workers in turn (--hot).
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

/// The receivers of messages that are sent at random: all alike, or `percent` of them each `every`-th.
struct aim {
  std::size_t actors;
  std::size_t percent;
  std::size_t every;

  std::size_t choose(peer::random_numbers& random) const {
    if (percent == 0) return random.below(actors);
    const std::size_t hot = (actors + every - 1) / every;
    if (random.below(100) < percent) return random.below(hot) * every;
    const std::size_t rank = random.below(actors - hot);
    return rank / (every - 1) * every + 1 + rank % (every - 1);
  }
};

/// What all actors share; constant while they run.
struct world {
  std::int64_t accesses;
  bool talking;
  aim to;
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
      world_.cells[world_.to.choose(random_)].tell(work{m.left - 1});
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

struct plan {
  explicit plan(session& s)
      : actors{s.parameter("actors")},
        talking{s.parameter("talking") != 0},
        lines{talking ? s.parameter("messages") : actors},
        each{std::max<std::int64_t>(1, s.parameter("count") / lines)},
        accesses{s.parameter("accesses")},
        to{static_cast<std::size_t>(actors), static_cast<std::size_t>(s.parameter("hot")),
           static_cast<std::size_t>(s.parameter("every"))} {
    check_memory(actors, s.parameter("state"));
    if (to.percent != 0 && !talking) throw lab_error{"--hot is for --talking 1: who talks to himself has no choice"};
    if (to.percent != 0 && actors < s.parameter("every"))
      throw lab_error{fmt::format("--hot {} with --every {}: takes as many actors at least", to.percent, to.every)};
    states.assign(static_cast<std::size_t>(actors),
                  state(static_cast<std::size_t>(s.parameter("state")) / sizeof(std::uint64_t)));
  }
  [[nodiscard]] run_result result(double seconds) const {
    std::uint64_t touched = 0;
    for (const state& words : states) touched = std::accumulate(words.begin(), words.end(), touched);
    return {.seconds = seconds,
            .units = lines * each,
            .ok = touched == static_cast<std::uint64_t>(lines * each * accesses)};
  }

  std::int64_t actors;
  bool talking;
  std::int64_t lines;
  std::int64_t each;
  std::int64_t accesses;
  aim to;
  std::vector<state> states = {};
};

/// The accesses alone, one message after the other in one thread: no executor needs less on one worker.
run_result by_calls(session& s) {
  struct plain_cell {
    state* words;
    peer::random_numbers random;
  };
  plan p{s};
  std::vector<plain_cell> cells;
  cells.reserve(p.states.size());
  for (state& words : p.states) cells.push_back({&words, peer::random_numbers{cells.size() + 1}});
  std::vector<std::size_t> lines;  // the next actor of each
  lines.reserve(static_cast<std::size_t>(p.lines));
  for (std::int64_t i = 0; i < p.lines; ++i) lines.push_back(static_cast<std::size_t>(i % p.actors));
  double seconds = 0;
  s.time([&] {
    const auto start = std::chrono::steady_clock::now();
    for (std::int64_t left = p.lines * p.each; left != 0;)
      for (std::size_t& at : lines) {
        plain_cell& c = cells[at];
        peer::touch(*c.words, p.accesses, c.random);
        if (p.talking) at = p.to.choose(c.random);
        --left;
      }
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  });
  return p.result(seconds);
}

run_result by_actors(session& s) {
  plan p{s};
  world w{.accesses = p.accesses, .talking = p.talking, .to = p.to};
  double seconds = 0;
  s.time([&] {
    ramie::latch all_done{static_cast<std::ptrdiff_t>(p.lines)};
    w.all_done = &all_done;
    for (state& words : p.states) w.cells.push_back(ramie::spawn_actor<cell>(w, words, w.cells.size() + 1));
    const auto start = std::chrono::steady_clock::now();
    for (std::int64_t i = 0; i < p.lines; ++i) {
      w.cells[static_cast<std::size_t>(i % p.actors)].tell(work{p.each - 1});
    }
    all_done.wait();
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    for (auto& c : w.cells) c.stop();
    for (auto& c : w.cells) c.join();
  });
  return p.result(seconds);
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
           {.name = "hot",
            .help = "percent of the messages that go to each --every-th actor, if talking; 0: all alike",
            .standard = 0,
            .min = 0,
            .max = 100},
           {.name = "every", .help = "see --hot", .standard = 2, .min = 2, .max = 1024},
           {.name = "messages",
            .help = "messages under way at once, if talking",
            .standard = 12,
            .min = 1,
            .max = 1'000'000},
           {.name = "count", .help = "messages in all", .standard = 1'000'000, .min = 1, .max = 1'000'000'000}},
      .styles = {{"actor", "actors; --placement says where they run", true, by_actors},
                 {"plain", "the accesses alone, in one thread", false, by_calls}},
      .yardstick = "plain",
  };
}

}  // namespace ramie::lab
