#include <ramie/task/task.hpp>

#include <ramie/base/atomic.hpp>
#include <ramie/base/error.hpp>
#include <ramie/machine/fence.hpp>
#include <ramie/task/region.hpp>

#include <cstdio>
#include <cstdlib>
#include <new>

namespace ramie::detail {

void destroy_task(task* t) noexcept {
  if (task_extras* extras = t->extras.load(std::memory_order_relaxed); extras != nullptr) [[unlikely]]
    delete extras;
  const std::uint8_t list = t->list;
  t->~task();
  if (list != task_cache::no_list) [[likely]]
    free_task_memory(t, list);
  else ::operator delete(static_cast<void*>(t), std::align_val_t{task_alignment_most});
}

const char* name_of(const task* t) noexcept {
  for (; t != nullptr; t = t->parent) {
    const task_extras* extras = t->extras.load(std::memory_order_acquire);
    if (extras != nullptr && !extras->name.empty()) return extras->name.c_str();
    if ((t->flags.load(std::memory_order_relaxed) & task::strand_flag) == 0) break;
  }
  return "";
}

task_extras& extras_of(task& t) {
  task_extras* extras = t.extras.load(std::memory_order_acquire);
  if (extras == nullptr) {
    auto made = std::make_unique<task_extras>();
    // Several fork jobs of one fiber may come here at once.
    if (t.extras.compare_exchange_strong(extras, made.get(), std::memory_order_acq_rel, std::memory_order_acquire))
      extras = made.release();
  }
  return *extras;
}

namespace {
/// Null if it is no strand.
strand_link* link_of(task& t) noexcept {
  const std::uint32_t flags = t.flags.load(std::memory_order_relaxed);
  if ((flags & task::child_flag) != 0) return &scope_place_of(t).link;
  return (flags & task::strand_flag) != 0 ? &static_cast<strand_task&>(t).link : nullptr;
}
}  // namespace

void begin_strand(task& strand) noexcept {
  task& parent = *strand.parent;
  link_strand(*link_of(strand), *parent.where.load(std::memory_order_relaxed), link_of(parent),
              *strand.where.load(std::memory_order_relaxed));
}

void request_stop(task& t) noexcept {
  t.flags.fetch_or(task::stop_flag, std::memory_order_acq_rel);
  if (task_extras* extras = t.extras.load(std::memory_order_acquire); extras != nullptr && extras->stop)
    extras->stop->request_stop();
  inspection here;  // its fence also orders this against a fiber that arms a wait and then looks at the flag
  stack* const s = t.where.load(std::memory_order_acquire);
  if (s == nullptr) return;
  // Unless it is shielded from the request.
  inspect_and_cancel(
      here, *s,
      [](const void* whom, const void* occupant) { return occupant == whom && limits_of_wait(occupant).stopped; }, &t);
  // It is not there yet, or not any more: a strand of it that did not see the flag would have been linked after it
  // came.
  if (s->occupant.load(std::memory_order_relaxed) != &t) return;
  cancel_strands_if_over(here, *s);
}

failure_rank rank_of(const std::exception_ptr& failure) noexcept {
  try {
    std::rethrow_exception(failure);
  } catch (const child_cancelled&) {
    return failure_rank::child_cancelled;
  } catch (const cancelled&) {
    return failure_rank::cancelled;
  } catch (...) {
    return failure_rank::error;
  }
}

void report_lost_exception(const char* fiber_name, const std::exception_ptr& lost, const char* how,
                           bool deadly) noexcept {
  const char* what = "an exception that is not a std::exception";
  try {
    std::rethrow_exception(lost);
  } catch (const cancelled&) {
    return;  // the normal end of a fiber that was asked to stop
  } catch (const std::exception& e) {
    what = e.what();
  } catch (...) {
  }
  if (fiber_name == nullptr) std::fprintf(stderr, "ramie: %s: %s\n", how, what);
  else std::fprintf(stderr, "ramie: fiber \"%s\" %s: %s\n", fiber_name, how, what);
  if (deadly) std::abort();
}

}  // namespace ramie::detail
