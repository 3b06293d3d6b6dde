// A merge sort whose halves and merges are tasks, as in Cilk's cilksort and the Barcelona suite's sort.
#pragma once

#include "crew.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace tasks {

inline constexpr std::size_t merge_sort_leaf = 2048;

/// The merge of two sorted parts, cut at the middle of the longer one.
template <class Crew>
void merge_parts(const std::uint32_t* a, std::size_t a_size, const std::uint32_t* b, std::size_t b_size,
                 std::uint32_t* out) {
  if (a_size + b_size <= merge_sort_leaf) {
    std::merge(a, a + a_size, b, b + b_size, out);
    return;
  }
  if (a_size < b_size) return merge_parts<Crew>(b, b_size, a, a_size, out);
  const std::size_t a_low = a_size / 2;
  const auto b_low = static_cast<std::size_t>(std::lower_bound(b, b + b_size, a[a_low]) - b);
  Crew::both([=] { merge_parts<Crew>(a, a_low, b, b_low, out); },
             [=] { merge_parts<Crew>(a + a_low, a_size - a_low, b + b_low, b_size - b_low, out + a_low + b_low); });
}

/// Sorts `from`, to there or to `buffer`, which is as large.
template <class Crew>
void sort_parts(std::uint32_t* from, std::uint32_t* buffer, std::size_t size, bool to_buffer) {
  if (size <= merge_sort_leaf) {
    std::sort(from, from + size);
    if (to_buffer) std::copy(from, from + size, buffer);
    return;
  }
  const std::size_t low = size / 2;
  Crew::both([=] { sort_parts<Crew>(from, buffer, low, !to_buffer); },
             [=] { sort_parts<Crew>(from + low, buffer + low, size - low, !to_buffer); });
  const std::uint32_t* const sorted = to_buffer ? from : buffer;
  merge_parts<Crew>(sorted, low, sorted + low, size - low, to_buffer ? buffer : from);
}

/// `size`: numbers to sort. A unit: a number.
template <class Crew, class Time>
result merge_sort(std::int64_t size, const Time& time) {
  std::vector<std::uint32_t> numbers(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::uint32_t>(mixed(i));
  const auto sum = [&] { return std::accumulate(numbers.begin(), numbers.end(), std::uint64_t{0}); };
  const std::uint64_t before = sum();
  std::vector<std::uint32_t> buffer(numbers.size());
  const double seconds = time([&] { sort_parts<Crew>(numbers.data(), buffer.data(), numbers.size(), false); });
  return {seconds, size, std::is_sorted(numbers.begin(), numbers.end()) && sum() == before};
}

}  // namespace tasks
