// The machine and the build that a figure was measured with.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace ramie::lab {

struct machine {
  std::string cpu;
  std::string architecture;
  int cores_online = 0;
  int cores_allowed = 0;  // by this process's affinity mask
  double cpu_quota = 0;   // CPUs that the cgroup may use; 0: no limit
  double memory_gib = 0;
  std::string kernel;
  std::string transparent_huge_pages;
  std::string compiler;
  std::string flags;
  std::string build_type;
  std::string allocator;    // the malloc of this process
  std::string environment;  // the variables that change how ramie or malloc work, "NAME=value", separated by blanks
  double load_average = 0;  // over the last minute, at the time of asking
};

/// Asks the system; unknown values stay empty or 0.
machine describe_machine();

/// The only value of describe_machine() that changes with time.
double load_average();

/// The name of the malloc that is in a list of loaded objects' paths: the first that is known, else "glibc".
std::string allocator_among(const std::vector<std::string>& loaded_objects);

/// The word in brackets: "always [madvise] never" is "madvise". Empty if there is none.
std::string_view bracketed(std::string_view text);

nlohmann::ordered_json json_of(const machine& m);

}  // namespace ramie::lab
