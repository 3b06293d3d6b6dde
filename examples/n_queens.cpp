// In how many ways can n queens stand on a board of n x n so that none attacks another?
#include <ramie/ramie.hpp>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <vector>

/// The columns of this row that the queens above attack: by column, and along both diagonals. A bit is a column.
struct attacked {
  std::uint32_t columns = 0, left = 0, right = 0;
  [[nodiscard]] attacked with(std::uint32_t queen) const {
    return {columns | queen, (left | queen) << 1, (right | queen) >> 1};
  }
};

/// Calls place(queen) for each column of the next row that is not attacked.
template <class Place>
void for_each_open(std::uint32_t board, attacked a, Place place) {
  for (std::uint32_t open = board & ~(a.columns | a.left | a.right); open != 0; open &= open - 1)
    place(open & (~open + 1));
}

long count(std::uint32_t board, attacked a) {
  if (a.columns == board) return 1;
  long ways = 0;
  for_each_open(board, a, [&](std::uint32_t queen) { ways += count(board, a.with(queen)); });
  return ways;
}

long queens(int n) {
  const std::uint32_t board = (1u << n) - 1;
  std::vector<attacked> beginnings;  // all placings of the first two: enough pieces for any number of workers
  for_each_open(board, {}, [&](std::uint32_t first) {
    const attacked a = attacked{}.with(first);
    for_each_open(board, a, [&](std::uint32_t second) { beginnings.push_back(a.with(second)); });
  });
  return ramie::parallel_reduce(beginnings.begin(), beginnings.end(), 0L, std::plus<>{},
                                [board](attacked a) { return count(board, a); });
}

int main() {
  return ramie::run([] {
    for (const int n : {4, 6, 8, 10}) std::printf("%d queens: %ld ways\n", n, queens(n));
  });
}
