// All that the harness, as opposed to the workloads, uses of ramie: the one place to change when the library grows.
#pragma once

#include <ramie/ramie.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace ramie::lab {

/// More threads than any machine needs; the runtime may have a lower limit.
inline constexpr int workers_max = 1024;

/// The names of ramie's placements, and the lab's own (policies.hpp), separated by ", ".
std::string placement_names();

/// Sets the placement of that name in `options`; set `options.workers` first. False if there is none of that name.
bool set_placement(ramie::runtime_options& options, std::string_view name);

std::string_view name_of(ramie::placement p);

/// The values of --stacks, separated by ", ": pooled (without guards), guarded (pooled, ramie's default).
std::string stacks_names();
/// Nothing for any other name.
std::optional<ramie::stack_guard> find_stacks(std::string_view name);

/// The number of workers that a runtime picks. Starts one to find out: it depends on machine and environment.
int standard_worker_count();

/// The counters of `rt` since it started, by name. Empty if it has none.
std::map<std::string, std::int64_t> read_counters(ramie::runtime& rt);

}  // namespace ramie::lab
