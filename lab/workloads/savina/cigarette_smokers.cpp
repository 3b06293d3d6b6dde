// An arbiter lets one smoker at a time smoke, and continues as soon as it has begun.
#include <lab/workloads/savina/savina.hpp>

namespace ramie::lab {
namespace {

class arbiter;
struct smoke {};
struct started {};
struct begin {};

class smoker : public ramie::actor<smoker> {
 public:
  explicit smoker(ramie::actor_ref<arbiter> a) : arbiter_{std::move(a)} {}
  void on(smoke);
  std::int64_t on(begin) { return smoked_; }

 private:
  ramie::actor_ref<arbiter> arbiter_;
  std::int64_t smoked_ = 0;
};

class arbiter : public ramie::actor<arbiter> {
 public:
  explicit arbiter(std::int64_t rounds) : left_{rounds} {}
  void on(std::vector<ramie::actor_ref<smoker>> all) {
    smokers_ = std::move(all);
    next();
  }
  void on(started) {
    if (--left_ == 0) stop();
    else next();
  }

 private:
  void next() {
    smokers_[static_cast<std::size_t>(random_.below(static_cast<std::int64_t>(smokers_.size())))].tell(smoke{});
  }
  std::vector<ramie::actor_ref<smoker>> smokers_;
  std::int64_t left_;
  small_random random_{5};
};

void smoker::on(smoke) {
  ++smoked_;
  arbiter_.tell(started{});
}

run_result run(session& s) {
  const std::int64_t count = s.parameter("actors");
  const std::int64_t rounds = s.parameter("rounds");
  return run_savina(s, [&] {
    auto a = ramie::spawn_actor<arbiter>(rounds);
    const std::vector<ramie::actor_ref<smoker>> all = spawn_actors<smoker>(count, a);
    a.tell(all);
    a.join();
    std::int64_t smoked = 0;
    for (const auto& x : all) smoked += x.ask(begin{});
    for (const auto& x : all) x.stop();
    for (const auto& x : all) x.join();
    return savina_outcome{2 * rounds, smoked == rounds};
  });
}

}  // namespace

workload savina_cigarette_smokers() {
  return savina_workload("cigarette_smokers", "an arbiter picks one smoker after the other",
                         {{.name = "actors", .help = "smokers", .standard = 200, .min = 1, .max = 100'000},
                          {.name = "rounds", .help = "cigarettes", .standard = 500'000, .min = 1, .max = 100'000'000}},
                         run);
}

}  // namespace ramie::lab
