#include <lab/harness/machine.hpp>

#include <fmt/core.h>
#include <link.h>
#include <nlohmann/json.hpp>
#include <sched.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

// How the lab was compiled; CMake defines it.
#ifndef RAMIE_LAB_FLAGS
#define RAMIE_LAB_FLAGS ""
#endif
#ifndef RAMIE_LAB_BUILD_TYPE
#define RAMIE_LAB_BUILD_TYPE ""
#endif

namespace ramie::lab {
namespace {

std::string first_line(const char* path) {
  std::ifstream file{path};
  std::string line;
  std::getline(file, line);
  return line;
}

/// The name, and on x86 family, model and clock as well: "AMD EPYC, family 25, model 17, 2.6 GHz", since several
/// processors share a name. Of the first processor in /proc/cpuinfo; Arm's kernel gives numbers only.
std::string cpu_model() {
  std::ifstream file{"/proc/cpuinfo"};
  std::map<std::string, std::string> found;
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (line.empty() && !found.empty()) break;
    if (colon == std::string::npos) continue;
    const std::size_t name_end = line.find_last_not_of(" \t", colon - 1) + 1;
    found[line.substr(0, name_end)] = colon + 2 < line.size() ? line.substr(colon + 2) : "";
  }
  if (found.contains("CPU part"))
    return fmt::format("implementer {} part {}", found["CPU implementer"], found["CPU part"]);
  std::string text = found["model name"];
  if (found.contains("cpu family")) text += fmt::format(", family {}, model {}", found["cpu family"], found["model"]);
  if (const double mhz = std::strtod(found["cpu MHz"].c_str(), nullptr); mhz > 0)
    text += fmt::format(", {:.1f} GHz", mhz / 1000);
  return text;
}

int cores_allowed() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 0;
  return CPU_COUNT(&allowed);
}

/// From cgroup v2's cpu.max, "quota period" or "max period", of the root that this process sees.
double cpu_quota() {
  std::istringstream words{first_line("/sys/fs/cgroup/cpu.max")};
  double quota = 0;
  double period = 0;
  if (!(words >> quota >> period) || period <= 0) return 0;
  return quota / period;
}

std::string kernel() {
  utsname names{};
  if (::uname(&names) != 0) return {};
  return std::string{names.sysname} + ' ' + names.release;
}

std::string architecture() {
  utsname names{};
  return ::uname(&names) == 0 ? names.machine : "";
}

double memory_gib() {
  struct sysinfo info{};
  if (::sysinfo(&info) != 0) return 0;
  constexpr double gib = 1024.0 * 1024 * 1024;
  return std::round(static_cast<double>(info.totalram) * info.mem_unit / gib * 100) / 100;
}

std::string compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#else
  return "gcc " __VERSION__;
#endif
}

std::vector<std::string> loaded_objects() {
  std::vector<std::string> paths;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        static_cast<std::vector<std::string>*>(out)->emplace_back(info->dlpi_name);
        return 0;
      },
      &paths);
  return paths;
}

std::string telling_environment() {
  constexpr std::array prefixes{"RAMIE_", "LD_PRELOAD=", "GLIBC_TUNABLES=", "MALLOC_"};
  std::string found;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text{*variable};
    if (std::none_of(prefixes.begin(), prefixes.end(), [&](const char* p) { return text.starts_with(p); })) continue;
    if (!found.empty()) found += ' ';
    found += text;
  }
  return found;
}

}  // namespace

double load_average() {
  double average = 0;
  return ::getloadavg(&average, 1) == 1 ? std::round(average * 100) / 100 : 0;
}

std::string allocator_among(const std::vector<std::string>& loaded) {
  constexpr std::array known{"tcmalloc", "mimalloc", "jemalloc", "snmalloc", "hoard"};
  for (const std::string& path : loaded) {
    const std::string file = path.substr(path.rfind('/') + 1);
    for (const char* name : known) {
      if (file.find(name) != std::string::npos) return name;
    }
  }
  return "glibc";
}

std::string_view bracketed(std::string_view text) {
  const std::size_t open = text.find('[');
  const std::size_t close = text.find(']', open == std::string_view::npos ? 0 : open);
  if (open == std::string_view::npos || close == std::string_view::npos) return {};
  return text.substr(open + 1, close - open - 1);
}

machine describe_machine() {
  machine m;
  m.cpu = cpu_model();
  m.architecture = architecture();
  m.cores_online = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  m.cores_allowed = cores_allowed();
  m.cpu_quota = cpu_quota();
  m.memory_gib = memory_gib();
  m.kernel = kernel();
  m.transparent_huge_pages = bracketed(first_line("/sys/kernel/mm/transparent_hugepage/enabled"));
  m.compiler = compiler();
  m.flags = RAMIE_LAB_FLAGS;
  m.build_type = RAMIE_LAB_BUILD_TYPE;
  m.allocator = allocator_among(loaded_objects());
  m.environment = telling_environment();
  m.load_average = load_average();
  return m;
}

nlohmann::ordered_json json_of(const machine& m) {
  nlohmann::ordered_json j;
  j["cpu"] = m.cpu;
  j["architecture"] = m.architecture;
  j["cores_online"] = m.cores_online;
  j["cores_allowed"] = m.cores_allowed;
  j["cpu_quota"] = m.cpu_quota;
  j["memory_gib"] = m.memory_gib;
  j["kernel"] = m.kernel;
  j["transparent_huge_pages"] = m.transparent_huge_pages;
  j["compiler"] = m.compiler;
  j["flags"] = m.flags;
  j["build_type"] = m.build_type;
  j["allocator"] = m.allocator;
  j["environment"] = m.environment;
  j["load_average"] = m.load_average;
  return j;
}

}  // namespace ramie::lab
