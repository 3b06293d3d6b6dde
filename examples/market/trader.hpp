// A trader places orders at random, always the same ones for the same number.
#pragma once

#include "book.hpp"

#include <random>

namespace market {

class trader {
 public:
  explicit trader(int number) : number_{number}, dice_{static_cast<unsigned>(number) + 1} {}
  order next() { return {number_, roll(0, 1) == 0 ? side::buy : side::sell, roll(90, 110), roll(1, 10)}; }

 private:
  int roll(int least, int most) { return least + static_cast<int>(dice_() % static_cast<unsigned>(most - least + 1)); }
  int number_;
  std::mt19937 dice_;
};

}  // namespace market
