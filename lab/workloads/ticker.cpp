// Does a tick that is due every millisecond come every millisecond while other fibers compute without end, or have
// blocked their threads in the kernel?
#include <lab/harness/session.hpp>
#include <lab/workloads/registry.hpp>

#include <ramie/ramie.hpp>

#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <system_error>
#include <thread>
#include <vector>

namespace ramie::lab {
namespace {

using std::chrono::steady_clock;

struct lateness {
  std::vector<double> us;
  std::int64_t missed = 0;
};

/// Every due tick counts: those that came due while the fiber waited for its turn are late by as long as it takes to
/// see them. A ticker drops these, so `missed` is how many had no wake-up of their own.
lateness tick(std::int64_t ticks, steady_clock::duration period) {
  lateness found;
  auto due = steady_clock::now();
  while (std::ssize(found.us) < ticks) {
    due += period;
    ramie::this_fiber::sleep_until(due);
    const auto now = steady_clock::now();
    found.us.push_back(std::chrono::duration<double, std::micro>(now - due).count());
    for (; now - due >= period && std::ssize(found.us) < ticks; ++found.missed) {
      due += period;
      found.us.push_back(std::chrono::duration<double, std::micro>(now - due).count());
    }
  }
  std::sort(found.us.begin(), found.us.end());
  return found;
}

double thread_cpu_seconds() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

run_result result_of(const session& s, double seconds, const lateness& found) {
  const std::size_t n = found.us.size();
  return {.seconds = seconds,
          .units = static_cast<std::int64_t>(n),
          .ok = std::ssize(found.us) == s.parameter("ticks"),
          .figures = {{"lateness_p50_us", found.us[n / 2]},
                      {"lateness_p90_us", found.us[n * 90 / 100]},
                      {"lateness_p99_us", found.us[n * 99 / 100]},
                      {"lateness_max_us", found.us.back()},
                      {"missed_ticks", static_cast<double>(found.missed)}}};
}

run_result beside_hogs(session& s) {
  const std::int64_t hogs = s.parameter("hogs");
  const std::int64_t ticks = s.parameter("ticks");
  const std::chrono::microseconds period{s.parameter("period-us")};
  std::atomic<bool> stop{false};
  std::atomic<double> hogs_cpu{0};  // a hog never leaves the thread on which it began
  std::atomic<std::int64_t> begun{0};
  std::int64_t running = 0;
  lateness found;
  double ticking = 0;
  const double seconds = s.time([&] {
    ramie::scope computing;
    for (std::int64_t i = 0; i < hogs; ++i) {
      computing.spawn([&] {
        if (stop.load(std::memory_order_relaxed)) return;
        begun.fetch_add(1, std::memory_order_relaxed);
        const double before = thread_cpu_seconds();
        while (!stop.load(std::memory_order_relaxed)) {
        }
        hogs_cpu.fetch_add(thread_cpu_seconds() - before, std::memory_order_relaxed);
      });
    }
    const auto start = steady_clock::now();
    found = tick(ticks, period);
    ticking = std::chrono::duration<double>(steady_clock::now() - start).count();
    stop.store(true, std::memory_order_relaxed);
    running = begun.load(std::memory_order_relaxed);
    computing.join();
  });
  run_result result = result_of(s, seconds, found);
  const double processors = std::min<double>(s.workers(), std::thread::hardware_concurrency());
  result.figures.push_back({"hogs_share", hogs_cpu.load(std::memory_order_relaxed) / (ticking * processors)});
  result.figures.push_back({"hogs_begun", static_cast<double>(running)});
  return result;
}

/// Fibers that do what they should not: read(2) from a descriptor that has nothing to read. A pair of sockets, of
/// which one shutdown ends all reads.
class silence {
 public:
  silence() {
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_.data()) != 0)
      throw std::system_error{errno, std::generic_category(), "socketpair"};
  }
  ~silence() {
    for (const int end : ends_) ::close(end);
  }
  silence(const silence&) = delete;
  silence& operator=(const silence&) = delete;
  void read() const noexcept {
    char byte;
    while (::read(ends_[0], &byte, 1) < 0 && errno == EINTR) {
    }
  }
  void end() const noexcept { ::shutdown(ends_[1], SHUT_RDWR); }

 private:
  std::array<int, 2> ends_{};
};

run_result beside_reads(session& s) {
  const std::int64_t ticks = s.parameter("ticks");
  const std::chrono::microseconds period{s.parameter("period-us")};
  const silence quiet;
  lateness found;
  const double seconds = s.time([&] {
    ramie::scope reading;
    for (std::int64_t i = s.parameter("hogs"); i != 0; --i) reading.spawn([&] { quiet.read(); });
    found = tick(ticks, period);
    quiet.end();
    reading.join();
  });
  return result_of(s, seconds, found);
}

/// One hog after the other on a runtime that is otherwise quiet: each computes for 20 ms, with 30 ms between them.
run_result beside_new_hogs(session& s) {
  using namespace std::chrono_literals;
  const std::int64_t ticks = s.parameter("ticks");
  const std::chrono::microseconds period{s.parameter("period-us")};
  lateness found;
  const double seconds = s.time([&] {
    std::atomic<bool> stop{false};
    ramie::scope computing;
    computing.spawn([&] {
      while (!stop.load(std::memory_order_relaxed)) {
        ramie::this_fiber::sleep_for(30ms);
        const auto until = steady_clock::now() + 20ms;
        while (steady_clock::now() < until && !stop.load(std::memory_order_relaxed)) {
        }
      }
    });
    found = tick(ticks, period);
    stop.store(true, std::memory_order_relaxed);
    computing.join();
  });
  return result_of(s, seconds, found);
}

}  // namespace

workload ticker_workload() {
  return {
      .name = "ticker",
      .summary = "a tick every millisecond beside fibers that compute without end, or block their threads",
      .unit = "tick",
      .parameters =
          {{.name = "hogs", .help = "fibers that never yield, or that read", .standard = 8, .min = 0, .max = 100'000},
           {.name = "ticks", .help = "ticks to wait for", .standard = 1000, .min = 1, .max = 1'000'000},
           {.name = "period-us",
            .help = "microseconds from tick to tick",
            .standard = 1000,
            .min = 10,
            .max = 1'000'000}},
      .styles = {{"sleep", "a fiber that sleeps until the next tick is due", true, beside_hogs},
                 {"reads", "the same, beside fibers in read(2) on a socket that nobody writes to", true, beside_reads},
                 {"new-hogs", "the same, beside a fiber that computes for 20 ms every 50", true, beside_new_hogs}},
      .yardstick = "",
      .standard_runs = 3,
      .standard_warmup = 0,
  };
}

}  // namespace ramie::lab
