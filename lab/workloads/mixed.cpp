// Experiment 3, the mixed case: rings of actors pass tokens round and are built anew, while workers factorise.
#include <lab/harness/session.hpp>
#include <lab/workloads/plain_calls.hpp>
#include <lab/workloads/registry.hpp>

#include <ramie/ramie.hpp>

#include <cstdint>
#include <utility>
#include <vector>

namespace ramie::lab {
namespace {

constexpr std::uint64_t factor_a = 86'028'157;
constexpr std::uint64_t factor_b = 329'545'133;

/// Trial division as the experiment has it: no end at the square root.
std::vector<std::uint64_t> factorise(std::uint64_t n) {
  std::vector<std::uint64_t> factors;
  for (std::uint64_t d = 2; d < n;) {
    if (n % d == 0) {
      factors.push_back(d);
      n /= d;
    } else {
      d += d == 2 ? 1 : 2;
    }
  }
  factors.push_back(n);
  return factors;
}

struct token {
  std::int64_t value;
};
struct task_of_worker {
  std::uint64_t number;
};
struct factors {
  std::vector<std::uint64_t> all;
};
struct master_done {
  std::int64_t messages;
};

/// Ends after all results and all masters are in.
class collector : public ramie::actor<collector> {
 public:
  collector(std::int64_t results, std::int64_t masters, std::int64_t* messages, std::int64_t* right)
      : results_left_{results}, masters_left_{masters}, messages_{messages}, right_{right} {}
  void on(const factors& f) {
    *right_ += static_cast<std::int64_t>(f.all == std::vector{factor_a, factor_b});
    --results_left_;
    look();
  }
  void on(master_done m) {
    *messages_ += m.messages;
    --masters_left_;
    look();
  }

 private:
  void look() {
    if (results_left_ == 0 && masters_left_ == 0) stop();
  }
  std::int64_t results_left_;
  std::int64_t masters_left_;
  std::int64_t* messages_;
  std::int64_t* right_;
};

class worker : public ramie::actor<worker> {
 public:
  explicit worker(ramie::actor_ref<collector> to) : collector_{std::move(to)} {}
  void on(task_of_worker t) { collector_.tell(factors{factorise(t.number)}); }

 private:
  ramie::actor_ref<collector> collector_;
};

class chain_link : public ramie::actor<chain_link> {
 public:
  explicit chain_link(ramie::recipient<token> next) : next_{std::move(next)} {}
  void on(token t) {
    next_.tell(t);
    if (t.value == 0) stop();
  }

 private:
  ramie::recipient<token> next_;
};

struct sizes {
  std::int64_t ring;
  std::int64_t token;
  std::int64_t repetitions;
  bool factorise;
};

class master : public ramie::actor<master> {
 public:
  master(const sizes& s, ramie::actor_ref<collector> to) : sizes_{s}, collector_{std::move(to)} {
    if (s.factorise) worker_ = ramie::spawn_actor<worker>(collector_);
    build();
  }
  void on(token t) {
    ++rounds_;
    if (t.value != 0) {
      first_.tell(token{t.value - 1});
      return;
    }
    if (++built_ < sizes_.repetitions) {
      build();
      return;
    }
    if (worker_) worker_.stop();
    collector_.tell(master_done{rounds_ * sizes_.ring});
    stop();
  }

 private:
  void build() {
    if (worker_) worker_.tell(task_of_worker{factor_a * factor_b});
    first_ = self();
    for (std::int64_t i = 1; i < sizes_.ring; ++i) first_ = ramie::spawn_actor<chain_link>(first_);
    first_.tell(token{sizes_.token});
  }

  sizes sizes_;
  ramie::actor_ref<collector> collector_;
  ramie::actor_ref<worker> worker_;
  ramie::recipient<token> first_;
  std::int64_t rounds_ = 0;
  std::int64_t built_ = 0;
};

run_result by_actors(session& s) {
  const sizes all{s.parameter("ring-size"), s.parameter("token"), s.parameter("repetitions"),
                  s.parameter("messages-only") == 0};
  const std::int64_t rings = s.parameter("rings");
  const std::int64_t results = all.factorise ? rings * all.repetitions : 0;
  std::int64_t messages = 0;
  std::int64_t right = 0;
  const double seconds = s.time([&] {
    auto c = ramie::spawn_actor<collector>(results, rings, &messages, &right);
    for (std::int64_t i = 0; i < rings; ++i) ramie::spawn_actor<master>(all, c);
    c.join();
  });
  const std::int64_t units = rings * all.repetitions * all.ring * (all.token + 1);
  return {.seconds = seconds, .units = units, .ok = messages == units && right == results};
}

run_result by_plain(session& s) {
  return run_plain_calls(
      s, s.parameter("rings") * s.parameter("repetitions") * s.parameter("ring-size") * (s.parameter("token") + 1));
}

}  // namespace

workload mixed_workload() {
  return {
      .name = "mixed",
      .summary = "experiment 3: tokens go round in rings of actors that are rebuilt, beside factorisations",
      .unit = "message",
      .parameters =
          {{.name = "rings", .help = "rings at once", .standard = 20, .min = 1, .max = 100'000},
           {.name = "ring-size",
            .help = "actors in a ring, its master included",
            .standard = 50,
            .min = 2,
            .max = 1'000'000},
           {.name = "token", .help = "what the token starts with", .standard = 10'000, .min = 0, .max = 1'000'000'000},
           {.name = "repetitions",
            .help = "rings that each master builds, one after the other",
            .standard = 5,
            .min = 1,
            .max = 1'000'000},
           {.name = "messages-only", .help = "1: without the factorisation", .standard = 0, .min = 0, .max = 1}},
      .styles =
          {
              {"plain", "a noinline function call in place of each message, nothing factorised; the yardstick", false,
               by_plain},
              {"actor", "each master, link, worker and the collector an actor", true, by_actors},
          },
  };
}

}  // namespace ramie::lab
