// Philosophers ask an arbitrator for both their forks, and ask again when they are refused.
#include <lab/workloads/savina/savina.hpp>

namespace ramie::lab {
namespace {

struct hungry {
  std::size_t who;
};
struct done {
  std::size_t who;
};
struct eat {};

class arbitrator : public ramie::actor<arbitrator> {
 public:
  explicit arbitrator(std::size_t forks) : taken_(forks) {}
  bool on(hungry h) {
    const std::size_t right = (h.who + 1) % taken_.size();
    if (taken_[h.who] || taken_[right]) return false;
    taken_[h.who] = taken_[right] = true;
    return true;
  }
  void on(done d) { taken_[d.who] = taken_[(d.who + 1) % taken_.size()] = false; }

 private:
  std::vector<bool> taken_;
};

class philosopher : public ramie::actor<philosopher> {
 public:
  philosopher(ramie::actor_ref<arbitrator> a, std::size_t number, std::int64_t meals)
      : arbitrator_{std::move(a)}, number_{number}, meals_{meals} {}
  /// The number of messages for all meals.
  std::int64_t on(eat) {
    std::int64_t messages = 0;
    for (std::int64_t i = 0; i < meals_; ++i) {
      for (messages += 2; !arbitrator_.ask(hungry{number_}); messages += 2) ramie::this_fiber::yield();
      arbitrator_.tell(done{number_});
      ++messages;
    }
    return messages;
  }

 private:
  ramie::actor_ref<arbitrator> arbitrator_;
  std::size_t number_;
  std::int64_t meals_;
};

run_result run(session& s) {
  const std::int64_t count = s.parameter("actors");
  const std::int64_t meals = s.parameter("meals");
  return run_savina(s, [&] {
    auto a = ramie::spawn_actor<arbitrator>(static_cast<std::size_t>(count));
    std::vector<ramie::actor_ref<philosopher>> all;
    std::vector<ramie::future<std::int64_t>> results;
    for (std::int64_t i = 0; i < count; ++i) {
      all.push_back(ramie::spawn_actor<philosopher>(a, static_cast<std::size_t>(i), meals));
      results.push_back(all.back().ask_async(eat{}));
    }
    std::int64_t messages = 0;
    for (auto& r : results) messages += r.get();
    for (const auto& p : all) p.stop();
    for (const auto& p : all) p.join();
    // All forks are back.
    const bool ok = a.ask(hungry{0});
    a.stop();
    a.join();
    return savina_outcome{messages, ok && messages >= 3 * count * meals};
  });
}

}  // namespace

workload savina_dining_philosophers() {
  return savina_workload("dining_philosophers", "philosophers get their forks from an arbitrator, or try again",
                         {{.name = "actors", .help = "philosophers", .standard = 20, .min = 2, .max = 100'000},
                          {.name = "meals", .help = "meals of each", .standard = 10'000, .min = 1, .max = 10'000'000}},
                         run);
}

}  // namespace ramie::lab
