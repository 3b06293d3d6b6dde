// Threads of the operating system.
#include <common/peer.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace {

using measure = std::function<void(const peer::run_once&)>;
using clock_type = std::chrono::steady_clock;

/// Room for one message.
class slot {
 public:
  void put(std::int64_t value) {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [this] { return !full_; });
    value_ = value;
    full_ = true;
    lock.unlock();
    changed_.notify_one();
  }
  std::int64_t take() {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [this] { return full_; });
    full_ = false;
    const std::int64_t value = value_;
    lock.unlock();
    changed_.notify_one();
    return value;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool full_ = false;
  std::int64_t value_ = 0;
};

void pingpong(const peer::options& o, const measure& m) {
  const std::int64_t rounds = o.number("messages", 200'000) / 2;
  m([&] {
    std::int64_t last = 0;
    const double seconds = peer::seconds_of([&] {
      slot ping;
      slot pong;
      std::thread other{[&] {
        for (std::int64_t i = 0; i < rounds; ++i) pong.put(ping.take() + 1);
      }};
      for (std::int64_t i = 0; i < rounds; ++i) {
        ping.put(last);
        last = pong.take();
      }
      other.join();
    });
    return peer::outcome{seconds, 2 * rounds, last == rounds};
  });
}

template <class F>
double seconds_of_threads(std::int64_t number, F each) {
  return peer::seconds_of([&] {
    std::vector<std::thread> running;
    for (std::int64_t i = 0; i < number; ++i) running.emplace_back(each);
    for (std::thread& t : running) t.join();
  });
}

void mutex(const peer::options& o, const measure& m) {
  const std::int64_t threads = o.number("fibers", 4);
  const std::int64_t count = o.number("count", 1'000'000);
  m([&] {
    std::mutex lock;
    std::int64_t counter = 0;
    const double seconds = seconds_of_threads(threads, [&] {
      for (std::int64_t i = 0; i < count; ++i) {
        const std::lock_guard guard{lock};
        ++counter;
      }
    });
    return peer::outcome{seconds, threads * count, counter == threads * count};
  });
}

void yield(const peer::options& o, const measure& m) {
  const std::int64_t threads = o.number("fibers", 2);
  const std::int64_t count = o.number("count", 1'000'000);
  m([&] {
    const double seconds = seconds_of_threads(threads, [&] {
      for (std::int64_t i = 0; i < count; ++i) std::this_thread::yield();
    });
    return peer::outcome{seconds, threads * count, true};
  });
}

void spawn(const peer::options& o, const measure& m) {
  const std::int64_t count = o.number("count", 20'000);
  m([&] {
    std::int64_t sum = 0;
    const double seconds = peer::seconds_of([&] {
      for (std::int64_t i = 0; i < count; ++i) std::thread{[&sum, i] { sum += i; }}.join();
    });
    return peer::outcome{seconds, count, sum == count * (count - 1) / 2};
  });
}

void memory(const peer::options& o, const measure& m) {
  const std::int64_t count = o.number("count", 10'000);
  m([&] {
    const std::int64_t before = peer::status_bytes("VmRSS:");
    std::mutex lock;
    std::condition_variable changed;
    std::int64_t parked = 0;
    bool open = false;
    std::vector<std::thread> threads;
    threads.reserve(static_cast<std::size_t>(count));
    const double seconds = peer::seconds_of([&] {
      for (std::int64_t i = 0; i < count; ++i) {
        threads.emplace_back([&] {
          std::unique_lock guard{lock};
          ++parked;
          changed.wait(guard, [&] { return open; });
        });
      }
      for (;;) {
        const std::lock_guard guard{lock};
        if (parked == count) break;
      }
    });
    const auto grown = static_cast<double>(peer::status_bytes("VmRSS:") - before);
    const double ending = peer::seconds_of([&] {
      {
        const std::lock_guard guard{lock};
        open = true;
      }
      changed.notify_all();
      for (std::thread& t : threads) t.join();
    });
    const auto each = static_cast<double>(count);
    return peer::outcome{
        seconds,
        count,
        true,
        {{"resident_bytes_per_fiber", grown / each}, {"wake_and_end_ns_per_fiber", ending * 1e9 / each}}};
  });
}

/// How late every tick comes that is due, in microseconds and in order; also those that come due while the thread waits
/// for its turn.
std::vector<double> tick(std::int64_t ticks, clock_type::duration period) {
  std::vector<double> late;
  auto due = clock_type::now();
  while (static_cast<std::int64_t>(late.size()) < ticks) {
    due += period;
    std::this_thread::sleep_until(due);
    const auto now = clock_type::now();
    late.push_back(std::chrono::duration<double, std::micro>(now - due).count());
    while (now - due >= period && static_cast<std::int64_t>(late.size()) < ticks) {
      due += period;
      late.push_back(std::chrono::duration<double, std::micro>(now - due).count());
    }
  }
  std::sort(late.begin(), late.end());
  return late;
}

void ticker(const peer::options& o, const measure& m) {
  const std::int64_t hogs = o.number("hogs", 8);
  const std::int64_t ticks = o.number("ticks", 1000);
  m([&] {
    std::atomic<bool> stop{false};
    std::vector<std::thread> computing;
    for (std::int64_t i = 0; i < hogs; ++i) {
      computing.emplace_back([&stop] {
        while (!stop.load(std::memory_order_relaxed)) {
        }
      });
    }
    std::vector<double> late;
    const double seconds =
        peer::seconds_of([&] { late = tick(ticks, std::chrono::microseconds{o.number("period-us", 1000)}); });
    stop.store(true);
    for (std::thread& t : computing) t.join();
    const std::size_t n = late.size();
    return peer::outcome{
        seconds,
        ticks,
        true,
        {{"lateness_p50_us", late[n / 2]}, {"lateness_p99_us", late[n * 99 / 100]}, {"lateness_max_us", late.back()}}};
  });
}

}  // namespace

int main(int argc, char** argv) {
  return peer::run("std_thread", "gcc " + std::to_string(__GNUC__) + "." + std::to_string(__GNUC_MINOR__),
                   {{"pingpong", "condition_variable", "message", pingpong},
                    {"mutex", "mutex", "lock", mutex},
                    {"yield", "threads", "switch", yield},
                    {"spawn", "join", "fiber", spawn},
                    {"memory", "threads", "fiber", memory},
                    {"ticker", "threads", "tick", ticker}},
                   argc, argv);
}
