// How many workers a runtime gets by default, and where they run if they are bound.
#pragma once

#include <string>
#include <vector>

namespace ramie::detail {

/// CPUs that this process may use: its affinity mask, further bounded by the quota of its control group (v2 cpu.max or
/// v1 cpu.cfs_quota_us, of the group and all above it), rounded up; at least 1. `root` is put before all paths: for
/// tests.
int usable_cpus(const std::string& root = "");

/// The CPUs that the calling thread's affinity mask allows, in order; empty if the kernel does not say.
std::vector<int> allowed_cpus();

/// Binds the calling thread to the n-th CPU, modulo their number, that it may use now. False if the kernel refuses.
bool pin_to_cpu(unsigned n) noexcept;

/// The control group's quota in CPUs, or 0 if there is none.
double cgroup_cpu_quota(const std::string& root = "");

}  // namespace ramie::detail
