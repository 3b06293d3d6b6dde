// The shortest ways from one vertex of a graph to all others, level by level, as in PBBS: a task for each few vertices
// of a level. The graph is an R-MAT one (D. Chakrabarti, Y. Zhan, C. Faloutsos, SDM 2004), with Graph500's parameters:
// a few vertices have most of the edges.
#pragma once

#include "crew.hpp"

#include <algorithm>
#include <atomic>
#include <type_traits>
#include <utility>
#include <vector>

namespace tasks {

using vertex = std::int32_t;
inline constexpr vertex nowhere = -1;

struct graph {
  std::vector<std::size_t> first;  // of each vertex and one more, where its edges begin
  std::vector<vertex> to;          // each edge in both directions; those of a vertex in order
  [[nodiscard]] std::size_t size() const { return first.size() - 1; }
  [[nodiscard]] const vertex* begin(vertex v) const { return to.data() + first[static_cast<std::size_t>(v)]; }
  [[nodiscard]] const vertex* end(vertex v) const { return to.data() + first[static_cast<std::size_t>(v) + 1]; }
};

/// 2^scale vertices, eight times as many edges.
inline graph rmat_graph(int scale) {
  const std::size_t n = std::size_t{1} << scale;
  std::vector<std::pair<vertex, vertex>> edges(8 * n);
  for (std::size_t e = 0; e < edges.size(); ++e) {
    auto& [a, b] = edges[e];
    for (int bit = 0; bit < scale; ++bit) {
      const double at = fraction(mixed(e * 64 + static_cast<std::size_t>(bit)));
      a = 2 * a + (at < 0.57 + 0.19 ? 0 : 1);
      b = 2 * b + (at < 0.57 || (at >= 0.57 + 0.19 && at < 0.57 + 2 * 0.19) ? 0 : 1);
    }
  }
  graph g;
  g.first.resize(n + 1);
  for (const auto& [a, b] : edges) {
    ++g.first[static_cast<std::size_t>(a) + 1];
    ++g.first[static_cast<std::size_t>(b) + 1];
  }
  for (std::size_t v = 0; v < n; ++v) g.first[v + 1] += g.first[v];
  g.to.resize(g.first[n]);
  std::vector<std::size_t> next(g.first.begin(), g.first.end() - 1);
  for (const auto& [a, b] : edges) {
    g.to[next[static_cast<std::size_t>(a)]++] = b;
    g.to[next[static_cast<std::size_t>(b)]++] = a;
  }
  for (std::size_t v = 0; v < n; ++v)
    std::sort(g.to.begin() + static_cast<std::ptrdiff_t>(g.first[v]),
              g.to.begin() + static_cast<std::ptrdiff_t>(g.first[v + 1]));
  return g;
}

/// Writes to `parents`, which is `nowhere` for all, from which vertex each one is reached; the root from itself.
template <class Crew>
void search_breadth_first(const graph& g, vertex root, std::vector<vertex>& parents) {
  parents[static_cast<std::size_t>(root)] = root;
  std::vector<vertex> level{root};
  if constexpr (std::is_same_v<Crew, plain>) {
    // As one would without tasks: `level` holds all levels, one after another.
    for (std::size_t i = 0; i < level.size(); ++i)
      for (const vertex* to = g.begin(level[i]); to != g.end(level[i]); ++to) {
        vertex& parent = parents[static_cast<std::size_t>(*to)];
        if (parent != nowhere) continue;
        parent = level[i];
        level.push_back(*to);
      }
  } else {
    constexpr std::size_t few = 64;
    while (!level.empty()) {
      std::vector<std::vector<vertex>> found((level.size() + few - 1) / few);
      Crew::all(found.size(), [&](std::size_t piece) {
        const std::size_t stop = std::min(level.size(), (piece + 1) * few);
        for (std::size_t i = piece * few; i < stop; ++i)
          for (const vertex* to = g.begin(level[i]); to != g.end(level[i]); ++to) {
            std::atomic_ref<vertex> parent{parents[static_cast<std::size_t>(*to)]};
            vertex none = nowhere;
            if (parent.load(std::memory_order_relaxed) == nowhere &&
                parent.compare_exchange_strong(none, level[i], std::memory_order_relaxed))
              found[piece].push_back(*to);
          }
      });
      level.clear();
      for (const std::vector<vertex>& part : found) level.insert(level.end(), part.begin(), part.end());
    }
  }
}

/// `size`: the logarithm of the number of vertices. A unit: an edge that was looked at, from one of its ends.
template <class Crew, class Time>
result bfs(std::int64_t size, const Time& time) {
  static graph g;
  static std::vector<vertex> expected;
  static vertex root;
  if (expected.size() != std::size_t{1} << size) {
    g = rmat_graph(static_cast<int>(size));
    root = 0;
    for (vertex v = 0; v < static_cast<vertex>(g.size()); ++v)
      if (g.end(v) - g.begin(v) > g.end(root) - g.begin(root)) root = v;
    expected.assign(g.size(), nowhere);
    search_breadth_first<plain>(g, root, expected);
  }
  std::vector<vertex> parents(g.size(), nowhere);
  const double seconds = time([&] { search_breadth_first<Crew>(g, root, parents); });
  // Parents may differ, for several may be as near. Depths may not.
  const auto depth = [](const std::vector<vertex>& of, vertex v) {
    std::size_t steps = 0;
    for (; v != root && v != nowhere && steps < of.size(); ++steps) v = of[static_cast<std::size_t>(v)];
    return steps;
  };
  std::int64_t edges = 0;
  bool ok = true;
  for (vertex v = 0; v < static_cast<vertex>(g.size()); ++v) {
    const vertex parent = parents[static_cast<std::size_t>(v)];
    ok = ok && (parent == nowhere) == (expected[static_cast<std::size_t>(v)] == nowhere);
    if (!ok || parent == nowhere) continue;
    edges += g.end(v) - g.begin(v);
    ok = depth(parents, v) == depth(expected, v) && (v == root || std::binary_search(g.begin(v), g.end(v), parent));
  }
  return {seconds, edges, ok};
}

}  // namespace tasks
