// Random programs by their seeds, for tests that compare them with a reference.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

namespace seeds {

/// Calls one(seed) for `usual` seeds from 1 on, RAMIE_SEEDS times as many, or RAMIE_SEED alone, until a test has
/// failed.
template <class F>
void for_each(int usual, F one) {
  const char* const many = std::getenv("RAMIE_SEEDS");
  const char* const only = std::getenv("RAMIE_SEED");
  const int first = only != nullptr ? std::atoi(only) : 1;
  const int last = only != nullptr ? first : usual * (many != nullptr ? std::atoi(many) : 1);
  for (int seed = first; seed <= last && !testing::Test::HasFailure(); ++seed) one(seed);
}

/// A tenth where a placement is set: under `dedicated` most messages wake another worker.
inline int fewer_if_placed(int usual) { return std::getenv("RAMIE_PLACEMENT") != nullptr ? usual / 10 : usual; }

}  // namespace seeds
