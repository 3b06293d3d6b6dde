// A test that is run with 1, 2 and 8 workers, and with 2 where each fiber goes on elsewhere after a wait.
#pragma once

#include <ramie/machine/test_options.hpp>
#include <ramie/runtime/runtime.hpp>

#include <gtest/gtest.h>

#include <string>
#include <tuple>

namespace ramie {

class on_workers : public ::testing::TestWithParam<std::tuple<int, bool>> {
 public:
  static auto all() {
    return ::testing::Values(std::tuple{1, false}, std::tuple{2, false}, std::tuple{8, false}, std::tuple{2, true});
  }
  static std::string name(const ::testing::TestParamInfo<ParamType>& p) {
    return "w" + std::to_string(std::get<0>(p.param)) + (std::get<1>(p.param) ? "_migrating" : "");
  }

 protected:
  static runtime_options options() {
    runtime_options o;
    o.workers = std::get<0>(GetParam());
    return o;
  }
  template <class F>
  static void run(F f) {
    runtime{options()}.run(f);
  }

 private:
  detail::with_test_options migrating_{{.migrate_always = std::get<1>(GetParam())}};
};

}  // namespace ramie
