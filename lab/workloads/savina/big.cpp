// Many actors, each of which pings random others and waits for each answer before the next.
#include <lab/workloads/savina/savina.hpp>

#include <atomic>

namespace ramie::lab {
namespace {

class player;
struct ping {
  std::size_t from;
};
struct pong {};
struct begin {};

using players = std::vector<ramie::actor_ref<player>>;

class player : public ramie::actor<player> {
 public:
  player(const players& all, std::size_t number, std::int64_t count)
      : all_{all}, number_{number}, left_{count}, random_{number} {}
  void on(begin) { next(); }
  void on(ping p) { all_[p.from].tell(pong{}); }
  void on(pong) {
    ++pongs_;
    next();
  }
  std::int64_t on(const ramie::down&) { return pongs_; }

 private:
  void next();

  const players& all_;
  std::size_t number_;
  std::int64_t left_;
  std::int64_t pongs_ = 0;
  small_random random_;
  bool told_ = false;
};

/// Counts players that are through. One for all of a run; outlives them.
std::atomic<std::int64_t> through{0};

void player::next() {
  if (left_-- > 0) {
    const auto to = static_cast<std::size_t>(random_.below(static_cast<std::int64_t>(all_.size())));
    all_[to].tell(ping{number_});
  } else if (!told_) {
    told_ = true;
    through.fetch_add(1, std::memory_order_relaxed);
  }
}

run_result run(session& s) {
  const std::int64_t actors = s.parameter("actors");
  const std::int64_t pings = s.parameter("pings");
  return run_savina(s, [&] {
    through.store(0);
    players all;
    all.reserve(static_cast<std::size_t>(actors));
    for (std::int64_t i = 0; i < actors; ++i)
      all.push_back(ramie::spawn_actor<player>(all, static_cast<std::size_t>(i), pings));
    for (const auto& p : all) p.tell(begin{});
    while (through.load(std::memory_order_relaxed) != actors) ramie::this_fiber::yield();
    std::int64_t pongs = 0;
    for (const auto& p : all) pongs += p.ask(ramie::down{});
    for (const auto& p : all) p.stop();
    for (const auto& p : all) p.join();
    return savina_outcome{2 * actors * pings, pongs == actors * pings};
  });
}

}  // namespace

workload savina_big() {
  return savina_workload("big", "all actors ping random others, and wait for each answer",
                         {{.name = "actors", .help = "actors", .standard = 120, .min = 1, .max = 100'000},
                          {.name = "pings", .help = "pings of each", .standard = 10'000, .min = 1, .max = 10'000'000}},
                         run);
}

}  // namespace ramie::lab
