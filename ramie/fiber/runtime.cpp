#include <ramie/fiber/runtime.hpp>

#include <ramie/sched/scheduler.hpp>

namespace ramie {

runtime::runtime(const runtime_options& options) : scheduler_{std::make_unique<detail::scheduler>(options)} {}
runtime::~runtime() = default;

void runtime::submit(detail::task* t) { scheduler_->submit(t); }
void runtime::shutdown() { scheduler_->stop(); }
int runtime::workers() const noexcept { return static_cast<int>(scheduler_->regular_workers()); }

runtime_counters runtime::counters() const noexcept {
  runtime_counters sum{};
  detail::scheduler& s = *scheduler_;
  sum.threads = s.worker_count();
  sum.spawned = s.started_outside();
  for (std::size_t i = 0; i < sum.threads; ++i) {
    const detail::worker& w = s.at(i);
    sum.dispatches += w.dispatches.value();
    sum.ended += w.finished.value();
    sum.spawned += w.started.value();
    sum.steals_tried += w.steals_tried.value();
    sum.steals += w.steals_done.value();
    sum.wakes += w.wakes.value();
    sum.wakes_elsewhere += w.wakes_elsewhere.value();
    sum.migrations += w.migrations.value();
    sum.sleeps += w.parks.value();
  }
  return sum;
}

const runtime_options& runtime::options() const noexcept { return scheduler_->options(); }

}  // namespace ramie
