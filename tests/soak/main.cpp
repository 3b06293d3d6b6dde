// ramie-soak [--hours H | --seconds S | --rounds N] [--seed N] [--verbose]
//
// A round: one or two runtimes of random shape, and some dozen acts on them at once. After each round nothing may be
// left: no tracked object, no thread. The memory of the process is compared with the base line now and then.
#include "soak.hpp"

#include <ramie/base/config.hpp>
#include <ramie/inspect/dump.hpp>
#include <ramie/machine/test_options.hpp>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace soak {

int scale = RAMIE_TSAN || RAMIE_ASAN ? 1 : 5;

namespace {

using clock = std::chrono::steady_clock;

std::uint64_t seed_of_run = 0;
std::atomic<std::uint64_t> round_now{0};
std::atomic<std::uint64_t> rounds_done{0};

struct wishes {
  double seconds = 10;
  std::uint64_t rounds = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t first_round = 0;
  bool verbose = false;
};

const named_act& pick_act(dice& d) {
  const int i = d.between(0, static_cast<int>(plain_acts.size() + actor_acts.size() + end_acts.size()) - 1);
  auto at = static_cast<std::size_t>(i);
  if (at < plain_acts.size()) return plain_acts[at];
  at -= plain_acts.size();
  if (at < actor_acts.size()) return actor_acts[at];
  return end_acts[at - actor_acts.size()];
}

std::map<std::string, std::atomic<std::uint64_t>>& acts_done() {
  static std::map<std::string, std::atomic<std::uint64_t>> all = [] {
    std::map<std::string, std::atomic<std::uint64_t>> made;
    for (const named_act& a : plain_acts) made[a.name];
    for (const named_act& a : actor_acts) made[a.name];
    for (const named_act& a : end_acts) made[a.name];
    return made;
  }();
  return all;
}

ramie::runtime_options random_runtime(dice& d) {
  constexpr std::array<ramie::stack_guard, 3> guards{ramie::stack_guard::automatic, ramie::stack_guard::automatic,
                                                     ramie::stack_guard::none};
  constexpr std::array<std::size_t, 3> sizes{64 * 1024, 128 * 1024, 256 * 1024};
  constexpr std::array<ramie::placement, 6> placements{
      ramie::placement::work_stealing, ramie::placement::work_stealing,        ramie::placement::work_stealing,
      ramie::placement::work_stealing, ramie::placement::stealing_no_affinity, ramie::placement::dedicated};
  return {.workers = d.between(1, 6),
          .placement = placements[static_cast<std::size_t>(d.between(0, 5))],
          .pin_threads = d.one_in(8),
          .stack_size = RAMIE_ASAN || RAMIE_TSAN ? 256 * 1024 : sizes[static_cast<std::size_t>(d.between(0, 2))],
          .name = "soak",
          .guard = guards[static_cast<std::size_t>(d.between(0, 2))],
          .spare_workers = d.one_in(3) ? 0 : d.between(1, 16)};
}

void run_acts(ramie::runtime& rt, dice& d, bool verbose) {
  std::vector<ramie::join_handle<void>> acts;
  const int n = d.between(1, 12);
  for (int i = 0; i < n; ++i) {
    const named_act& a = pick_act(d);
    acts.push_back(rt.spawn(ramie::fiber_options{.name = a.name}, [&a, seed = d.next()] {
      dice mine{seed};
      for (int times = mine.between(1, 3); times > 0; --times) a.run(mine);
      ++acts_done().at(a.name);
    }));
    if (verbose) std::fprintf(stderr, " %s", a.name);
  }
  if (verbose) std::fputc('\n', stderr);
  for (auto& a : acts) a.join();
}

void run_round(std::uint64_t number, bool verbose) {
  dice d{seed_of_run + number * 0x100000001b3u};
  if (verbose) std::fprintf(stderr, "round %llu:", static_cast<unsigned long long>(number));
  if (d.one_in(4)) {
    std::thread beside{[&, seed = d.next()] {
      dice his{seed};
      const ramie::detail::with_test_options told{{.migrate_always = his.one_in(4)}};
      ramie::runtime rt{random_runtime(his)};
      run_acts(rt, his, false);
    }};
    const ramie::detail::with_test_options told{{.migrate_always = d.one_in(4)}};
    ramie::runtime rt{random_runtime(d)};
    run_acts(rt, d, verbose);
    beside.join();
  } else {
    const ramie::detail::with_test_options told{{.migrate_always = d.one_in(4)}};
    ramie::runtime rt{random_runtime(d)};
    run_acts(rt, d, verbose);
  }
  if (const auto left = tracked::alive(); left != 0) fail(std::to_string(left) + " objects were never destroyed");
}

std::size_t threads_of_process() {
  std::ifstream status{"/proc/self/status"};
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("Threads:")) return std::strtoull(line.c_str() + 8, nullptr, 10);
  return 0;
}
std::size_t resident_bytes() {
  std::ifstream statm{"/proc/self/statm"};
  std::size_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

/// Compares the minimum of a period with the minimum of the first one after the warm-up: memory in use goes up and
/// down, leaked memory stays.
class memory_watch {
 public:
  void look() {
    least_ = std::min(least_, resident_bytes());
    if (++looks_ % period != 0) return;
    ++periods_;
    if (periods_ == 2) base_ = least_;
    // Sanitizers keep what was freed for a while, and allocators do not return everything.
    constexpr std::size_t slack = RAMIE_ASAN || RAMIE_TSAN ? std::size_t{1} << 30 : std::size_t{96} << 20;
    if (periods_ > 2 && least_ > 2 * base_ + slack)
      fail("memory grows: " + std::to_string(base_ >> 20) + " MB at first, now " + std::to_string(least_ >> 20));
    last_ = std::exchange(least_, std::numeric_limits<std::size_t>::max());
  }
  [[nodiscard]] std::size_t base() const { return base_; }
  [[nodiscard]] std::size_t last() const { return last_; }

 private:
  static constexpr int period = 50;  // rounds
  int looks_ = 0;
  int periods_ = 0;
  std::size_t least_ = std::numeric_limits<std::size_t>::max();
  std::size_t base_ = 0;
  std::size_t last_ = 0;
};

/// A round that does not end is a hang. Five minutes are far more than any round takes on the slowest machine.
constexpr int hang_seconds = 300;
void watch_for_hangs() {
  std::thread{[] {
    std::uint64_t seen = 0;
    auto since = clock::now();
    for (;;) {
      std::this_thread::sleep_for(std::chrono::seconds{1});
      const std::uint64_t done = rounds_done.load();
      if (done != seen) {
        seen = done;
        since = clock::now();
      } else if (clock::now() - since > std::chrono::seconds{hang_seconds}) {
        ramie::dump(STDERR_FILENO, {.fibers = 100, .actors = 100, .demangle = true});
        fail("a round does not end");
      }
    }
  }}.detach();
}

int soak(const wishes& w) {
  const auto end =
      w.seconds < 1e9
          ? clock::now() + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>{w.seconds})
          : clock::time_point::max();
  std::fprintf(stderr, "soak: seed %llu\n", static_cast<unsigned long long>(seed_of_run));
  watch_for_hangs();
  memory_watch memory;
  const auto begun = clock::now();
  auto told = begun;
  const std::size_t threads_at_start = threads_of_process();
  std::uint64_t number = w.first_round;
  for (; number - w.first_round < w.rounds && clock::now() < end; ++number) {
    round_now = number;
    run_round(number, w.verbose);
    ++rounds_done;
    memory.look();
    if (clock::now() - told > std::chrono::seconds{30}) {
      told = clock::now();
      std::fprintf(stderr, "soak: %llu rounds, %zu MB resident\n", static_cast<unsigned long long>(number) + 1,
                   resident_bytes() >> 20);
    }
  }
  // The kernel counts a thread for a moment after it was joined.
  const auto patience = clock::now() + std::chrono::seconds{hang_seconds};
  while (threads_of_process() > threads_at_start)
    if (clock::now() > patience) fail("threads are left");
    else std::this_thread::sleep_for(std::chrono::milliseconds{1});
  std::printf("soak: seed %llu, %llu rounds in %.1f s, no invariant broken; resident %zu MB, base line %zu MB\n",
              static_cast<unsigned long long>(seed_of_run), static_cast<unsigned long long>(number - w.first_round),
              std::chrono::duration<double>(clock::now() - begun).count(), resident_bytes() >> 20, memory.base() >> 20);
  for (const auto& [name, times] : acts_done())
    std::printf("  %-16s %llu\n", name.c_str(), static_cast<unsigned long long>(times.load()));
  std::fflush(nullptr);
  return 0;
}

}  // namespace

