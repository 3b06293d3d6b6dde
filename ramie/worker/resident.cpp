#include <ramie/worker/resident.hpp>

#include <algorithm>
#include <array>
#include <mutex>

namespace ramie::detail {

void resident_list::shut_down(std::size_t most) noexcept {
  // A heavy fence for each lock that has an owner took minutes for a million actors, and the ending thread waited
  // meanwhile.
  std::array<adaptive_lock*, adaptive_lock::deprived_most> locks;
  while (most != 0) {
    std::lock_guard guard{lock_};
    most = std::min(most, size_);  // nobody twice
    std::size_t n = 0;
    for (resident* r = newest_; r != nullptr && n != std::min(most, locks.size()); r = r->older) locks[n++] = &r->lock;
    if (n == 0) return;
    adaptive_lock::deprive_all(locks.data(), n);
    most -= n;
    for (; n != 0; --n) {
      resident* const r = newest_;
      static_cast<const resident_type*>(r->type)->shut_down(*r);
      if (r == oldest_) return;
      take_out(*r);
      r->older = nullptr;
      r->newer = oldest_;
      oldest_->older = r;
      oldest_ = r;
    }
  }
}

}  // namespace ramie::detail
