// Series of the logistic map x -> r x (1 - x): workers hold a term each and ask computers, one for each rate, for the
// next.
#include <lab/workloads/savina/savina.hpp>

namespace ramie::lab {
namespace {

struct term {
  double x;
};
struct advance {
  std::int64_t steps;
};

double next_term(double rate, double x) { return rate * x * (1 - x); }

class computer : public ramie::actor<computer> {
 public:
  explicit computer(double rate) : rate_{rate} {}
  double on(term t) { return next_term(rate_, t.x); }

 private:
  double rate_;
};

class worker : public ramie::actor<worker> {
 public:
  worker(ramie::actor_ref<computer> c, double start) : computer_{std::move(c)}, x_{start} {}
  double on(advance a) {
    for (std::int64_t i = 0; i < a.steps; ++i) x_ = computer_.ask(term{x_});
    return x_;
  }

 private:
  ramie::actor_ref<computer> computer_;
  double x_;
};

run_result run(session& s) {
  const std::int64_t series = s.parameter("series");
  const std::int64_t terms = s.parameter("terms");
  return run_savina(s, [&] {
    std::vector<ramie::actor_ref<computer>> computers;
    std::vector<ramie::actor_ref<worker>> workers;
    std::vector<ramie::future<double>> results;
    bool ok = true;
    for (std::int64_t i = 0; i < series; ++i) {
      const double rate = 3.46 + 0.0025 * static_cast<double>(i % 100);
      const double start = rate * 0.1;
      computers.push_back(ramie::spawn_actor<computer>(rate));
      workers.push_back(ramie::spawn_actor<worker>(computers.back(), start));
      results.push_back(workers.back().ask_async(advance{terms}));
    }
    for (std::int64_t i = 0; i < series; ++i) {
      const double rate = 3.46 + 0.0025 * static_cast<double>(i % 100);
      double x = rate * 0.1;
      for (std::int64_t n = 0; n < terms; ++n) x = next_term(rate, x);
      // The same operations in the same order, so the same bits.
      ok = !(results[static_cast<std::size_t>(i)].get() != x) && ok;
    }
    for (const auto& w : workers) w.stop();
    for (const auto& w : workers) w.join();
    for (const auto& c : computers) c.stop();
    for (const auto& c : computers) c.join();
    return savina_outcome{2 * series * terms, ok};
  });
}

}  // namespace

workload savina_logistic_map() {
  return savina_workload(
      "logistic_map", "workers ask computers for each next term of a series",
      {{.name = "series", .help = "workers, and computers", .standard = 10, .min = 1, .max = 100'000},
       {.name = "terms", .help = "of each series", .standard = 25'000, .min = 1, .max = 10'000'000}},
      run);
}

}  // namespace ramie::lab
