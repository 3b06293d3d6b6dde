#include <ramie/sched/fence.hpp>

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <string_view>

namespace ramie::detail {

bool asymmetric_fences = false;

void init_fences() noexcept {
  static std::once_flag once;
  std::call_once(once, [] {
    const char* wish = std::getenv("RAMIE_MEMBARRIER");
    if (wish != nullptr && std::string_view{wish} == "0") return;
    asymmetric_fences = ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  });
}

void heavy_fence() noexcept {
#if RAMIE_INTERLEAVE
  return interleave::heavy_fence();
#endif
  if (asymmetric_fences) {
    // Fails only for a process that has not registered.
    static_cast<void>(::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0));
  } else {
    full_fence();
  }
}

}  // namespace ramie::detail
