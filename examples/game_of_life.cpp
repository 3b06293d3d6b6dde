// Conway's game of life: all rows of the next generation in parallel, from the current one, which does not change.
#include <ramie/ramie.hpp>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

using field = std::vector<std::string>;  // '#' lives; the edges are joined, as on a ring

int neighbours(const field& f, int row, int column) {
  const int rows = static_cast<int>(f.size());
  const int columns = static_cast<int>(f[0].size());
  int n = 0;
  for (int r = row - 1; r <= row + 1; ++r)
    for (int c = column - 1; c <= column + 1; ++c)
      if (r != row || c != column)
        n += f[static_cast<std::size_t>((r + rows) % rows)][static_cast<std::size_t>((c + columns) % columns)] == '#';
  return n;
}

void step(const field& now, field& next) {
  ramie::parallel_for(0, static_cast<int>(now.size()), [&](int row) {
    const std::string& from = now[static_cast<std::size_t>(row)];
    std::string& to = next[static_cast<std::size_t>(row)];
    for (std::size_t c = 0; c < from.size(); ++c) {
      const int n = neighbours(now, row, static_cast<int>(c));
      to[c] = n == 3 || (n == 2 && from[c] == '#') ? '#' : '.';
    }
  });
}

int main() {
  return ramie::run([] {
    field now{".#........",  //
              "..#.......",  //
              "###.......",  //
              "..........",  //
              "......###.",  //
              "..........",  //
              "..........",  //
              ".........."};
    field next = now;
    for (int generation = 0; generation < 8; ++generation) {
      step(now, next);
      std::swap(now, next);
    }
    for (const std::string& row : now) std::printf("%s\n", row.c_str());
  });
}
