// Runs a program of simulated threads under a seeded scheduler that may switch at every atomic operation of ramie.
// docs/design/interleaving.md explains how, and what cannot be found this way.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/base/plant.hpp>

#include <cstdint>
#include <functional>
#include <string>

namespace ramie::interleave {

/// A seed also chooses the memory and the kind of fences: by its remainder. 0 and 2: x86-TSO and membarrier; 1 and 3:
/// weak memory and membarrier; 4 and 5: the same two with full fences.
inline constexpr std::uint64_t modes = 6;
inline bool is_weak(std::uint64_t seed) noexcept { return seed % modes % 2 == 1; }

struct exploration {
  std::uint64_t seeds = 2000;    // how many; each is one schedule. RAMIE_SEEDS=N multiplies it by N
  std::uint64_t first_seed = 1;  // RAMIE_SEED=S runs only S, and prints what happened; RAMIE_FIRST_SEED=S begins there
  std::uint64_t steps_most = 200'000;  // of one run: more is a livelock
  bool late_stores = true;             // stores become visible late, as on x86-64 or on weaker memory
  bool time_flies = true;              // deadlines may come while other threads can run
  bool warm_up = true;                 // a run before the first, so that caches are filled
  bool each_alone = false;             // each run in a process where nothing was made before; some milliseconds each
};

/// For what has to be found: half as many again, since a change of the code moves the schedule that finds it.
inline exploration with_margin(exploration how) noexcept {
  how.seeds += how.seeds / 2;
  return how;
}

/// Called at each start of a thread: if it returns true, the start fails as if the system refused.
extern std::function<bool()> refuse_threads;
/// Called at each futex wait that would sleep: if it returns true, the wait ends at once, as by a signal.
extern std::function<bool()> end_waits;

/// Called whenever no thread can run before the next deadline. The run fails for what it returns, unless that is null.
/// What it reads are no steps, and it sees the newest values. A program sets it for its own run, and takes it away.
extern std::function<const char*()> at_rest;

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
/// the first failure. Each run depends on its seed alone. Runs in child processes, so a run may crash.
[[nodiscard]] finding explore(const exploration& how, const std::function<void()>& body);

/// From within a run: the run fails unless the invariant `holds`.
void check(bool holds, const char* what) noexcept;

/// A step, at which other threads may run. It orders nothing.
void step() noexcept;

/// A number below `bound`, from the run's seed, so that programs differ from run to run.
[[nodiscard]] std::uint32_t pick(std::uint32_t bound) noexcept;

/// A simulated thread that is joined in its destructor.
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

/// As gtest assertions: no seed fails; or, with the bug planted, one does, and fails again when replayed.
void expect_sound(const char* name, const exploration& how, const std::function<void()>& body);
void expect_found(plant bug, const char* name, const exploration& how, const std::function<void()>& body);
/// As expect_found, and what is found is a race on plain data.
void expect_race_found(plant bug, const char* name, const exploration& how, const std::function<void()>& body);

}  // namespace ramie::interleave
