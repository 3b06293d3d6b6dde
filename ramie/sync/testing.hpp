// For the tests of this floor: where they run, and crowds of fibers and plain threads.
#pragma once

#include <ramie/fiber/testing.hpp>
#include <ramie/fiber/this_fiber.hpp>
#include <ramie/machine/test_options.hpp>
#include <ramie/runtime/runtime.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ramie::sync_tests {

using namespace std::chrono_literals;
using fiber_tests::await;
using fiber_tests::contains;
using fiber_tests::counted;
using fiber_tests::message_of;
using fiber_tests::scaled;

struct setting {
  int workers;
  bool migrate;  // every wait ends on another worker
  friend std::ostream& operator<<(std::ostream& out, const setting& s) {
    return out << s.workers << (s.migrate ? "_workers_migrating" : "_workers");
  }
};

/// The cases of a fixture made from this run with few and many workers, and with fibers that wander.
class everywhere : public ::testing::TestWithParam<setting> {
 protected:
  [[nodiscard]] static runtime_options options() {
    runtime_options o;
    o.workers = GetParam().workers;
    return o;
  }
  /// How often, where every wait goes by way of another worker's sleep.
  [[nodiscard]] static int rounds(int n) {
    const int most = scaled(n);
    return GetParam().migrate && most > 8 ? most / 8 : most;
  }
  /// Runs `f` in a fiber of a new runtime.
  template <class F>
  static auto in_runtime(F&& f) {
    runtime rt{options()};
    return rt.run(std::forward<F>(f));
  }

 private:
  detail::with_test_options migrating_{{.migrate_always = GetParam().migrate}};
};

inline auto settings() {
  return ::testing::Values(setting{1, false}, setting{2, false}, setting{8, false}, setting{2, true}, setting{8, true});
}

/// Calls f(i) for i from 0 on, in that many fibers of `rt` and plain threads, all at once. Rethrows.
template <class F>
void crowd(runtime& rt, int fibers, int threads, F f) {
  std::vector<std::thread> others;
  std::vector<join_handle<void>> handles;
  for (int i = 0; i < fibers; ++i) handles.push_back(rt.spawn([&f, i] { f(i); }));
  for (int i = 0; i < threads; ++i) others.emplace_back([&f, i, fibers] { f(fibers + i); });
  for (std::thread& t : others) t.join();
  for (auto& h : handles) h.join();
}

/// Lets the others get as far as they can; on a single worker without spares, that is until they wait.
inline void let_others_run() {
  for (int i = 0; i < 20; ++i) this_fiber::yield();
}

/// Expects that `f` throws `cancelled` in a fiber that is stopped before, while or after it begins to wait.
template <class F>
void expect_cancelled(F f) {
  for (int round = 0; round < 20; ++round) {
    auto h = spawn([&f] { f(); });
    for (int i = 0; i < round; ++i) this_fiber::yield();
    h.request_stop();
    EXPECT_THROW(h.join(), cancelled);
  }
}

}  // namespace ramie::sync_tests
