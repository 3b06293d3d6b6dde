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

task& root_of(task& t) noexcept {
  task* root = &t;
  while ((root->flags.load(std::memory_order_relaxed) & task::strand_flag) != 0 && root->parent != nullptr)
    root = root->parent;
  return *root;
}

void begin_strand(strand_link& link, task& parent, stack& place) noexcept {
  task& root = root_of(parent);
  root.flags.fetch_or(task::forked_flag, std::memory_order_relaxed);
  link_strand(link, &root, place);
}

void request_stop(task& t) noexcept {
  // Changes to `flags` have one order: a strand that marks the task after this finds the stop flag at its first wait.
  const std::uint32_t before = t.flags.fetch_or(task::stop_flag, std::memory_order_acq_rel);
  if (task_extras* extras = t.extras.load(std::memory_order_acquire); extras != nullptr && extras->stop)
    extras->stop->request_stop();
  const inspection here;  // its fence also orders this against a fiber that arms a wait and then looks at the flag
  if (stack* s = t.where.load(std::memory_order_acquire); s != nullptr) wake_cancelled(here, *s, &t);
  if ((before & task::forked_flag) == 0) return;
  struct strands_of {
    const inspection& here;
    const task* root;
  } strands{here, &t};
  visit_strands(
      &t,
      [](void* opaque, stack& s) {
        const auto& of = *static_cast<const strands_of*>(opaque);
        inspect_and_cancel(
            of.here, s,
            [](const void* wanted, const void* occupant) {
              auto* waiting = const_cast<task*>(static_cast<const task*>(occupant));
              const task* at = waiting;
              while (at != nullptr && at != wanted) at = at->parent;
              return at != nullptr && limits_of(*waiting, 0).stopped;  // or it is shielded from the request
            },
            of.root);
      },
      &strands);
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
