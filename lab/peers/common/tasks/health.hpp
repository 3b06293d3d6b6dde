// A country's hospitals, step by step: a tree of villages, each of which sends the patients whom it cannot treat to the
// one above, after the Barcelona suite's health (the Columbian health care simulation of the Olden suite). In each step
// a task for each village. There a child locks the list of its parent; here the parent takes what its children have for
// it when they are done, so that the result is the same in every run.
#pragma once

#include "crew.hpp"

#include <deque>
#include <map>
#include <utility>
#include <vector>

namespace tasks {

inline constexpr std::size_t villages_each = 5;
inline constexpr int health_steps = 200;

struct village {
  std::vector<village> children;
  std::uint64_t random = 0;
  int level = 0;  // 0: the one that nobody is above
  int free_staff = 0;
  std::deque<int> waiting;    // for how many steps
  std::vector<int> assessed;  // steps left
  std::vector<int> treated;   // steps left
  std::size_t referred = 0;
  std::int64_t fell_ill = 0;
  std::int64_t cured = 0;
  std::int64_t waited = 0;

  bool happens(double chance) {
    random = mixed(random);
    return fraction(random) < chance;
  }
};

inline village made_village(int level, int levels, std::uint64_t seed) {
  village v;
  v.level = level;
  v.random = seed;
  v.free_staff = 1 << (levels - level);  // the higher, the larger
  if (level + 1 < levels)
    for (std::size_t i = 0; i < villages_each; ++i)
      v.children.push_back(made_village(level + 1, levels, mixed(seed + i + 1)));
  return v;
}

/// A step of those in the list; f() is called for each that has none left, and is in the list no more.
template <class F>
void count_down(std::vector<int>& list, F f) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (--list[i] == 0) f();
    else list[kept++] = list[i];
  }
  list.resize(kept);
}

template <class Crew>
void one_step(village& v) {
  Crew::all(v.children.size(), [&v](std::size_t i) { one_step<Crew>(v.children[i]); });
  for (village& child : v.children) v.waiting.insert(v.waiting.end(), std::exchange(child.referred, 0), 0);
  count_down(v.treated, [&v] {
    ++v.cured;
    ++v.free_staff;
  });
  count_down(v.assessed, [&v] {
    if (v.level == 0 || v.happens(0.8)) {
      v.treated.push_back(10);
    } else {
      ++v.referred;
      ++v.free_staff;
    }
  });
  for (; v.free_staff > 0 && !v.waiting.empty(); --v.free_staff) {
    v.waited += v.waiting.front();
    v.waiting.pop_front();
    v.assessed.push_back(3);
  }
  for (int& steps : v.waiting) ++steps;
  if (v.happens(0.2)) {
    ++v.fell_ill;
    v.waiting.push_back(0);
  }
}

struct health_report {
  std::int64_t villages, fell_ill, cured, waited, present;
  bool operator==(const health_report&) const = default;
  void add(const village& v) {
    ++villages;
    fell_ill += v.fell_ill;
    cured += v.cured;
    waited += v.waited;
    present += static_cast<std::int64_t>(v.waiting.size() + v.assessed.size() + v.treated.size() + v.referred);
    for (const village& child : v.children) add(child);
  }
};

/// `size`: levels of the tree. A unit: a step of a village.
template <class Crew, class Time>
result health(std::int64_t size, const Time& time) {
  static std::map<std::int64_t, health_report> known;
  const auto report = [size]<class C>(C, const auto& clock) {
    village country = made_village(0, static_cast<int>(size), 5);
    const double seconds = clock([&] {
      for (int i = 0; i < health_steps; ++i) one_step<C>(country);
    });
    health_report found{};
    found.add(country);
    return std::pair{seconds, found};
  };
  const auto no_clock = [](auto&& f) { return f(), 0.0; };
  if (!known.contains(size)) known[size] = report(plain{}, no_clock).second;
  const auto [seconds, found] = report(Crew{}, time);
  return {seconds, found.villages * health_steps,
          found == known[size] && found.fell_ill == found.cured + found.present};
}

}  // namespace tasks
