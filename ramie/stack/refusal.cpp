#include <ramie/stack/refusal.hpp>

#include <ramie/base/error.hpp>
#include <ramie/stack/guard.hpp>
#include <ramie/stack/system.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

namespace ramie::detail {

namespace {

std::string contents(const char* path) {
  std::string text;
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return text;
  char block[4096];
  for (ssize_t size; (size = ::read(file, block, sizeof block)) > 0;)
    text.append(block, static_cast<std::size_t>(size));
  ::close(file);
  return text;
}

/// The figure after "<name>:" in a file such as /proc/self/status, whose unit is kB; in bytes. 0 if there is none.
std::size_t figure(std::string_view text, std::string_view name) {
  std::size_t at = text.find(std::string{name} + ':');
  if (at == std::string_view::npos) return 0;
  at = text.find_first_of("0123456789", at);
  if (at == std::string_view::npos) return 0;
  std::size_t kib = 0;
  std::from_chars(text.data() + at, text.data() + text.size(), kib);
  return kib * 1024;
}

std::string size_text(std::size_t bytes) {
  constexpr std::size_t kib = 1024, mib = 1024 * kib;
  if (bytes >= mib && bytes % mib == 0) return std::to_string(bytes / mib) + " MiB";
  if (bytes >= kib) return std::to_string(bytes / kib) + " KiB";
  return std::to_string(bytes) + " bytes";
}

/// "RLIMIT_AS is 512 MiB, ..." if `size` more than `used` exceeds that limit.
std::string reached(const char* name, __rlimit_resource resource, std::size_t used, std::size_t size) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || used + size <= limit.rlim_cur) return {};
  return std::string{name} + " is " + size_text(limit.rlim_cur) + ", of which " + size_text(used) +
         " are used: raise it (ulimit, setrlimit)";
}

/// The limit that stops a process that asks for `size` bytes more. In the order in which the kernel checks them.
std::string limit_in_the_way(std::size_t size) {
  const std::string maps = contents("/proc/self/maps");
  const auto mappings = static_cast<std::size_t>(std::count(maps.begin(), maps.end(), '\n'));
  const std::size_t mappings_max = calls().max_map_count();
  if (mappings + 2 >= mappings_max)  // a mapping split in two needs one more, and the kernel wants one to spare
    return "vm.max_map_count is " + std::to_string(mappings_max) + ", and " + std::to_string(mappings) +
           " mappings exist: raise it (sysctl)";

  const std::string status = contents("/proc/self/status");
  if (std::string s = reached("RLIMIT_AS", RLIMIT_AS, figure(status, "VmSize"), size); !s.empty()) return s;
  if (std::string s = reached("RLIMIT_DATA", RLIMIT_DATA, figure(status, "VmData"), size); !s.empty()) return s;

  constexpr std::size_t never_overcommit = 2;
  if (number_in_file("/proc/sys/vm/overcommit_memory", 0) == never_overcommit) {
    const std::string memory = contents("/proc/meminfo");
    return "vm.overcommit_memory is 2, so that address space counts as memory: " +
           size_text(figure(memory, "Committed_AS")) + " of " + size_text(figure(memory, "CommitLimit")) +
           " are committed: set it to 0 or 1, or raise vm.overcommit_ratio (sysctl)";
  }
  return "the limit is none of vm.max_map_count, RLIMIT_AS, RLIMIT_DATA and vm.overcommit_memory";
}

}  // namespace

void throw_refusal(const refusal& r) {
  if (r.refused == refusal::call::guard_budget) {
    throw resource_error{
        "ramie: no more stacks guarded by mprotect: there are " + std::to_string(guards_by_mprotect()) +
            ", and a guard takes two of the vm.max_map_count = " + std::to_string(calls().max_map_count()) +
            " mappings. Raise that sysctl, use Linux 6.13 or newer (MADV_GUARD_INSTALL), or set stack_guard::none",
        r.code};
  }
  const char* what = "";
  switch (r.refused) {
    case refusal::call::map_stacks: what = "mmap of stacks"; break;
    case refusal::call::map_descriptors: what = "mmap of stack descriptors"; break;
    case refusal::call::map_signal_stack: what = "mmap of a signal stack"; break;
    case refusal::call::guard_by_madvise: what = "madvise(MADV_GUARD_INSTALL) of a stack's guard"; break;
    case refusal::call::guard_by_mprotect: what = "mprotect of a stack's guard"; break;
    case refusal::call::none:
    case refusal::call::guard_budget: break;
  }
  throw resource_error{std::string{"ramie: "} + what + " failed (" + size_text(r.size) +
                           "): " + std::generic_category().message(r.code) + "; " + limit_in_the_way(r.size),
                       r.code};
}

}  // namespace ramie::detail
