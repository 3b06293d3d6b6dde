// Quicksort: both parts of a partition may be sorted in parallel. If no worker is idle, fork_join is two plain calls.
#include <ramie/ramie.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

void quicksort(std::span<std::uint32_t> v) {
  if (v.size() <= 32) {
    std::sort(v.begin(), v.end());
    return;
  }
  const std::uint32_t pivot =
      std::max(std::min(v.front(), v.back()), std::min(std::max(v.front(), v.back()), v[v.size() / 2]));
  const auto less = std::partition(v.begin(), v.end(), [=](std::uint32_t x) { return x < pivot; });
  const auto greater = std::partition(less, v.end(), [=](std::uint32_t x) { return x == pivot; });
  ramie::fork_join([=] { quicksort({v.begin(), less}); }, [=] { quicksort({greater, v.end()}); });
}

int main() {
  return ramie::run([] {
    std::vector<std::uint32_t> v(1'000'000);
    std::uint32_t x = 1;
    for (std::uint32_t& element : v) element = x = x * 1664525 + 1013904223;  // a linear congruential generator
    quicksort(v);
    std::printf("%zu numbers, sorted: %s\n", v.size(), std::is_sorted(v.begin(), v.end()) ? "yes" : "no");
    std::printf("least %u, median %u, greatest %u\n", v.front(), v[v.size() / 2], v.back());
  });
}
