#include <ramie/task/local_table.hpp>

namespace ramie::detail {

local_node& local_table::add(local_node* made) noexcept {
  local_node* seen = first_.load(std::memory_order_acquire);
  for (;;) {
    for (local_node* n = seen; n != nullptr; n = n->next)
      if (n->key == made->key) {
        delete made;
        return *n;
      }
    made->next = seen;
    if (first_.compare_exchange_weak(seen, made, std::memory_order_acq_rel, std::memory_order_acquire)) return *made;
  }
}

void local_table::destroy_all() noexcept {
  std::uint64_t known = 0;
  for (const local_node* n = first_.load(std::memory_order_relaxed); n != nullptr; n = n->next) ++known;
  for (std::uint64_t left = known + made_at_end_most; left > 0; --left) {
    local_node* n = first_.load(std::memory_order_relaxed);
    if (n == nullptr) return;
    first_.store(n->next, std::memory_order_relaxed);
    delete n;
  }
}

}  // namespace ramie::detail
