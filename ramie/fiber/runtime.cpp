#include <ramie/fiber/runtime.hpp>

#include <ramie/sched/scheduler.hpp>

namespace ramie {

runtime::runtime(runtime_options options) : scheduler_{std::make_unique<detail::scheduler>(options)} {}
runtime::~runtime() = default;

void runtime::submit(detail::task* t) { scheduler_->submit(t); }
void runtime::shutdown() { scheduler_->stop(); }
int runtime::workers() const noexcept { return static_cast<int>(scheduler_->regular_workers()); }
const runtime_options& runtime::options() const noexcept { return scheduler_->options(); }

}  // namespace ramie
