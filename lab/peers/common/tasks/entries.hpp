// Experiment 9 as entries of a peer's program.
#pragma once

#include "../peer.hpp"
#include "fib.hpp"
#include "suite.hpp"

#include <functional>
#include <string>
#include <vector>

namespace peer {

/// All programs by `Crew`, and fib, of which ramie-lab has another one. around(options, measure, once) calls
/// measure(once) with the crew's threads at hand, where each call of time(f) has to be.
template <class Crew, class Around>
std::vector<entry> task_entries(const std::string& style, Around around) {
  std::vector<entry> made;
  const auto add = [&](const char* name, const char* unit, auto once) {
    made.push_back({name, style, unit, [=](const options& o, const std::function<void(const run_once&)>& m) {
                      around(o, m, [=] {
                        const tasks::result r = once(o, [](auto&& f) { return seconds_of(f); });
                        return outcome{r.seconds, r.units, r.ok};
                      });
                    }});
  };
  for (const tasks::program& p : tasks::programs)
    add(p.name, p.unit,
        [=](const options& o, auto time) { return tasks::run<Crew>(p.name, o.number("size", p.standard), time); });
  add("fib", "call", [](const options& o, auto time) { return tasks::fib<Crew>(o.number("n", 40), time); });
  return made;
}

}  // namespace peer
