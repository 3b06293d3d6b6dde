// All that the harness, as opposed to the workloads, wants from ramie: one place to look at when the library grows.
#pragma once

#include <ramie/ramie.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace ramie::lab {

/// More threads than any machine this is run on has use for; the runtime may set a lower limit of its own.
inline constexpr int workers_max = 1024;

/// Every placement that ramie has a name for, separated by ", ".
std::string placement_names();

/// Nothing if ramie has no such placement.
std::optional<ramie::placement> find_placement(std::string_view name);

std::string_view name_of(ramie::placement p);

/// What --stacks may say, separated by ", ": pooled (without guards), guarded (pooled, ramie's default), fresh.
std::string stacks_names();
/// Nothing if it says something else.
std::optional<ramie::stack_guard> find_stacks(std::string_view name);

/// How many workers a runtime picks by itself. Starts one to see, for the answer depends on machine and environment.
int standard_worker_count();

/// What `rt` has counted since it started, by name. Empty if it does not tell.
std::map<std::string, std::int64_t> read_counters(ramie::runtime& rt);

}  // namespace ramie::lab
