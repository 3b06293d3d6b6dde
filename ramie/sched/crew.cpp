#include <ramie/sched/crew.hpp>

#include <ramie/machine/cycles.hpp>
#include <ramie/sched/environment.hpp>

#include <sched.h>

#include <bit>

namespace ramie::detail {

namespace {
constexpr std::uint32_t sample_every = 8;       // ready items left to their worker; a guess
constexpr std::uint64_t queued_us_most = 1000;  // what a worker may have ready before it is shared; a guess
}  // namespace

crew::crew(const runtime_options& given)
    : options{resolve(given)},
      test{resolve(with_test_options::now())},
      regular{static_cast<std::uint32_t>(options.workers)},
      steals{options.policy != nullptr || options.placement != placement::dedicated},
      has_reserve{steals && options.policy == nullptr && options.spare_workers != 0 && !test.migrate_always} {
  // Of two workers neither has a choice. The simulated scheduler's workers are nowhere.
  if (regular > 2 && !RAMIE_INTERLEAVE) {
    map = test.machine ? *test.machine : topology::of_machine();
    near_first = map.has_rings();
  }
  workers.reserve(most());
}

void crew::note_place(worker& w) const noexcept {
  const int cpu = test.machine ? static_cast<int>(w.number % map.cpus()) : ::sched_getcpu();
  w.place.store(std::bit_cast<std::uint64_t>(map.at(cpu)), std::memory_order_relaxed);
}

bool worth_moving(const crew& all, const worker& w, std::size_t queued) noexcept {
  if (queued >= 2 && all.way.pairs_move()) return true;
  const std::uint64_t slice = w.slice.load(std::memory_order_relaxed);
  return queued >= 2 ? queued * slice > cycles_in_us(queued_us_most) : queued == 1 && slice > cycles_in_us(still_us);
}

bool leaves_new_tasks(const worker& of) noexcept {
  const std::uint64_t until = of.leave_new_until.load(std::memory_order_relaxed);
  return until != 0 && cycles() < until;
}

bool has_surplus(const crew& all, const worker& of) noexcept {
  return worth_moving(all, of, of.ready.size()) || of.has_fork_jobs() ||
         (of.spawned.size() >= 2 && !leaves_new_tasks(of));
}

void sample_deferral(worker& w) noexcept {
  if (++w.unsampled < sample_every) return;
  w.unsampled = 0;
  const std::uint64_t now = cycles();
  if (w.deferred_at == 0) w.deferred_at = now;
  else w.slice.store(now - w.deferred_at, std::memory_order_relaxed);  // no dispatch since: it takes at least that long
}

void judge_deferral(worker& w) noexcept {
  w.slice.store(cycles() - w.deferred_at, std::memory_order_relaxed);
  w.deferred_at = 0;
}

void measure_tick(worker& w, std::uint32_t dispatches) noexcept {
  const std::uint64_t now = cycles();
  if (w.tick_at != 0) w.slice.store((now - w.tick_at) / dispatches, std::memory_order_relaxed);
  w.tick_at = now;
}

}  // namespace ramie::detail
