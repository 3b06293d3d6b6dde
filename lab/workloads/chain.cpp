#include <lab/workloads/chain.hpp>

#include <utility>

namespace ramie::lab {
namespace {

void yield_until(const std::atomic<bool>& flag) {
  while (!flag.load(std::memory_order_acquire)) ramie::this_fiber::yield();
}

}  // namespace

fiber_chain::fiber_chain(std::int64_t batches, std::int64_t links_each, std::function<void()> all_parked)
    : batches_left_{batches}, links_each_{links_each}, all_parked_{std::move(all_parked)} {}

std::int64_t fiber_chain::run() {
  last_ = ramie::spawn([this]() -> std::int64_t {
    yield_until(driver_may_start_);
    start_ = clock::now();
    drive();
    return 0;
  });
  driver_may_start_.store(true, std::memory_order_release);
  // Asleep, so that it is not among the fibers that the driver's yield passes through. How late it wakes is not
  // measured.
  while (!finished_.load(std::memory_order_acquire)) ramie::this_fiber::sleep_for(std::chrono::milliseconds{1});
  const std::int64_t links = last_.join();
  if (failure_) std::rethrow_exception(failure_);
  return links;
}

void fiber_chain::drive() {
  --batches_left_;
  try {
    batch_start_ = clock::now();
    for (std::int64_t i = 1; i <= links_each_; ++i) extend(i == links_each_);
    parked_ = clock::now();
    if (all_parked_) all_parked_();
    release_ = clock::now();
  } catch (...) {
    // No exception may leave: unwinding would join links that wait for the end of this very fiber.
    failure_ = std::current_exception();
    batches_left_ = 0;
    finish();
  }
}

void fiber_chain::extend(bool drives_next) {
  handed_over_ = std::move(last_);
  try {
    last_ = ramie::spawn([this, drives_next] { return live_as_link(drives_next); });
  } catch (...) {
    last_ = std::move(handed_over_);
    throw;
  }
  yield_until(link_started_);
  link_started_.store(false, std::memory_order_relaxed);
}

std::int64_t fiber_chain::live_as_link(bool drives_next) {
  handle before = std::move(handed_over_);
  link_started_.store(true, std::memory_order_release);
  const std::int64_t links = before.join() + 1;
  if (drives_next) {
    if (batches_left_ == 0) finish();
    else drive();
  }
  return links;
}

void fiber_chain::finish() {
  stop_ = clock::now();
  finished_.store(true, std::memory_order_release);
}

}  // namespace ramie::lab
