// The worker loop, and the switches into and out of it.
//
// L1 A loop runs on a pooled stack. It finds the next piece of work.
// L2 A new task, or a fork job, is called right there: no stack, no switch. When it returns, the loop continues, on
//    whatever worker the task ended.
// L3 If the task suspends, the stack is its own from then on. The worker goes straight to the next ready fiber, or
//    starts a fresh loop on another pooled stack.
// L4 When the loop's next work is a ready fiber, it switches there for good, and its own stack goes back to the pool.
// L5 What must be done about the stack that was left travels with the switch and is done by the destination
//    (after_switch): only then is the context complete, and only then may another thread know of it.
#include <ramie/sched/next_work.hpp>

#include <ramie/base/assert.hpp>
#include <ramie/base/atomic.hpp>
#include <ramie/base/error.hpp>
#include <ramie/context/sanitizer.hpp>
#include <ramie/machine/backoff.hpp>
#include <ramie/machine/cpu_count.hpp>
#include <ramie/machine/cycles.hpp>
#include <ramie/machine/test_options.hpp>
#include <ramie/queue/promoted_job.hpp>
#include <ramie/sched/fork_jobs.hpp>
#include <ramie/sched/scheduler.hpp>
#include <ramie/stack/overflow.hpp>
#include <ramie/task/bound.hpp>
#include <ramie/task/timer_queue.hpp>
#include <ramie/task/wait_word.hpp>
#include <ramie/worker/observing.hpp>
#include <ramie/worker/stack_use_table.hpp>

#include <cxxabi.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

