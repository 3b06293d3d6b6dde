#include <ramie/sched/live_schedulers.hpp>

#include <sched.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace ramie::detail {

void fill_debug_layout(const void* schedulers) noexcept;  // debug_layout.cpp

namespace {
constinit std::array<std::atomic<scheduler*>, schedulers_listed_most> listed{};
constinit std::atomic<std::uint32_t> visitors{0};
}  // namespace

void list_scheduler(scheduler& s) noexcept {
  static const bool once = (fill_debug_layout(&listed), true);
  static_cast<void>(once);
  for (auto& place : listed) {
    scheduler* expected = nullptr;
    if (place.compare_exchange_strong(expected, &s, std::memory_order_seq_cst)) return;
  }
}

void unlist_scheduler(scheduler& s) noexcept {
  for (auto& place : listed) {
    if (place.load(std::memory_order_relaxed) != &s) continue;
    place.store(nullptr, std::memory_order_seq_cst);
    while (visitors.load(std::memory_order_seq_cst) != 0) ::sched_yield();
  }
}

scheduler_visit::scheduler_visit() noexcept { visitors.fetch_add(1, std::memory_order_seq_cst); }
scheduler_visit::~scheduler_visit() { visitors.fetch_sub(1, std::memory_order_release); }
scheduler* scheduler_visit::at(std::size_t place) const noexcept {
  return listed[place].load(std::memory_order_seq_cst);
}

}  // namespace ramie::detail
