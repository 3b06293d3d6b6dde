// The classic actor programs that the Savina suite collects (S. Imam, V. Sarkar, AGERE 2014), written for ramie's
// actors. Each checks its own result and counts its messages.
#pragma once

#include <lab/harness/session.hpp>
#include <lab/harness/workload.hpp>
#include <lab/peers/common/random.hpp>

#include <ramie/ramie.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ramie::lab {

struct savina_outcome {
  std::int64_t units;
  bool ok;
};

/// Times f() on the runtime; f returns a savina_outcome.
template <class F>
run_result run_savina(session& s, F f) {
  savina_outcome outcome{0, false};
  const double seconds = s.time([&] { outcome = f(); });
  return {.seconds = seconds, .units = outcome.units, .ok = outcome.ok};
}

/// A workload of one style, `actor`.
inline workload savina_workload(std::string name, std::string summary, std::vector<parameter> parameters,
                                run_result (*run)(session&)) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .unit = "message",
          .parameters = std::move(parameters),
          .styles = {{"actor", "class actors", true, run}},
          .yardstick = ""};
}

/// `n` actors of class A, each from copies of `args`.
template <class A, class... Args>
std::vector<ramie::actor_ref<A>> spawn_actors(std::int64_t n, const Args&... args) {
  std::vector<ramie::actor_ref<A>> all;
  all.reserve(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) all.push_back(ramie::spawn_actor<A>(args...));
  return all;
}

/// The same numbers in every run.
class small_random : peer::random_numbers {
 public:
  using random_numbers::next;
  using random_numbers::random_numbers;
  std::int64_t below(std::int64_t end) noexcept {
    return static_cast<std::int64_t>(random_numbers::below(static_cast<std::size_t>(end)));
  }
};

/// All of them.
std::vector<workload> savina_workloads();

workload savina_thread_ring();
workload savina_counting();
workload savina_fork_join_throughput();
workload savina_fork_join_create();
workload savina_big();
workload savina_chameneos();
workload savina_bank_transaction();
workload savina_concurrent_dictionary();
workload savina_dining_philosophers();
workload savina_sleeping_barber();
workload savina_cigarette_smokers();
workload savina_logistic_map();
workload savina_sieve();
workload savina_cobwebbed_tree();
workload savina_n_queens();

}  // namespace ramie::lab