namespace ramie::detail {

namespace {

constexpr std::uintptr_t action_mask = 7;

void loop_entry(std::uintptr_t word, void* arrived_on) noexcept;
void own_stack_entry(std::uintptr_t word, void* arrived_on) noexcept;

/// W3 where the first or second look found a claim, or that the stack is held. `first`: what the first look saw.
RAMIE_COLD void park_slowly(stack* s, std::uint32_t first) noexcept {
  using namespace wait_word;
  // An inspector that has claimed read `waiting` before, whose place the queue's link takes.
  static_cast<void>(s->wait_word.load(std::memory_order_acquire));
  if (state_of(first) == running) return make_ready(s);  // there is no mark: no other thread will
  bool marked = state_of(first) == armed;
  for (int round = 0;;) {
    std::uint32_t word = s->wait_word.load(std::memory_order_acquire);
    if (epoch_of(word) == epoch_of(first)) {
      if (state_of(word) == held && (word & early) != 0) {
        pause_a_little(round);
      } else if (marked) {
        return;
      } else {
        s->parked.store(mark_of(first), std::memory_order_release);
        light_fence();
        marked = true;
      }
    } else {
      // Else it has resumed, woken by a waker that saw the mark.
      if (state_of(word) != running || (word & early) == 0 || epoch_of(next_epoch(first)) != epoch_of(word)) return;
      if (!marked || s->wait_word.compare_exchange_strong(word, word & ~early, std::memory_order_relaxed))
        make_ready(s);
      return;
    }
  }
}

RAMIE_COLD void keep_ready(worker* w, stack* s) noexcept {
  if (!w->wakes_here) return w->owner->placing.place(w, s);
  w->ready.push(s);
  w->owner->sleeping.published_ready(w);
}

/// L5.
RAMIE_ALWAYS_INLINE void finish_switch(worker* w, std::uintptr_t word) noexcept {
  auto* s = reinterpret_cast<stack*>(word & ~action_mask);
  const auto action = static_cast<after_switch>(word & action_mask);
  if (action == after_switch::park) {
    const std::uint32_t seen = s->wait_word.load(std::memory_order_relaxed);
    if (wait_word::state_of(seen) == wait_word::armed) [[likely]] {
      s->parked.store(wait_word::mark_of(seen), std::memory_order_release);
      if (!RAMIE_PLANT(parked_no_fence)) light_fence();
      if ((s->wait_word.load(std::memory_order_relaxed) & wait_word::early) == 0 || RAMIE_PLANT(parked_without_look))
          [[likely]]
        return;
    }
    park_slowly(s, seen);
  } else if (action == after_switch::make_ready) {
    if (w->wakes_here && w->ready.try_push(s)) [[likely]]
      w->owner->sleeping.published_ready(w);
    else keep_ready(w, s);
  } else if (action == after_switch::release) {
    sanitizer_finish(s->top);
    if (s->owner == &w->stacks.of()) [[likely]]
      w->stacks.release(s);
    else release_stack(s);
  }
}

/// One switch. Returns, if ever, on the worker that switched back; the stack it left is seen to.
RAMIE_ALWAYS_INLINE transfer switch_stacks(worker* w, stack* from, stack* to, after_switch what,
                                           bool for_good) noexcept {
  sanitizer_switch hooks;
#if RAMIE_TSAN
  hooks.before(nullptr, 0, tsan_fiber_of(to->top), for_good);
#elif RAMIE_ASAN
  hooks.before(lowest_usable(*to), usable_size(*to), nullptr, for_good);
#else
  static_cast<void>(for_good);
#endif
  const transfer back = switch_context(from->saved, to->saved,
                                       {reinterpret_cast<std::uintptr_t>(from) | static_cast<std::uintptr_t>(what), w});
  hooks.after();
  return back;
}

/// Leaves a loop's stack for good.
RAMIE_ALWAYS_INLINE void go(worker* w, stack* to) noexcept {
  stack* from = w->running;
  if (w->observed.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    observe_go(w, from, to, false);
  w->running = to;
  ++w->session;
  switch_stacks(w, from, to, after_switch::release, true);
}

void prepare(stack* s, context_entry entry) noexcept {
  sanitizer_start(s->top);
  s->saved = fresh_context(s->top - sanitizer_reserve, entry);
}

stack* fresh_loop(worker* w) noexcept {
  stack* s = w->stacks.try_acquire();
  if (s != nullptr) prepare(s, &loop_entry);
  return s;
}

/// The task has run on `here`. Its memory may be gone afterwards.
void complete(task* t, stack* here) noexcept {
  std::uint64_t seen = t->completion.load(std::memory_order_acquire);
  if (seen != task::detached) {
    here->occupant.store(nullptr, std::memory_order_relaxed);
    const auto order = RAMIE_PLANT(end_unordered) ? std::memory_order_acquire : std::memory_order_acq_rel;
    if (!RAMIE_PLANT(join_unnoticed)) seen = t->completion.exchange(task::done, order);
    else t->completion.store(task::done, std::memory_order_release);
    if (seen != task::detached) {
      if (seen != 0) wake(waiter_ref::from_bits(seen));
      return;
    }
  }
  // Still a fiber: destroying a result may suspend. A failure that no join will see is reported.
  here->occupant.store(t, std::memory_order_release);
  t->type->drop(*t);
  here->occupant.store(nullptr, std::memory_order_relaxed);
  destroy_task(t);
}

/// A scope's child begins in any case, as it would as a fork job: it ends at its first wait.
bool skips_when_draining(const task& t) noexcept {
  return (t.flags.load(std::memory_order_relaxed) & task::child_flag) == 0;
}

/// Destructors of what the closure kept may wait.
RAMIE_COLD void skip_in_peace(task& t) noexcept {
  static_cast<void>(current_worker()->draining.load(std::memory_order_acquire));  // for its joiner
  t.flags.fetch_or(task::ending_flag, std::memory_order_relaxed);
  t.type->skip(t, std::make_exception_ptr(cancelled{}));
}

RAMIE_ALWAYS_INLINE void settle(worker* w, task* t, stack* here) noexcept {
  t->where.store(here, std::memory_order_release);
  t->home.store(w, std::memory_order_relaxed);
  here->occupant.store(t, std::memory_order_release);
}

void run_task(worker* w, task* t, stack* here) noexcept {
  settle(w, t, here);
  if (w->observed_tasks.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    observe_begin(w, t);
  if (w->draining.load(std::memory_order_relaxed) && skips_when_draining(*t)) [[unlikely]]
    skip_in_peace(*t);
  else t->type->run(*t);
  // Still a fiber: the destructors of what it kept for itself may suspend.
  if (task_extras* extras = t->extras.load(std::memory_order_relaxed); extras != nullptr) [[unlikely]] {
    if (!extras->locals.empty()) {
      t->flags.fetch_or(task::ending_flag, std::memory_order_relaxed);
      extras->locals.destroy_all();
    }
    if (binds()) end_bound(*t);
    if (extras->measures_stack) end_stack_use(*t, *here);
  }
  complete(t, here);
  w = worker::current();
  w->finished.add();
  if (w->observed_tasks.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    observe_end(w);
}

/// A task that asked for a stack of its own size leaves the loop for it.
RAMIE_COLD void start_on_own_stack(worker* w, task* t) noexcept {
  stack* s = nullptr;
  std::exception_ptr failure;
  try {
    s = acquire_stack(stack_class_of(t->extras.load(std::memory_order_relaxed)->stack_size, w->owner->stacks_guard()));
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  if (failure != nullptr) {
    stack* const here = w->running;
    settle(w, t, here);  // destructors, and who hears of it, may wait
    t->flags.fetch_or(task::ending_flag, std::memory_order_relaxed);
    t->type->skip(*t, std::move(failure));
    complete(t, here);
    worker::current()->finished.add();
    return;
  }
  prepare(s, &own_stack_entry);
  s->occupant.store(t, std::memory_order_release);
  go(w, s);
}

/// One whose runs are observed, or at shutdown.
RAMIE_NOINLINE void run_observed(worker* w, task* t, stack* here) noexcept {
  if (w->observed_tasks.load(std::memory_order_relaxed) != nullptr) observe_begin(w, t);
  t->type->turn(*t, nullptr);
  here->occupant.store(nullptr, std::memory_order_relaxed);
  w = worker::current();
  if (w->observed_tasks.load(std::memory_order_relaxed) != nullptr) {
    observe_end(w);
    end_stack_use(*t, *here);
  }
  t->type->rest(*t);
}

/// R1 to R3.
RAMIE_ALWAYS_INLINE void run_resident(worker* w, task* t, stack* here) noexcept {
  settle(w, t, here);
  if (w->observed_tasks.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    return run_observed(w, t, here);
  if (w->draining.load(std::memory_order_relaxed)) [[unlikely]]
    return run_observed(w, t, here);
  if (t->type->turn(*t, here)) [[likely]]
    return;
  here->occupant.store(nullptr, std::memory_order_relaxed);
  t->type->rest(*t);
}

RAMIE_ALWAYS_INLINE void start(worker* w, task* t) noexcept {
  if (t->type->kind == task_kind::resident) run_resident(w, t, w->running);
  else if (t->type->kind != task_kind::fiber) [[unlikely]] run_promoted_job(w, t);
  else if ((t->flags.load(std::memory_order_relaxed) & task::own_stack_flag) != 0) [[unlikely]]
    start_on_own_stack(w, t);
  else run_task(w, t, w->running);
}

/// The residents that are next, one after the other, while there is nothing else to see to: what the loop would do, in
/// fewer steps.
RAMIE_NOINLINE void run_ready_residents() noexcept {
  for (;;) {
    worker* w = worker::current();
    if (!is_usual(*w)) return;
    const ready_item next = next_own<runnable_kind::resident>(*w, 0).ready;
    if (!next) return;
    task* const t = next.as_resident();
    --w->until_tick;
    w->dispatches.add();
    if (t->type->kind == task_kind::resident) [[likely]]
      run_resident(w, t, w->running);
    else start(w, t);
  }
}

/// L1, L2, L4.
[[noreturn]] void loop() noexcept {
  std::uint32_t tasks_first = tasks_in_a_row;
  for (;;) {
    worker* w = worker::current();
    if (w->until_tick > 1 && !w->searching) [[likely]] {
      --w->until_tick;
      note_dispatch(*w);
      const own_work own = next_own<runnable_kind::any>(*w, tasks_first);
      if (own.ready) {
        w->dispatches.add();
        if (!own.ready.is_resident()) go(w, own.ready.as_stack());
        start(w, own.ready.as_resident());
        run_ready_residents();
        tasks_first = tasks_in_a_row;
        continue;
      }
      if (own.spawned != nullptr) {
        w->dispatches.add();
        if (tasks_first != 0) --tasks_first;
        start(w, own.spawned);
        continue;
      }
    }
    const work next = w->owner->find_work(w);
    w->dispatches.add();
    if (next.start != nullptr) {
      start(w, next.start);
    } else if (next.resume != nullptr) {
      go(w, next.resume);
    } else if (next.job != nullptr) {
      run_fork_job(w, next.job, next.job_run, next.job_owner, 0);
    } else {
      // The runtime ends: back to the thread's own stack.
      stack* here = std::exchange(w->running, nullptr);
      sanitizer_switch hooks;
      hooks.before(w->native_low, w->native_size, w->native_fiber, true);
      switch_context(here->saved, w->native,
                     {reinterpret_cast<std::uintptr_t>(here) | static_cast<std::uintptr_t>(after_switch::release), w});
    }
  }
}

void loop_entry(std::uintptr_t word, void* arrived_on) noexcept {
  sanitizer_switch::arrived();
  finish_switch(static_cast<worker*>(arrived_on), word);
  loop();
}

void own_stack_entry(std::uintptr_t word, void* arrived_on) noexcept {
  sanitizer_switch::arrived();
  auto* w = static_cast<worker*>(arrived_on);
  finish_switch(w, word);
  stack* here = w->running;
  run_task(w, static_cast<task*>(here->occupant.load(std::memory_order_relaxed)), here);
  w = worker::current();
  if (stack* s = fresh_loop(w); s != nullptr) go(w, s);
  loop();  // no other stack to be had: this one serves as well
}

}  // namespace

namespace {

/// Neither caught nor uncaught ones, without a second branch.
RAMIE_ALWAYS_INLINE bool is_empty(const exception_state& e) noexcept {
  return (reinterpret_cast<std::uintptr_t>(e.caught) | e.in_flight()) == 0;
}

RAMIE_ALWAYS_INLINE void put_aside(worker* w, exception_state& aside) noexcept {
  aside = *w->exceptions;
  if (!is_empty(aside)) [[unlikely]]
    w->exceptions->set({});
}

/// The last step before a switch.
RAMIE_ALWAYS_INLINE stack* head_for(worker* w, stack* to, exception_state& aside) noexcept {
  put_aside(w, aside);
  w->running = to;
  ++w->session;
  w->dispatches.add();
  return to;
}

/// The next of this worker's ready fibers, where that is all there is to see to.
RAMIE_ALWAYS_INLINE stack* next_ready(worker* w) noexcept {
  if (w->bottom.load_relaxed() != w->base || !is_usual(*w) || w->observed.load(std::memory_order_relaxed) != nullptr)
      [[unlikely]]
    return nullptr;
  stack* to = next_own<runnable_kind::quick_fiber>(*w, 0).ready.as_stack();
  if (to != nullptr) [[likely]]
    --w->until_tick;
  return to;
}

stack* choose(worker* w) noexcept {
  if (w->bottom.load_relaxed() != w->base) promote_fork_jobs(w);
  stack* to = nullptr;
  if (w->until_tick > 1) {  // else it is time for a tick, by a fresh loop, however often there is no stack for one
    --w->until_tick;
    note_dispatch(*w);
    to = next_own<runnable_kind::fiber>(*w, 0).ready.as_stack();
  }
  if (to == nullptr) {
    to = fresh_loop(w);
    if (to == nullptr) [[unlikely]]
      to = w->ready.pop_stack();
  }
  return to;
}

// The rare cases stand in functions of their own, called last: so the usual ones save no registers, and the yield of
// two fibers takes 118 instructions instead of 169.
RAMIE_NOINLINE stack* leave(worker* w, exception_state& aside, bool parks) noexcept {
  stack* to = choose(w);
  if (to == nullptr) [[unlikely]]
    return nullptr;
  if (w->observed.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    observe_go(w, w->running, to, parks);
  return head_for(w, to, aside);
}

RAMIE_NOINLINE stack* depart_to_others_slowly(worker* w, exception_state& aside) noexcept {
  if (w->ready.size() == 0) {
    // No ready fiber to yield to, only what was spawned here or comes from outside; for that it is enough to look now
    // and then.
    if (const std::size_t tasks = w->spawned.size(); tasks != 0) {
      w->spawn_turns = tasks < scheduler::tick_every ? static_cast<std::uint32_t>(tasks) : scheduler::tick_every;
      w->turns_end_at = 0;
    } else if (w->until_tick > 1 && w->owner->options().policy == nullptr) {
      --w->until_tick;
      return nullptr;
    }
  }
  return leave(w, aside, false);
}

}  // namespace

stack* depart(worker_base* d, exception_state& aside) noexcept {
  auto* w = static_cast<worker*>(d);
  if (stack* to = next_ready(w); to != nullptr) [[likely]]
    return head_for(w, to, aside);
  return leave(w, aside, true);
}

stack* depart_to_others(worker_base* d, exception_state& aside) noexcept {
  auto* w = static_cast<worker*>(d);
  if (stack* to = next_ready(w); to != nullptr) [[likely]]
    return head_for(w, to, aside);
  return depart_to_others_slowly(w, aside);
}

void arrive(std::uintptr_t word, void* arrived_on, const exception_state& aside) noexcept {
  auto* w = static_cast<worker*>(arrived_on);
  if (!is_empty(aside)) [[unlikely]]
    w->exceptions->set(aside);
  finish_switch(w, word);
}

#if RAMIE_ASAN || RAMIE_TSAN
namespace {
/// RAMIE_RANDOM_YIELDS (test_options.hpp).
void give_way_at_random() noexcept {
  static const auto chance = [] {
    const char* text = std::getenv(random_yields_variable);
    return text == nullptr ? 0u : std::min(90u, static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10)));
  }();
  while (chance != 0) {
    worker* w = worker::current();
    if (w->random.below(100) >= chance || !yield_out_of_line(w)) return;
  }
}
}  // namespace
#endif

bool suspend_out_of_line(worker_base* d, after_switch what) noexcept {
  stack* self = d->running;
  exception_state aside;
  stack* to = depart(d, aside);
  if (to == nullptr) return false;
  const transfer back = switch_stacks(static_cast<worker*>(d), self, to, what, false);
  arrive(back.word, back.worker, aside);
#if RAMIE_ASAN || RAMIE_TSAN
  give_way_at_random();
#endif
  return true;
}

bool yield_out_of_line(worker_base* d) noexcept {
  stack* self = d->running;
  exception_state aside;
  stack* to = depart_to_others(d, aside);
  if (to == nullptr) return false;
  const transfer back = switch_stacks(static_cast<worker*>(d), self, to, after_switch::make_ready, false);
  arrive(back.word, back.worker, aside);
  return true;
}

void run_worker(worker& w) noexcept {
  char name[16];
  std::snprintf(name, sizeof name, "%.10s/%u", w.owner->options().name.c_str(), w.number);
  ::pthread_setname_np(::pthread_self(), name);
  w.thread_id.store(::gettid(), std::memory_order_relaxed);
  if (w.owner->options().pin_threads && !w.spare) pin_to_cpu(w.number);
  ::prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0);  // ns: sleepers wake on time
  std::optional<alternate_signal_stack> signals;
  try {
    signals.emplace();
  } catch (const resource_error&) {
    // Without it an overflow still faults; it is just not reported.
  }
  w.exceptions = reinterpret_cast<exception_state*>(abi::__cxa_get_globals());
  w.native_fiber = sanitizer_thread_fiber();
#if RAMIE_ASAN
  pthread_attr_t attributes;
  void* low = nullptr;
  ::pthread_getattr_np(::pthread_self(), &attributes);
  ::pthread_attr_getstack(&attributes, &low, &w.native_size);
  ::pthread_attr_destroy(&attributes);
  w.native_low = static_cast<char*>(low);
#endif
  w.clock_ns.store(now_ns(), std::memory_order_relaxed);
  if (w.owner->all().near_first) w.owner->all().note_place(w);
  ramie_current_worker = &w;
  prepare(w.first, &loop_entry);
  sanitizer_switch hooks;
#if RAMIE_TSAN
  hooks.before(nullptr, 0, tsan_fiber_of(w.first->top), false);
#elif RAMIE_ASAN
  hooks.before(lowest_usable(*w.first), usable_size(*w.first), nullptr, false);
#endif
  w.running = w.first;
  const transfer back = switch_context(w.native, w.first->saved, {0, &w});
  hooks.after();
  finish_switch(&w, back.word);
  ramie_current_worker = nullptr;
  w.stacks.flush();
  w.blocks.flush();
  w.on_duty.store(false, std::memory_order_relaxed);
}

}  // namespace ramie::detail
