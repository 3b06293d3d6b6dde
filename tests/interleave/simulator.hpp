// Runs a program of simulated threads under a seeded scheduler that may switch at every atomic operation of ramie.
// docs/design/interleaving.md explains how, and what cannot be found this way.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/base/plant.hpp>

#include <cstdint>
#include <functional>
#include <string>

namespace ramie::interleave {

struct exploration {
  std::uint64_t seeds = 2000;          // how many; each is one schedule. RAMIE_SEEDS=N multiplies it by N
  std::uint64_t first_seed = 1;        // RAMIE_SEED=S runs only S, and prints what happened
  std::uint64_t steps_most = 200'000;  // of one run: more is a livelock
  bool store_buffers = true;           // stores become visible late, as on x86-64
  bool time_flies = true;              // deadlines may come while others could run
  bool warm_up = true;                 // a run before the first, so that caches are filled
};

/// Asked at each start of a thread: true, and it fails as if the system refused.
extern std::function<bool()> refuse_threads;
/// Asked at each wait for a futex that would sleep: true, and it ends at once, as by a signal.
extern std::function<bool()> end_waits;

struct finding {
  bool failed = false;
  std::string what;         // deadlock, livelock, an assertion, a signal
  std::uint64_t seed = 0;   // the run that failed
  std::uint64_t runs = 0;   // until then
  std::uint64_t steps = 0;  // of all runs
  double seconds = 0;
  bool replayed = false;  // the seed failed again in the same way, step by step
  std::string trace;      // the end of it
};

/// Runs `body` as the first simulated thread, once a seed, each time until all threads it started have ended. Stops at
/// the first failure. Each seed's run depends on nothing but the seed. Runs in child processes, so a run may crash.
[[nodiscard]] finding explore(const exploration& how, const std::function<void()>& body);

/// From within a run: the invariant `holds`, or the run has failed.
void check(bool holds, const char* what) noexcept;

/// A number below `bound`, from the run's seed: what the program does may differ from run to run.
[[nodiscard]] std::uint32_t pick(std::uint32_t bound) noexcept;

/// A simulated thread that joins when it goes away.
class simulated_thread {
 public:
  explicit simulated_thread(std::function<void()> body) : thread_{std::move(body)} {}
  simulated_thread(simulated_thread&&) noexcept = default;
  ~simulated_thread() {
    if (thread_.joinable()) thread_.join();
  }
  void join() noexcept { thread_.join(); }

 private:
  detail::os_thread thread_;
};

/// As gtest assertions: no seed fails; or, with the bug switched on, one does, and fails again when replayed.
void expect_sound(const char* name, const exploration& how, const std::function<void()>& body);
void expect_found(plant bug, const char* name, const exploration& how, const std::function<void()>& body);

}  // namespace ramie::interleave
