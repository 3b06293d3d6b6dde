#include <ramie/machine/cpu_count.hpp>

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <sstream>
#include <vector>

namespace ramie::detail {

namespace {

/// The smaller quota; 0 stands for none.
double tighter(double a, double b) { return a == 0 ? b : b == 0 ? a : std::min(a, b); }

double quota_v2(const std::string& directory) {
  std::ifstream file{directory + "/cpu.max"};
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return 0;
  char* end = nullptr;
  const double value = std::strtod(quota.c_str(), &end);
  return *end == '\0' && value > 0 ? value / period : 0;
}

double quota_v1(const std::string& directory) {
  std::ifstream quota_file{directory + "/cpu.cfs_quota_us"};
  std::ifstream period_file{directory + "/cpu.cfs_period_us"};
  double quota = 0;
  double period = 0;
  if (!(quota_file >> quota) || !(period_file >> period) || quota <= 0 || period <= 0) return 0;
  return quota / period;
}

/// The tightest quota of the group at `path` below `mount`, and of all groups above it.
double tightest(const std::string& mount, std::string path, double (*quota_of)(const std::string&)) {
  double quota = 0;
  for (;;) {
    quota = tighter(quota, quota_of(mount + path));
    const std::size_t slash = path.rfind('/');
    if (path.empty() || slash == std::string::npos) return quota;
    path.erase(slash);
  }
}

}  // namespace

double cgroup_cpu_quota(const std::string& root) {
  // Lines of /proc/self/cgroup: "0::/path" for v2, "N:controller,controller:/path" for v1.
  std::ifstream groups{root + "/proc/self/cgroup"};
  std::string line;
  double quota = 0;
  while (std::getline(groups, line)) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    if (path == "/") path.clear();
    if (controllers.empty()) {
      quota = tighter(quota, tightest(root + "/sys/fs/cgroup", path, quota_v2));
      quota = tighter(quota, tightest(root + "/sys/fs/cgroup/unified", path, quota_v2));
      continue;
    }
    std::istringstream names{controllers};
    for (std::string name; std::getline(names, name, ',');) {
      if (name != "cpu") continue;
      quota = tighter(quota, tightest(root + "/sys/fs/cgroup/cpu", path, quota_v1));
      quota = tighter(quota, tightest(root + "/sys/fs/cgroup/" + controllers, path, quota_v1));
    }
  }
  return quota;
}

std::vector<int> allowed_cpus() {
  // Machines may have more CPUs than a cpu_set_t holds: grow the mask until the kernel accepts it.
  std::vector<int> cpus;
  for (int size = 1024; size <= 1 << 20 && cpus.empty(); size *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> mask{CPU_ALLOC(static_cast<std::size_t>(size)),
                                                                [](cpu_set_t* m) { CPU_FREE(m); }};
    if (mask == nullptr) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(size));
    CPU_ZERO_S(bytes, mask.get());
    if (::sched_getaffinity(0, bytes, mask.get()) != 0) continue;
    for (int cpu = 0; cpu < size; ++cpu)
      if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, mask.get())) cpus.push_back(cpu);
  }
  return cpus;
}

int usable_cpus(const std::string& root) {
  int cpus = static_cast<int>(allowed_cpus().size());
  if (cpus == 0) cpus = static_cast<int>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  const double quota = cgroup_cpu_quota(root);
  if (quota > 0 && std::ceil(quota) < cpus)
    cpus = static_cast<int>(std::ceil(quota));  // compared as doubles: a quota may exceed any int
  return std::max(1, cpus);
}

bool pin_to_cpu(unsigned n) noexcept {
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return false;
  const int count = CPU_COUNT(&allowed);
  if (count == 0) return false;
  for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || seen++ != static_cast<int>(n % static_cast<unsigned>(count))) continue;
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(cpu, &only);
    return ::sched_setaffinity(0, sizeof only, &only) == 0;
  }
  return false;
}

}  // namespace ramie::detail
