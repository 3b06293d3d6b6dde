// The programs of experiment 9 by name.
#pragma once

#include "bfs.hpp"
#include "cholesky.hpp"
#include "floorplan.hpp"
#include "health.hpp"
#include "merge_sort.hpp"
#include "queens.hpp"
#include "sparselu.hpp"
#include "strassen.hpp"
#include "uts.hpp"

#include <string_view>

namespace tasks {

struct program {
  const char* name;
  const char* unit;
  const char* what_size_is;
  std::int64_t standard;
  std::int64_t least;
  std::int64_t most;
};

inline constexpr program programs[] = {
    {"queens", "placement", "rows and columns of the board", 12, 1, 16},
    {"uts", "node", "children of the root", 20'000, 1, 10'000'000},
    {"merge_sort", "number", "numbers to sort", 4'000'000, 1, 1'000'000'000},
    {"strassen", "product", "rows and columns, 64 times a power of two", 1024, 64, 8192},
    {"sparselu", "operation", "tiles of 32 x 32 in a row", 32, 1, 512},
    {"cholesky", "operation", "tiles of 32 x 32 in a column", 24, 1, 512},
    {"health", "step", "levels of the tree of villages", 5, 1, 9},
    {"floorplan", "search", "cells to place", 9, 1, 12},
    {"bfs", "edge", "logarithm of the number of vertices", 17, 1, 26},
};

/// Runs one program of a crew once. `time` runs its argument where the crew needs it and returns the seconds. Not ok if
/// there is no such program.
template <class Crew, class Time>
result run(std::string_view name, std::int64_t size, const Time& time) {
  if (name == "queens") return queens<Crew>(size, time);
  if (name == "uts") return uts<Crew>(size, time);
  if (name == "merge_sort") return merge_sort<Crew>(size, time);
  if (name == "strassen") return strassen<Crew>(size, time);
  if (name == "sparselu") return sparselu<Crew>(size, time);
  if (name == "cholesky") return cholesky<Crew>(size, time);
  if (name == "health") return health<Crew>(size, time);
  if (name == "floorplan") return floorplan<Crew>(size, time);
  if (name == "bfs") return bfs<Crew>(size, time);
  return {1, 1, false};
}

}  // namespace tasks
