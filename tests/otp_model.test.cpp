// Ten thousand random programs of links, monitors, crashes, restarts, stops and kills against the reference.
#include "otp_model.hpp"

#include <ramie/fiber/testing.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>

namespace ramie {
namespace {

class otp_models : public fiber_tests::with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, otp_models, fiber_tests::few_and_many());

TEST_P(otp_models, agree) {
  const char* many = std::getenv("RAMIE_SEEDS");
  const char* one = std::getenv("RAMIE_SEED");
  const int seeds = fiber_tests::scaled(10'000) * (many != nullptr ? std::atoi(many) : 1);
  const int first = one != nullptr ? std::atoi(one) : 1;
  const int last = one != nullptr ? first : seeds;
  in_runtime([&] {
    for (int seed = first; seed <= last && !testing::Test::HasFailure(); ++seed) {
      std::mt19937 random{static_cast<std::uint32_t>(seed)};
      otp_model::program program{[&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); },
                                 [&](const std::string& wrong) { ADD_FAILURE() << "seed " << seed << ", " << wrong; },
                                 200'000};
      program.run(12);
    }
  });
}

}  // namespace
}  // namespace ramie
