// Experiment 10 as entries of a peer's program.
#pragma once

#include "algorithms.hpp"
#include "peer.hpp"

#include <functional>
#include <string>
#include <vector>

namespace peer {

/// The algorithms of this name by `How`. around(options, measure, once) calls measure(once) with How's threads at hand;
/// time(f) is how long f took there.
template <class How, class Around>
std::vector<entry> algorithm_entries(const std::string& style, const std::vector<std::string>& names, Around around) {
  std::vector<entry> made;
  for (const std::string& name : names) {
    made.push_back({name, style, "element", [=](const options& o, const std::function<void(const run_once&)>& m) {
                      const algorithms::parameters p{static_cast<std::size_t>(o.number("size", 10'000'000)),
                                                     static_cast<int>(o.number("work", 0))};
                      around(o, m, [=] {
                        const auto time = [](auto&& f) { return seconds_of(f); };
                        const algorithms::result r = algorithms::run(name, p, How{}, time);
                        return outcome{r.seconds, r.elements, r.ok};
                      });
                    }});
  }
  return made;
}

}  // namespace peer
