#include <ramie/worker/event_source.hpp>

#include <ramie/machine/cycles.hpp>
#include <ramie/machine/fence.hpp>
#include <ramie/worker/worker.hpp>

namespace ramie::detail {

event_source& event_desk::install(event_source& fresh) noexcept {
  event_source* none = nullptr;
  if (source_.compare_exchange_strong(none, &fresh, std::memory_order_acq_rel)) return fresh;
  fresh.end();
  return *none;
}

bool event_desk::take_role() noexcept {
  if (RAMIE_PLANT(source_role_shared)) return true;
  return !role_.load(std::memory_order_relaxed) && !role_.exchange(true, std::memory_order_acquire);
}

bool event_desk::poll_now() noexcept {
  source()->flush();  // also without the role: its holder may sleep
  return take_role() && poll_with_role();
}

/// Gives it back. True if something was made ready.
bool event_desk::poll_with_role() noexcept {
  polled_at_.store(cycles(), std::memory_order_relaxed);
  const bool found = source()->look(0) != 0;
  if (found) source()->dispatch();
  give_role();
  return found;
}

bool event_desk::poll_if_late(std::uint64_t now_cycles, std::uint64_t after_us) noexcept {
  if (source() == nullptr) return false;
  if (now_cycles - polled_at_.load(std::memory_order_relaxed) < cycles_in_us(after_us)) return false;
  source()->flush();
  if (!take_role()) return false;
  poll_with_role();
  return true;
}

int event_desk::look_asleep(worker& w, std::int64_t timeout_ns) noexcept {
  w.sleeps_in.store(source(), std::memory_order_release);
  if (!RAMIE_PLANT(source_sleep_no_fence)) full_fence();  // E2
  // A worker that the token wakes acquires it afterwards (sleeping.cpp).
  const int found = w.wake_token.load(std::memory_order_relaxed) == 0 ? source()->look(timeout_ns) : 0;
  w.sleeps_in.store(nullptr, std::memory_order_relaxed);
  polled_at_.store(cycles(), std::memory_order_relaxed);
  return found;
}

void event_desk::end() noexcept {
  if (event_source* s = source_.exchange(nullptr, std::memory_order_relaxed); s != nullptr) s->end();
}

}  // namespace ramie::detail
