#include <ramie/stack/guard.hpp>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <ctime>

namespace ramie::detail {

namespace {

// Mappings left to the rest of the process: its libraries, heaps, threads. Picked out of thin air; a large server has
// about a thousand.
constexpr std::size_t mappings_left = 5000;

constinit std::atomic<std::size_t> mprotect_guards{0};

/// Counts one more guard unless there are `most`.
bool reserve_mprotect_guard(std::size_t most) noexcept {
  std::size_t guards = mprotect_guards.load(std::memory_order_relaxed);  // a counter; orders nothing
  do {
    if (guards >= most) return false;
  } while (!mprotect_guards.compare_exchange_weak(guards, guards + 1, std::memory_order_relaxed));
  return true;
}

std::size_t install_by_mprotect(const iovec* ranges, std::size_t count, refusal& why) noexcept {
  // Read again each time, because raising it is the remedy that the error names.
  const std::size_t most = mprotect_guards_max(calls().max_map_count());
  for (std::size_t i = 0; i < count; ++i) {
    if (!reserve_mprotect_guard(most)) {
      why = {refusal::call::guard_budget, ENOMEM, ranges[i].iov_len};
      return i;
    }
    if (calls().protect(ranges[i].iov_base, ranges[i].iov_len, PROT_NONE) != 0) {
      why = {refusal::call::guard_by_mprotect, errno, ranges[i].iov_len};
      mprotect_guards.fetch_sub(1, std::memory_order_relaxed);
      return i;
    }
  }
  return count;
}

}  // namespace

bool probe_guard_advice(const memory_calls& with) noexcept {
  void* page = with.map(page_size());
  if (page == nullptr) return false;
  bool works = with.advise(page, page_size(), advice_guard_install) == 0;
  // Emulators accept advice that they do not know. So let the kernel write to the page: it gets a fault, and no
  // signal.
  if (works) works = ::syscall(SYS_clock_gettime, CLOCK_MONOTONIC, page) != 0 && errno == EFAULT;
  with.unmap(page, page_size());
  return works;
}

bool kernel_has_guard_advice() noexcept {
  // With the real calls: a test that makes calls fail must not decide this for the process.
  static const bool has = probe_guard_advice(kernel_calls);
  return has;
}

std::size_t guard_size(std::size_t slot_size, guard_kind kind) noexcept {
  if (kind == guard_kind::none) return 0;
  constexpr std::size_t generous = 16 * 1024;
  return std::max(page_size(), slot_size >= 4 * generous ? generous : 0);
}

std::size_t mprotect_guards_max(std::size_t mappings_max) noexcept {
  return (mappings_max - std::min(mappings_left, mappings_max / 2)) / 2;
}

std::size_t guards_by_mprotect() noexcept { return mprotect_guards.load(std::memory_order_relaxed); }

std::size_t install_guards(const iovec* ranges, std::size_t count, guard_kind kind, refusal& why) noexcept {
  if (kind == guard_kind::none) return count;
  if (kind == guard_kind::mprotect) return install_by_mprotect(ranges, count, why);
  const std::size_t done = advise_all(ranges, count, advice_guard_install);
  if (done < count) why = {refusal::call::guard_by_madvise, errno, ranges[done].iov_len};
  return done;
}

}  // namespace ramie::detail
