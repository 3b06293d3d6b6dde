#include <ramie/base/atomic.hpp>
#include <ramie/fiber/fiber_local.hpp>
#include <ramie/fiber/fiber_task.hpp>
#include <ramie/machine/thread_end.hpp>

#include <memory>
#include <new>
#include <utility>

namespace ramie::detail {

namespace {

/// The table of a plain thread. Not for fibers: they may be on another thread after a suspension. Null if it has no
/// values.
RAMIE_NOINLINE local_table*& table_of_thread() {
  static thread_local constinit local_table* mine = nullptr;
  asm volatile("");
  return mine;
}

/// Destructors of thread_local variables may call this after the table is gone: then a new one is made.
local_table& made_table_of_thread() {
  local_table*& mine = table_of_thread();
  if (mine == nullptr) {
    auto made = std::make_unique<local_table>();
    // Values stay reachable while they are destroyed. The rest was made again and again: it is lost, with the table,
    // which must not be recreated forever.
    const auto give = [](void*) {
      local_table*& ends = table_of_thread();
      ends->destroy_all();
      if (ends->empty()) delete std::exchange(ends, nullptr);
    };
    if (!at_thread_end(give, nullptr)) throw std::bad_alloc{};
    mine = made.release();
  }
  return *mine;
}

}  // namespace

std::uint64_t new_local_key() noexcept {
  static atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

local_node* find_local(std::uint64_t key) noexcept {
  const task* t = this_task();
  if (t == nullptr) {
    const local_table* const table = table_of_thread();
    return table == nullptr ? nullptr : table->find(key);
  }
  const task_extras* extras = t->extras.load(std::memory_order_acquire);
  return extras == nullptr ? nullptr : extras->locals.find(key);
}

local_node& keep_local(std::unique_ptr<local_node> made) {
  task* t = this_task();
  local_table& table = t == nullptr ? made_table_of_thread() : extras_of(*t).locals;
  return table.add(made.release());
}

}  // namespace ramie::detail
