#include <ramie/sched/recorder.hpp>

#include <ramie/worker/worker.hpp>

#include <utility>

namespace ramie::detail {

double recorder::cycles_per_us() const noexcept {
  // The longer it runs, the better it is known; a hundred microseconds give a thousandth.
  std::int64_t ns = now_ns() - started_ns_;
  while (ns < 100'000) ns = now_ns() - started_ns_;
  return static_cast<double>(cycles() - started_cycles_) * 1000.0 / static_cast<double>(ns);
}

void recorder::observe(worker& w) {
  auto fresh = std::make_unique<observer>();
  if (options_.events != 0) fresh->ring = std::make_unique<trace_ring>(options_.events);
  fresh->ns_per_cycle = static_cast<std::uint64_t>(0x1p32 * 1000.0 / cycles_per_us());
  fresh->every_task = options_.every_task;
  fresh->ready = options_.histograms ? ready_times_.get() : nullptr;
  if (w.recording != nullptr) earlier_.push_back(std::move(w.recording));
  w.recording = std::move(fresh);
  w.observed.store(w.recording.get(), std::memory_order_release);
  if (options_.every_task || options_.histograms) w.observed_tasks.store(w.recording.get(), std::memory_order_release);
}

bool recorder::start(const recording_options& options) {
  const std::lock_guard guard{lock_};
  if (runs_) return false;
  options_ = options;
  if (options.histograms && ready_times_ == nullptr) ready_times_ = std::make_unique<ready_times>();
  {
    auto ring = options.events != 0 ? std::make_unique<trace_ring>(options.events) : nullptr;
    const std::lock_guard outside{outside_.lock};
    outside_.seen.ring = std::move(ring);
    outside_.seen.ready = options.histograms ? ready_times_.get() : nullptr;
  }
  for (std::size_t i = 0; i < workers_.size(); ++i) observe(workers_[i]);
  observes_outside_.store(true, std::memory_order_release);
  runs_ = true;
  return true;
}

void recorder::admit(worker& w) {
  const std::lock_guard guard{lock_};
  if (runs_) observe(w);
  workers_.add(w);
}

void recorder::stop() noexcept {
  const std::lock_guard guard{lock_};
  runs_ = false;
  observes_outside_.store(false, std::memory_order_release);
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    workers_[i].observed.store(nullptr, std::memory_order_release);
    workers_[i].observed_tasks.store(workers_[i].painting.get(), std::memory_order_release);
  }
}

void recorder::for_each(void (*visit)(void*, std::size_t, const observer&), void* context) {
  const std::lock_guard guard{lock_};
  const std::size_t n = workers_.size();
  for (std::size_t i = 0; i < n; ++i)
    if (workers_[i].recording != nullptr) visit(context, i, *workers_[i].recording);
  const std::lock_guard outside{outside_.lock};
  visit(context, n, outside_.seen);
}

}  // namespace ramie::detail
