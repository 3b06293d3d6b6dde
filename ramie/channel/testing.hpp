// For the tests of this floor: parties that meet on channels, as fibers of various runtimes or as plain threads, and
// elements that misbehave.
#pragma once

#include <ramie/channel/channel.hpp>
#include <ramie/fiber/spawn.hpp>
#include <ramie/fiber/testing.hpp>
#include <ramie/machine/test_options.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ramie::channel_tests {

using namespace fiber_tests;

/// Where a test runs.
struct world {
  int workers;  // 0: plain threads, no runtime at all
  bool migrate_always = false;

  [[nodiscard]] runtime_options options() const {
    runtime_options o;
    o.workers = workers;
    return o;
  }
  friend void PrintTo(const world& w, std::ostream* out) {
    *out << w.workers << (w.migrate_always ? " migrating" : "");
  }
};

/// Parties that run at the same time; joined at the end.
class crew {
 public:
  explicit crew(bool threads) noexcept : threads_only_{threads} {}
  crew(const crew&) = delete;
  crew& operator=(const crew&) = delete;
  ~crew() { join(); }

  /// One more of the kind that the test is about. `f` must not throw.
  template <class F>
  void start(F f) {
    if (threads_only_) start_thread(std::move(f));
    else fibers_.push_back(spawn(std::move(f)));
  }
  template <class F>
  void start_thread(F f) {
    std::lock_guard guard{lock_};
    threads_.emplace_back(std::move(f));
  }
  [[nodiscard]] bool joined() const noexcept { return fibers_.empty() && threads_.empty(); }
  void join() {
    for (join_handle<void>& f : fibers_) f.join();
    fibers_.clear();
    if (threads_.empty()) return;
    // Fibers must run meanwhile, also on this one's worker.
    blocking_join();
  }

 private:
  void blocking_join() {
    std::vector<std::thread> all;
    all.swap(threads_);
    std::atomic<bool> joined{false};
    std::thread joiner{[&] {
      for (std::thread& t : all) t.join();
      joined.store(true);
    }};
    await([&] { return joined.load(); });
    joiner.join();
  }

  bool threads_only_;
  std::mutex lock_;
  std::vector<join_handle<void>> fibers_;
  std::vector<std::thread> threads_;
};

/// The cases of a fixture made from this run in each world: 1, 2 and 8 workers, fibers that migrate always or as they
/// like, and plain threads.
class in_worlds : public ::testing::TestWithParam<world> {
 protected:
  [[nodiscard]] static bool on_threads() { return GetParam().workers == 0; }

  static constexpr const char* unjoined = "who uses channels must be joined before they go out of scope";

  /// Runs f(crew&) in a fiber of a new runtime, or here. It joins what it starts.
  template <class F>
  static void run(F f) {
    if (on_threads()) {
      crew all{true};
      f(all);
      EXPECT_TRUE(all.joined()) << unjoined;
      return;
    }
    runtime rt{GetParam().options()};
    rt.run([&] {
      crew all{false};
      f(all);
      EXPECT_TRUE(all.joined()) << unjoined;
    });
  }

 private:
  detail::with_test_options migrating_{{.migrate_always = GetParam().migrate_always}};
};

inline auto all_worlds() {
  return ::testing::Values(world{0}, world{1}, world{2}, world{8}, world{1, true}, world{2, true}, world{8, true});
}
inline std::string name_of(const ::testing::TestParamInfo<world>& p) {
  if (p.param.workers == 0) return "threads";
  return "w" + std::to_string(p.param.workers) + (p.param.migrate_always ? "_migrating" : "");
}

template <class T>
void await_receivers(const channel<T>& c, std::size_t n) {
  await([&] { return c.statistics().waiting_receivers == n; });
}
template <class T>
void await_senders(const channel<T>& c, std::size_t n) {
  await([&] { return c.statistics().waiting_senders == n; });
}

/// Throws at those of its moves that it was told to; counts its live copies. A move that throws changes nothing.
struct moody {
  static inline std::atomic<int> alive{0};

  int value;
  std::shared_ptr<std::atomic<int>> throws_left;  // how many more moves fail

  explicit moody(int v, int throws = 0) : value{v}, throws_left{std::make_shared<std::atomic<int>>(throws)} { ++alive; }
  moody(moody&& other) noexcept(false) : value{other.value}, throws_left{other.throws_left} {
    if (throws_left != nullptr && throws_left->fetch_sub(1) > 0) throw std::runtime_error{"would not move"};
    other.value = -1;
    ++alive;
  }
  moody& operator=(moody&&) = delete;
  ~moody() { --alive; }
};

}  // namespace ramie::channel_tests
