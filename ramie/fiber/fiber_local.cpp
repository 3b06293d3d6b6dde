#include <ramie/base/atomic.hpp>
#include <ramie/fiber/fiber_local.hpp>
#include <ramie/fiber/fiber_task.hpp>

namespace ramie::detail {

namespace {

/// Of a plain thread. Not for fibers: they may find themselves on another thread after a suspension.
RAMIE_NOINLINE local_table& table_of_thread() {
  static thread_local local_table mine;
  return mine;
}

}  // namespace

std::uint64_t new_local_key() noexcept {
  static atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

local_node* find_local(std::uint64_t key) noexcept {
  const task* t = this_task();
  if (t == nullptr) return table_of_thread().find(key);
  const task_extras* extras = t->extras.load(std::memory_order_acquire);
  return extras == nullptr ? nullptr : extras->locals.find(key);
}

local_node& keep_local(std::unique_ptr<local_node> made) {
  task* t = this_task();
  local_table& table = t == nullptr ? table_of_thread() : extras_of(*t).locals;
  return table.add(made.release());
}

}  // namespace ramie::detail
