#include <ramie/machine/fence.hpp>

#include <ramie/base/assert.hpp>
#include <ramie/machine/test_options.hpp>

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <string_view>

namespace ramie::detail {

bool asymmetric_fences = false;

void init_fences() noexcept {
#if RAMIE_INTERLEAVE
  return;  // the run's seed decides
#endif
  static std::once_flag once;
  std::call_once(once, [] {
    const char* wish = std::getenv(membarrier_variable);
    if (wish != nullptr && std::string_view{wish} == "0") return;
    asymmetric_fences = ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  });
}

#if !RAMIE_INTERLEAVE
namespace {

/// The call has failed, which its manual does not foresee for a process that has registered; but the kernel may have no
/// memory for a set of CPUs, and a sandbox may forbid the call at any time. The light fences of other threads are
/// compiled and may be under way, so without a fence in all of them nothing is right any more.
RAMIE_COLD void fence_otherwise(int error) noexcept {
  // Needs neither memory nor a registration, but milliseconds: it waits until all CPUs have switched.
  if (::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) == 0) return;
  if (error == ENOMEM) fatal("membarrier(2): the kernel is out of memory", __FILE__, __LINE__);
  fatal(error == EPERM || error == ENOSYS || error == EACCES
            ? "membarrier(2) was allowed when the first runtime began and is forbidden now: a seccomp filter that is "
              "installed later must allow it, or set RAMIE_MEMBARRIER=0"
            : "membarrier(2) worked when the first runtime began and fails now; set RAMIE_MEMBARRIER=0",
        __FILE__, __LINE__);
}

}  // namespace

void heavy_fence() noexcept {
  if (!asymmetric_fences) return full_fence();
  const int before = errno;
  if (::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0) [[likely]]
    return;
  fence_otherwise(errno);
  errno = before;
}
#endif

}  // namespace ramie::detail