void fail(std::string_view what) {
  std::fprintf(stderr, "soak: FAILED in round %llu: %.*s\nsoak: again with --seed %llu --first-round %llu\n",
               static_cast<unsigned long long>(round_now.load()), static_cast<int>(what.size()), what.data(),
               static_cast<unsigned long long>(seed_of_run), static_cast<unsigned long long>(round_now.load()));
  std::fflush(nullptr);
  std::abort();
}

}  // namespace soak

int main(int argc, char** argv) {
  soak::wishes w;
  soak::seed_of_run = std::random_device{}();
  auto number = [&](int& i) {
    char* rest = nullptr;
    const double value = i + 1 < argc ? std::strtod(argv[i + 1], &rest) : -1;
    if (value < 0 || rest == nullptr || *rest != '\0') {
      std::fprintf(stderr, "ramie-soak: %s needs a number\n", argv[i]);
      std::exit(2);  // NOLINT(concurrency-mt-unsafe): no other thread has begun
    }
    ++i;
    return value;
  };
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--hours") w.seconds = 3600 * number(i);
    else if (option == "--seconds") w.seconds = number(i);
    else if (option == "--rounds") w.rounds = static_cast<std::uint64_t>(number(i)), w.seconds = 1e12;
    else if (option == "--first-round") w.first_round = static_cast<std::uint64_t>(number(i));
    else if (option == "--seed") soak::seed_of_run = static_cast<std::uint64_t>(number(i));
    else if (option == "--verbose") w.verbose = true;
    else {
      const bool help = option == "--help" || option == "-h";
      std::fprintf(
          help ? stdout : stderr,
          "usage: ramie-soak [--hours H | --seconds S | --rounds N] [--seed N] [--first-round N] [--verbose]\n"
          "A random mix of everything, from a seed, with its invariants checked. 10 seconds if nothing is said.\n");
      return help ? 0 : 2;
    }
  }
  return soak::soak(w);
}
