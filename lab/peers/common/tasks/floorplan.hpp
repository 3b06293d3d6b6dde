// The smallest rectangle that rectangular cells fit into, by branch and bound, as in the Barcelona suite's floorplan: a
// task for each place and direction of a cell. A cell's corner meets one of those placed before, to the right of it or
// below. What the best so far excludes depends on who is first, so the number of tasks differs from run to run, as
// there.
#pragma once

#include "crew.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <utility>

namespace tasks {

struct cell {
  int width, height;
  int column = 0, row = 0;
};

/// Cells that are placed, and the squares they cover.
struct floor_plan {
  static constexpr int side = 64;
  static constexpr std::size_t cells_most = 12;
  std::array<std::uint64_t, side> rows{};
  std::array<cell, cells_most> cells{};
  std::size_t count = 0;
  int width = 0, height = 0;

  /// False if it is not free.
  bool put(const cell& c) {
    if (c.column + c.width > side || c.row + c.height > side) return false;
    const std::uint64_t squares = ((std::uint64_t{1} << c.width) - 1) << c.column;
    for (int r = c.row; r < c.row + c.height; ++r) {
      if ((rows[static_cast<std::size_t>(r)] & squares) != 0) return false;
      rows[static_cast<std::size_t>(r)] |= squares;
    }
    cells[count++] = c;
    width = std::max(width, c.column + c.width);
    height = std::max(height, c.row + c.height);
    return true;
  }
  [[nodiscard]] int area() const { return width * height; }
};

/// Of the i-th cell, upright.
inline cell cell_to_place(std::size_t i) {
  constexpr std::array<cell, floor_plan::cells_most> all{
      {{2, 5}, {3, 4}, {1, 6}, {2, 3}, {4, 5}, {1, 3}, {2, 7}, {3, 5}, {1, 4}, {2, 4}, {3, 6}, {1, 2}}};
  return all[i];
}

template <class Crew>
void place_cells(const floor_plan& plan, std::size_t cells, std::atomic<int>& best) {
  const std::size_t places = plan.count == 0 ? 1 : 2 * plan.count;
  Crew::all(2 * places, [&plan, cells, &best](std::size_t i) {
    cell c = cell_to_place(plan.count);
    if (i % 2 == 1) std::swap(c.width, c.height);
    if (plan.count != 0) {
      const cell& beside = plan.cells[i / 4];
      const bool is_below = i / 2 % 2 == 1;
      c.column = beside.column + (is_below ? 0 : beside.width);
      c.row = beside.row + (is_below ? beside.height : 0);
    }
    floor_plan next = plan;
    if (!next.put(c)) return;
    int least = best.load(std::memory_order_relaxed);
    if (next.area() >= least) return;
    if (next.count < cells) return place_cells<Crew>(next, cells, best);
    while (next.area() < least && !best.compare_exchange_weak(least, next.area(), std::memory_order_relaxed)) {
    }
  });
}

/// `size`: cells, up to 12. A unit: a whole search.
template <class Crew, class Time>
result floorplan(std::int64_t size, const Time& time) {
  static std::map<std::int64_t, int> known;
  const auto search = [size]<class C>(C) {
    std::atomic<int> best{floor_plan::side * floor_plan::side};
    place_cells<C>(floor_plan{}, static_cast<std::size_t>(size), best);
    return best.load();
  };
  if (!known.contains(size)) known[size] = search(plain{});
  int area = 0;
  int least = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(size); ++i)
    least += cell_to_place(i).width * cell_to_place(i).height;
  const double seconds = time([&] { area = search(Crew{}); });
  return {seconds, 1, area == known[size] && area >= least};
}

}  // namespace tasks
