#include <ramie/worker/worker.hpp>

#include <ramie/base/atomic.hpp>
#include <ramie/machine/fence.hpp>

#include <cstdint>
#include <memory>

__thread ramie::detail::worker_base* ramie_current_worker __attribute__((tls_model("initial-exec"))) = nullptr;

namespace ramie::detail {

namespace {
// Jobs; deeper nests are promoted. A guess: 128 KiB of addresses.
constexpr std::size_t fork_capacity = RAMIE_INTERLEAVE ? 3 : 16 * 1024;
}  // namespace

worker::worker(scheduler* s, const worker_facts& facts) : owner{s}, stacks{facts.stacks}, number{facts.number} {
  random = random_source{(std::uint64_t{number} + 1) * 0x9e3779b97f4a7c15u};
  fork_slots = std::make_unique_for_overwrite<fork_slot[]>(1 + fork_capacity);
  stealing.reserve(facts.workers_most, facts.near_first);
  fork_slots[0].store_relaxed(nullptr);  // older than the oldest
  favours = favour.get();
  blocks_here = &blocks;
  timers_here = &timers;
  alone = facts.alone;
  base = fork_slots.get() + 1;
  end = base + fork_capacity;
  bottom.store_relaxed(base);
  top.store_relaxed(base);
  limit.store_relaxed(nullptr);  // marked (idle_set.hpp): others may sleep already
  static atomic<std::uint64_t> workers_ever{0};
  session = (workers_ever.fetch_add(1, std::memory_order_relaxed) + 1)
            << 40;  // a trillion switches before the next worker's
}

}  // namespace ramie::detail
