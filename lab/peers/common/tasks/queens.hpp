// All ways to place queens on a board so that none attacks another, as in the Barcelona suite's and Cilk's nqueens: a
// task for each place in a row. A board is three sets of bits, so a task is a few instructions.
#pragma once

#include "crew.hpp"

#include <array>
#include <bit>

namespace tasks {

struct queens_tally {
  std::int64_t solutions = 0;
  std::int64_t placements = 0;
  queens_tally& operator+=(const queens_tally& other) {
    solutions += other.solutions;
    placements += other.placements;
    return *this;
  }
};

/// Fills the rows that are left; the arguments are the columns in use, and the two kinds of diagonals as they meet this
/// row.
template <class Crew>
queens_tally place_queens(std::uint32_t board, std::uint32_t columns, std::uint32_t falling, std::uint32_t rising) {
  if (columns == board) return {1, 1};
  const std::uint32_t open = board & ~(columns | falling | rising);
  queens_tally all =
      Crew::template sum<queens_tally>(static_cast<std::size_t>(std::popcount(open)), [=](std::size_t i) {
        std::uint32_t rest = open;
        for (; i != 0; --i) rest &= rest - 1;
        const std::uint32_t bit = rest & (0 - rest);
        return place_queens<Crew>(board, columns | bit, (falling | bit) << 1, (rising | bit) >> 1);
      });
  ++all.placements;
  return all;
}

/// `size`: rows and columns, 1 to 16. A unit: a placement.
template <class Crew, class Time>
result queens(std::int64_t size, const Time& time) {
  // OEIS A000170.
  constexpr std::array<std::int64_t, 17> solutions{1,   1,   0,    0,     2,     10,     4,       40,      92,
                                                   352, 724, 2680, 14200, 73712, 365596, 2279184, 14772512};
  queens_tally found;
  const double seconds = time([&] { found = place_queens<Crew>((std::uint32_t{1} << size) - 1, 0, 0, 0); });
  return {seconds, found.placements, found.solutions == solutions[static_cast<std::size_t>(size)]};
}

}  // namespace tasks
