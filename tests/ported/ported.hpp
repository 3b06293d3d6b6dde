// For programs modelled on the tests of other libraries: each runs as the main fiber of a runtime with 1, 2 and 8
// workers. Only their behaviour was taken over; each names its source.
#pragma once

#include <ramie/channel.hpp>
#include <ramie/fiber.hpp>
#include <ramie/runtime.hpp>
#include <ramie/sync.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace ramie::ported {

using namespace std::chrono_literals;

class program : public ::testing::TestWithParam<int> {
 protected:
  template <class F>
  static void run(F f) {
    runtime rt{{.workers = GetParam()}};
    rt.run(std::move(f));
  }
};

inline auto on_1_2_and_8_workers() { return ::testing::Values(1, 2, 8); }
inline std::string workers_of(const ::testing::TestParamInfo<int>& p) { return "w" + std::to_string(p.param); }

/// Fibers that are joined at the end of the block.
class crew {
 public:
  template <class F>
  void go(F f) {
    all_.push_back(spawn(std::move(f)));
  }
  void join() {
    for (join_handle<void>& f : all_) f.join();
    all_.clear();
  }
  ~crew() noexcept(false) { join(); }

 private:
  std::vector<join_handle<void>> all_;
};

template <class Condition>
void until(Condition condition) {
  while (!condition()) this_fiber::sleep_for(20us);
}

inline constexpr auto none = [](auto&&...) {};
inline constexpr auto never = [](auto&&...) { ADD_FAILURE() << "the wrong case was taken"; };

}  // namespace ramie::ported
