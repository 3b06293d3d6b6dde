// Ten thousand random programs of links, monitors, crashes, restarts, stops and kills against the reference.
#include "otp_model.hpp"
#include "seeds.hpp"

#include <ramie/fiber/testing.hpp>

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace ramie {
namespace {

class otp_models : public fiber_tests::with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, otp_models, fiber_tests::few_and_many());

TEST_P(otp_models, agree) {
  in_runtime([&] {
    seeds::for_each(fiber_tests::scaled(10'000), [&](int seed) {
      std::mt19937 random{static_cast<std::uint32_t>(seed)};
      otp_model::program program{[&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); },
                                 [&](const std::string& wrong) { ADD_FAILURE() << "seed " << seed << ", " << wrong; },
                                 200'000};
      program.run(12);
    });
  });
}

}  // namespace
}  // namespace ramie
