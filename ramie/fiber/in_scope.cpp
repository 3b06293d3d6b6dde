#include <ramie/fiber/in_scope.hpp>

#include <ramie/fiber/spawn.hpp>
#include <ramie/fiber/this_fiber.hpp>
#include <ramie/task/clean_up.hpp>
#include <ramie/task/current.hpp>
#include <ramie/task/task.hpp>
#include <ramie/task/timer_queue.hpp>

#include <array>
#include <cstdio>
#include <mutex>
#include <new>

namespace ramie {

namespace detail {

namespace {
constexpr std::int64_t pause_ns = 1'000'000'000;
}  // namespace

scope_body::~scope_body() {
  if (untold_ != 0) std::fprintf(stderr, "ramie: %zu more children of a scope failed\n", untold_);
}

bool scope_body::tolerates(std::exception_ptr& failure) noexcept {
  if (!options_.tolerant) return false;
  if (const failure_rank rank = rank_of(failure); rank != failure_rank::error) {
    if (rank == failure_rank::cancelled) cut_off_.store(true, std::memory_order_relaxed);
    return true;
  }
  const char* const child = name_of(running_task_here());
  std::exception_ptr thrown;
  call_quietly([&] {
    if (!options_.on_failure) return tell(failure, child);
    try {
      options_.on_failure(failure, child);
    } catch (...) {
      thrown = std::current_exception();
    }
  });
  if (thrown == nullptr) return true;
  failure = std::move(thrown);
  return false;
}

void scope_body::tell(const std::exception_ptr& failure, const char* child) noexcept {
  std::size_t others;
  {
    const std::lock_guard guard{lock_};
    const std::int64_t now = now_ns();
    if (now < tell_again_ns_) {
      ++untold_;
      return;
    }
    tell_again_ns_ = now + pause_ns;
    others = std::exchange(untold_, 0);
  }
  const bool named = *child != '\0';
  std::array<char, 80> how;
  const char* const what = named ? "failed" : "a child of a scope failed";
  if (others == 0) std::snprintf(how.data(), how.size(), "%s", what);
  else std::snprintf(how.data(), how.size(), "%s, and %zu others have", what, others);
  report_lost_exception(named ? child : nullptr, failure, how.data(), false);
}

bool scope_body::takes(const std::exception_ptr& failure) noexcept {
  if (options_.others == nullptr) return false;
  if (rank_of(failure) != failure_rank::error) return true;
  const std::lock_guard guard{lock_};
  try {
    options_.others->push_back(failure);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace detail

void body_scope::end_at(std::chrono::steady_clock::time_point deadline) {
  alarms_.reserve(alarms_.size() + 1);
  alarms_.push_back(ramie::spawn([this, deadline] {
    this_fiber::sleep_until(deadline);
    cancel();
  }));
}

body_scope::~body_scope() {
  for (join_handle<void>& alarm : alarms_) alarm.request_stop();
}

void body_scope::finish(const std::exception_ptr& own) {
  if (own != nullptr) fail_by_body(own);
  join();
}

void detail::pass_on_cancellation(const std::exception_ptr& own, bool cut_off) {
  if (!this_fiber::stop_requested()) return;
  clean_up rest;
  if (rest.begin()) return;
  if (own != nullptr) std::rethrow_exception(own);
  if (cut_off) throw cancelled{};
}

}  // namespace ramie
