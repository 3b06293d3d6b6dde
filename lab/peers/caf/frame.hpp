// What CAF's programs have in common.
#pragma once

#include <common/peer.hpp>

#include <caf/all.hpp>

#include <cstddef>
#include <string>
#include <vector>

using measure = std::function<void(const peer::run_once&)>;
using done_atom = caf::atom_constant<caf::atom("done")>;

template <class Once>
void with_system(const peer::options& o, const measure& m, Once once) {
  caf::actor_system_config config;
  config.set("scheduler.policy", caf::atom_from_string(o.style));
  config.set("scheduler.max-threads", static_cast<std::size_t>(o.workers));
  caf::actor_system system{config};
  m([&] {
    const peer::outcome result = once(system);
    system.await_all_actors_done();
    return result;
  });
}

/// `once(system, options)` as an entry for each of its two schedulers.
template <class Once>
void add_entries(std::vector<peer::entry>& to, const char* workload, const char* unit, Once once) {
  for (const char* policy : {"stealing", "sharing"}) {
    to.push_back({workload, policy, unit, [once](const peer::options& o, const measure& m) {
                    with_system(o, m, [&](caf::actor_system& system) { return once(system, o); });
                  }});
  }
}

std::vector<peer::entry> savina_entries();
std::vector<peer::entry> affinity_entries();
std::vector<peer::entry> across_entries();
/// The other process of those.
int serve_across(const std::string& policy, int workers);
