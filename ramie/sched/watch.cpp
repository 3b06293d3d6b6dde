// Beginning and ending to observe the workers of a runtime.
#include <ramie/sched/scheduler.hpp>

namespace ramie::detail {

double scheduler::cycles_per_us() const noexcept {
  // The longer it runs, the better it is known; a hundred microseconds give a thousandth.
  std::int64_t ns = now_ns() - started_ns_;
  while (ns < 100'000) ns = now_ns() - started_ns_;
  return static_cast<double>(cycles() - started_cycles_) * 1000.0 / static_cast<double>(ns);
}

void scheduler::watch_worker(worker& w) {
  auto fresh = std::make_unique<observer>();
  if (watch_options_.events != 0) fresh->ring = std::make_unique<trace_ring>(watch_options_.events);
  fresh->ns_per_cycle = static_cast<std::uint64_t>(0x1p32 * 1000.0 / cycles_per_us());
  fresh->every_task = watch_options_.every_task;
  fresh->ready = watch_options_.histograms ? ready_times_.get() : nullptr;
  if (w.eyes != nullptr) earlier_.push_back(std::move(w.eyes));
  w.eyes = std::move(fresh);
  w.watched.store(w.eyes.get(), std::memory_order_release);
  if (watch_options_.every_task || watch_options_.histograms)
    w.watched_tasks.store(w.eyes.get(), std::memory_order_release);
}

bool scheduler::observe(const watch_options& options) {
  const std::lock_guard guard{watch_lock_};
  if (watching_) return false;
  watch_options_ = options;
  if (options.histograms && ready_times_ == nullptr) ready_times_ = std::make_unique<ready_times>();
  {
    auto ring = options.events != 0 ? std::make_unique<trace_ring>(options.events) : nullptr;
    const std::lock_guard outside{outside_.lock};
    outside_.seen.ring = std::move(ring);
    outside_.seen.ready = options.histograms ? ready_times_.get() : nullptr;
  }
  const std::size_t n = worker_count();
  for (std::size_t i = 0; i < n; ++i) watch_worker(at(i));
  watched_outside_.store(true, std::memory_order_release);
  watching_ = true;
  return true;
}

void scheduler::stop_observing() noexcept {
  const std::lock_guard guard{watch_lock_};
  watching_ = false;
  watched_outside_.store(false, std::memory_order_release);
  const std::size_t n = worker_count();
  for (std::size_t i = 0; i < n; ++i) {
    at(i).watched.store(nullptr, std::memory_order_release);
    at(i).watched_tasks.store(at(i).measuring.get(), std::memory_order_release);
  }
}

void scheduler::for_each_observer(void (*visit)(void*, std::size_t, const observer&), void* context) {
  const std::lock_guard guard{watch_lock_};
  const std::size_t n = worker_count();
  for (std::size_t i = 0; i < n; ++i)
    if (at(i).eyes != nullptr) visit(context, i, *at(i).eyes);
  const std::lock_guard outside{outside_.lock};
  visit(context, n, outside_.seen);
}

}  // namespace ramie::detail
