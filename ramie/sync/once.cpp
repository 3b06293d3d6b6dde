#include <ramie/sync/identity.hpp>
#include <ramie/sync/once.hpp>

#include <optional>

namespace ramie {

bool once_flag::begin() {
  const void* me = detail::identity();
  for (;;) {
    const std::uint64_t value = queue_.lock();
    if (value == done) {
      queue_.unlock(done);
      return false;
    }
    if (value == not_done) {
      by_.store(me, std::memory_order_relaxed);  // under the lock
      queue_.unlock(under_way);
      return true;
    }
    if (by_.load(std::memory_order_relaxed) == me) {
      queue_.unlock(under_way);
      throw usage_error{"ramie: call_once: the function called call_once with its own flag, and would wait for itself"};
    }
    std::optional<bool> mine;
    queue_.unlock_and_wait(under_way, {"call_once", {}}, [&] { mine = begin(); });
    if (mine) return *mine;
  }
}

void once_flag::end(bool success) noexcept {
  detail::claimed_waits woken;
  static_cast<void>(queue_.lock());
  by_.store(nullptr, std::memory_order_relaxed);
  queue_.claim_all(woken);
  queue_.unlock(success ? done : not_done);
}

}  // namespace ramie
