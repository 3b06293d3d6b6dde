// Experiment 10's graph of tasks: a grid of cells, each of which needs the one above it and the one to its left, as in
// the alignment of sequences. The graph is made once and run many times.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace wavefront {

/// The cells of `side` rows and columns.
class grid {
 public:
  grid(std::size_t side, std::int64_t work) : side_{side}, work_{work}, cells_(side * side) {}
  [[nodiscard]] std::size_t side() const { return side_; }
  /// The task: depends on the cells above and to the left, and on what this one was in the run before.
  void fill(std::size_t row, std::size_t column) {
    std::uint64_t value = cells_[row * side_ + column];
    value += row == 0 ? 1 : cells_[(row - 1) * side_ + column];
    value += column == 0 ? 1 : cells_[row * side_ + column - 1];
    for (std::int64_t i = 0; i <= work_; ++i) value = value * 6364136223846793005u + 1442695040888963407u;
    cells_[row * side_ + column] = value;
  }
  [[nodiscard]] const std::vector<std::uint64_t>& cells() const { return cells_; }

 private:
  std::size_t side_;
  std::int64_t work_;
  std::vector<std::uint64_t> cells_;
};

/// Without a graph.
class plain {
 public:
  explicit plain(grid& g) : grid_{g} {}
  void run() {
    for (std::size_t r = 0; r < grid_.side(); ++r)
      for (std::size_t c = 0; c < grid_.side(); ++c) grid_.fill(r, c);
  }

 private:
  grid& grid_;
};

struct result {
  double seconds;
  std::int64_t tasks;
  bool ok;
};

/// Runs the graph of a contestant: `How` is made of a grid, and run() fills it once. time(f) runs f where How needs it.
template <class How, class Time>
result run(std::size_t side, std::int64_t work, const Time& time) {
  // 100,000 tasks at least.
  const std::size_t runs = std::max<std::size_t>(1, 100'000 / (side * side));
  grid filled{side, work};
  double seconds = 0;
  {
    How how{filled};
    seconds = time([&] {
      for (std::size_t i = 0; i < runs; ++i) how.run();
    });
  }
  grid expected{side, work};
  for (std::size_t i = 0; i < runs; ++i) plain{expected}.run();
  return {seconds, static_cast<std::int64_t>(runs * side * side), filled.cells() == expected.cells()};
}

}  // namespace wavefront
