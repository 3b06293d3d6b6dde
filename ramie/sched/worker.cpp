// The worker loop, and the switches into and out of it.
//
// L1 A loop runs on a pooled stack. It finds the next piece of work.
// L2 A new task, or a fork job, is called right there: no stack, no switch. When it returns, the loop goes on, on
// whatever
//    worker the task ended.
// L3 If the task suspends, the stack is its own from then on. The worker goes straight to the next ready fiber, or
//    starts a fresh loop on another pooled stack.
// L4 When the loop's next work is a ready fiber, it switches there for good, and its own stack goes back to the pool.
// L5 What must be done about the stack that was left travels with the switch and is done by the destination
// (after_switch):
//    only then is the context complete, and only then may anybody else know of it.
#include <ramie/sched/worker.hpp>

#include <ramie/base/assert.hpp>
#include <ramie/base/atomic.hpp>
#include <ramie/base/error.hpp>
#include <ramie/context/sanitizer.hpp>
#include <ramie/sched/backoff.hpp>
#include <ramie/sched/cpu_count.hpp>
#include <ramie/sched/cycles.hpp>
#include <ramie/sched/scheduler.hpp>
#include <ramie/sched/stack_use_table.hpp>
#include <ramie/sched/timer_queue.hpp>
#include <ramie/sched/wait_word.hpp>
#include <ramie/stack/overflow.hpp>

#include <cxxabi.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

__thread ramie::detail::fork_deque* ramie_current_forks __attribute__((tls_model("initial-exec"))) = nullptr;

namespace ramie::detail {

namespace {

constexpr std::uintptr_t action_mask = 7;
constexpr std::uint64_t hop_ns = 100;  // what a message to another worker costs more than one to the own, about
constexpr std::size_t fork_capacity = 16 * 1024;  // jobs; a deeper nest is promoted. 128 KiB of address space a worker

void loop_entry(std::uintptr_t word, void* arrived_on) noexcept;
void own_stack_entry(std::uintptr_t word, void* arrived_on) noexcept;

/// W3 where the first or second look found a claim, or somebody who holds the stack. `first`: what the first look saw.
RAMIE_COLD void park_slowly(stack* s, std::uint32_t first) noexcept {
  using namespace wait_word;
  if (state_of(first) == running) return make_ready(s);  // there is no mark: nobody else will
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
      // Else it went on, woken by somebody who saw the mark.
      if (state_of(word) != running || (word & early) == 0 || epoch_of(first + epoch_unit) != epoch_of(word)) return;
      if (!marked || s->wait_word.compare_exchange_strong(word, word & ~early, std::memory_order_acq_rel))
        make_ready(s);
      return;
    }
  }
}

RAMIE_COLD void keep_ready(worker* w, stack* s) noexcept {
  if (!w->wakes_here) return w->owner->place(w, s);
  w->ready.push(s);
  w->owner->published_ready(w);
}

/// L5.
RAMIE_ALWAYS_INLINE void finish_switch(worker* w, std::uintptr_t word) noexcept {
  auto* s = reinterpret_cast<stack*>(word & ~action_mask);
  const auto action = static_cast<after_switch>(word & action_mask);
  if (action == after_switch::park) {
    const std::uint32_t seen = s->wait_word.load(std::memory_order_acquire);
    if (wait_word::state_of(seen) == wait_word::armed) [[likely]] {
      s->parked.store(wait_word::mark_of(seen), std::memory_order_release);
      light_fence();
      if ((s->wait_word.load(std::memory_order_acquire) & wait_word::early) == 0 || RAMIE_PLANT(parked_without_look))
          [[likely]]
        return;
    }
    park_slowly(s, seen);
  } else if (action == after_switch::make_ready) {
    if (w->wakes_here && w->ready.try_push(s)) [[likely]]
      w->owner->published_ready(w);
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
  if (w->watched.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
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
    here->occupant.store(nullptr, std::memory_order_release);
    if (!RAMIE_PLANT(join_unnoticed)) seen = t->completion.exchange(task::done, std::memory_order_acq_rel);
    else t->completion.store(task::done, std::memory_order_release);
    if (seen != task::detached) {
      if (seen != 0) wake(waiter_ref::from_bits(seen));
      return;
    }
  }
  // Still a fiber: destroying a result may suspend. A failure that nobody will see is reported.
  here->occupant.store(t, std::memory_order_release);
  t->type->drop(*t);
  here->occupant.store(nullptr, std::memory_order_release);
  destroy_task(t);
}

void run_task(worker* w, task* t, stack* here) noexcept {
  t->where.store(here, std::memory_order_release);
  t->home.store(w, std::memory_order_relaxed);
  here->occupant.store(t, std::memory_order_release);
  if (w->watched_tasks.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    observe_begin(w, t);
  if (w->draining.load(std::memory_order_relaxed)) [[unlikely]]
    t->type->skip(*t, std::make_exception_ptr(cancelled{}));
  else t->type->run(*t);
  // Still a fiber: the destructors of what it kept for itself may suspend.
  if (task_extras* extras = t->extras.load(std::memory_order_relaxed); extras != nullptr) [[unlikely]] {
    extras->locals.destroy_all();
    if (extras->measures_stack) end_stack_use(*t, *here);
  }
  complete(t, here);
  w = current_worker();
  w->finished.add();
  if (w->watched_tasks.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    observe_end(w);
}

/// A task that asked for a stack of its own size leaves the loop for it.
RAMIE_COLD void start_on_own_stack(worker* w, task* t) noexcept {
  stack* s = nullptr;
  try {
    s = acquire_stack(stack_class_of(t->extras.load(std::memory_order_relaxed)->stack_size, w->owner->stacks_guard()));
  } catch (const std::exception&) {
    t->type->skip(*t, std::current_exception());
    complete(t, w->running);
    current_worker()->finished.add();
    return;
  }
  prepare(s, &own_stack_entry);
  s->occupant.store(t, std::memory_order_release);
  go(w, s);
}

/// Times the run, for affinity.hpp.
RAMIE_NOINLINE void run_timed(worker* w, resident& r) noexcept {
  const std::uint64_t session = w->session;
  const std::uint32_t handled = r.handled.load(std::memory_order_relaxed);
  const std::uint64_t begun = cycles();
  r.type->turn(r, nullptr);
  // A run that suspended says nothing about the state.
  if (current_worker() != w || w->session != session) return;
  r.learner.ran(cycles() - begun, r.handled.load(std::memory_order_relaxed) - handled, cycles_in_ns(hop_ns));
  if (!r.learner.is_watching()) r.flags.fetch_and(~task::timed_flag, std::memory_order_relaxed);
}

/// One whose runs are timed, or watched, or at shutdown.
RAMIE_NOINLINE void run_observed(worker* w, task* t, stack* here) noexcept {
  if (w->watched_tasks.load(std::memory_order_relaxed) != nullptr) observe_begin(w, t);
  if ((t->flags.load(std::memory_order_relaxed) & task::timed_flag) != 0) run_timed(w, static_cast<resident&>(*t));
  else t->type->turn(*t, nullptr);
  here->occupant.store(nullptr, std::memory_order_release);
  w = current_worker();
  if (w->watched_tasks.load(std::memory_order_relaxed) != nullptr) {
    observe_end(w);
    end_stack_use(*t, *here);
  }
  t->type->rest(*t);
}

/// R1 to R3.
RAMIE_ALWAYS_INLINE void run_resident(worker* w, task* t, stack* here) noexcept {
  t->where.store(here, std::memory_order_release);
  t->home.store(w, std::memory_order_relaxed);
  here->occupant.store(t, std::memory_order_release);
  if (w->watched_tasks.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    return run_observed(w, t, here);
  if (w->draining.load(std::memory_order_relaxed)) [[unlikely]]
    return run_observed(w, t, here);
  if ((t->flags.load(std::memory_order_relaxed) & task::timed_flag) != 0) [[unlikely]]
    return run_observed(w, t, here);
  if (t->type->turn(*t, here)) [[likely]]
    return;
  here->occupant.store(nullptr, std::memory_order_release);
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
    worker* w = current_worker();
    if (w->until_tick <= 1 || w->spawn_turns != 0 || w->deferred_at != 0 || w->spawned.size() != 0) return;
    task* t = w->ready.try_pop_resident();
    if (t == nullptr) return;
    --w->until_tick;
    w->dispatches.add();
    if (t->type->kind == task_kind::resident) [[likely]]
      run_resident(w, t, w->running);
    else start(w, t);
  }
}

// New tasks that a loop runs before it turns to a fiber that became ready meanwhile. With 0, each task that sends its
// parent a result costs two switches; skynet with channels: 52 ns a fiber with 0, 45 with 8, 44 with 32; experiment 4,
// n = 1: 46, 25, 22 ns.
constexpr std::uint32_t tasks_in_a_row = 32;

/// L1, L2, L4.
[[noreturn]] void loop() noexcept {
  std::uint32_t tasks_first = tasks_in_a_row;
  for (;;) {
    worker* w = current_worker();
    // The usual cases first, without the detour; find_work has the whole order.
    if (w->until_tick > 1 && !w->searching) [[likely]] {
      --w->until_tick;
      w->owner->dispatching(w);
      const bool task_next = w->spawn_turns != 0 || (tasks_first != 0 && w->spawned.size() != 0);
      if (const ready_item item = !task_next ? w->ready.pop() : ready_item{}) {
        w->dispatches.add();
        if (!item.is_resident()) go(w, item.as_stack());
        start(w, item.as_resident());
        run_ready_residents();
        tasks_first = tasks_in_a_row;
        continue;
      }
      if (task* t = w->spawned.pop(); t != nullptr) {
        w->dispatches.add();
        if (tasks_first != 0) --tasks_first;
        if (w->spawn_turns != 0) --w->spawn_turns;
        start(w, t);
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
      run_fork_job(w, next.job, next.job_run, next.job_owner);
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
  w = current_worker();
  if (stack* s = fresh_loop(w); s != nullptr) go(w, s);
  loop();  // no other stack to be had: this one serves as well
}

void name_occupant(const stack& s, char* buffer, std::size_t size) noexcept {
  const char* name = name_of(static_cast<const task*>(s.occupant.load(std::memory_order_acquire)));
  std::size_t i = 0;
  for (; i + 1 < size && name[i] != '\0'; ++i) buffer[i] = name[i];
  buffer[i] = '\0';
}

}  // namespace

namespace {

/// exception_state::empty without a second branch.
RAMIE_ALWAYS_INLINE bool is_empty(const exception_state& e) noexcept {
  return (reinterpret_cast<std::uintptr_t>(e.caught) | static_cast<std::uint32_t>(e.uncaught)) == 0;
}

RAMIE_ALWAYS_INLINE void put_aside(worker* w, exception_state& aside) noexcept {
  aside = *w->exceptions;
  if (!is_empty(aside)) [[unlikely]]
    *w->exceptions = {};
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
  if (w->bottom.load_relaxed() != w->base || w->until_tick <= 1 || w->spawn_turns != 0 || w->deferred_at != 0 ||
      w->watched.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    return nullptr;
  stack* to = w->ready.try_pop_stack();
  if (to != nullptr) [[likely]]
    --w->until_tick;
  return to;
}

stack* choose(worker* w) noexcept {
  if (w->bottom.load_relaxed() != w->base) promote_fork_jobs(w);
  stack* to = nullptr;
  if (w->until_tick > 1) {  // else it is time for a tick, by a fresh loop, however often there is no stack for one
    --w->until_tick;
    if (w->spawn_turns == 0) {
      w->owner->dispatching(w);
      to = w->ready.pop_stack();
    }
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
  if (w->watched.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    observe_go(w, w->running, to, parks);
  return head_for(w, to, aside);
}

RAMIE_NOINLINE stack* depart_to_others_slowly(worker* w, exception_state& aside) noexcept {
  if (w->ready.size() == 0) {
    // Nobody to yield to but what was spawned here, or what comes from outside; for that it is enough to look now and
    // then.
    if (const std::size_t tasks = w->spawned.size(); tasks != 0) {
      w->spawn_turns = tasks < scheduler::tick_every ? static_cast<std::uint32_t>(tasks) : scheduler::tick_every;
    } else if (w->until_tick > 1 && w->owner->options().policy == nullptr) {
      --w->until_tick;
      return nullptr;
    }
  }
  return leave(w, aside, false);
}

}  // namespace

stack* depart(fork_deque* d, exception_state& aside) noexcept {
  auto* w = static_cast<worker*>(d);
  if (stack* to = next_ready(w); to != nullptr) [[likely]]
    return head_for(w, to, aside);
  return leave(w, aside, true);
}

stack* depart_to_others(fork_deque* d, exception_state& aside) noexcept {
  auto* w = static_cast<worker*>(d);
  if (stack* to = next_ready(w); to != nullptr) [[likely]]
    return head_for(w, to, aside);
  return depart_to_others_slowly(w, aside);
}

void arrive(std::uintptr_t word, void* arrived_on, const exception_state& aside) noexcept {
  auto* w = static_cast<worker*>(arrived_on);
  if (!is_empty(aside)) [[unlikely]]
    *w->exceptions = aside;
  finish_switch(w, word);
}

#if RAMIE_ASAN || RAMIE_TSAN
namespace {
/// For tests: RAMIE_RANDOM_YIELDS=P has a fiber that goes on after a wait give way with a probability of P in a
/// hundred, again and again, so that it comes later than all who could not wait for it.
void give_way_at_random() noexcept {
  static const auto chance = [] {
    const char* text = std::getenv("RAMIE_RANDOM_YIELDS");
    return text == nullptr ? 0u : std::min(90u, static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10)));
  }();
  while (chance != 0) {
    worker* w = current_worker();
    if (w->random.below(100) >= chance || !yield_out_of_line(w)) return;
  }
}
}  // namespace
#endif

bool suspend_out_of_line(fork_deque* d, after_switch what) noexcept {
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

bool yield_out_of_line(fork_deque* d) noexcept {
  stack* self = d->running;
  exception_state aside;
  stack* to = depart_to_others(d, aside);
  if (to == nullptr) return false;
  const transfer back = switch_stacks(static_cast<worker*>(d), self, to, after_switch::make_ready, false);
  arrive(back.word, back.worker, aside);
  return true;
}

namespace {
RAMIE_ALWAYS_INLINE void make_item_ready(ready_item item, worker* home) noexcept {
  worker* w = current_worker();
  if (w == home && w->wakes_here) [[likely]] {
    if (w->watched.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
      observe_wake(w, item);
    w->wakes.add();
    if (!w->ready.try_push(item)) [[unlikely]]
      w->ready.push(item);
    w->owner->published_ready(w);
  } else if (w != nullptr && w->owner == home->owner) {
    home->owner->place(w, item);
  } else {
    home->owner->place_outside(item);
  }
}
}  // namespace

void make_ready(stack* s) noexcept {
  make_item_ready(
      s, static_cast<task*>(s->occupant.load(std::memory_order_relaxed))->home.load(std::memory_order_relaxed));
}

void make_resident_ready(task& t) noexcept { make_item_ready(&t, t.home.load(std::memory_order_relaxed)); }

void make_ready_from(resident& r, fork_deque* me) noexcept {
  auto* w = static_cast<worker*>(me);
  if (r.home.load(std::memory_order_relaxed) != w || !w->wakes_here ||
      w->watched.load(std::memory_order_relaxed) != nullptr || !w->ready.try_push(&r)) [[unlikely]]
    return make_resident_ready(r);
  w->wakes.add();
  compiler_fence();  // I2: try_push does nothing where fences are not asymmetric
  if (w->owner->idle.hint()) [[unlikely]]
    w->owner->published_ready(w);
}

worker::worker(scheduler& s, std::uint32_t n, stack_class& c)
    : owner{&s}, stacks{c}, number{n}, random{(std::uint64_t{n} + 1) * 0x9e3779b97f4a7c15u} {
  fork_slots = std::make_unique_for_overwrite<fork_slot[]>(1 + fork_capacity);
  looks = std::make_unique<look[]>(s.workers_possible());
  if (s.near_first()) victims.reserve(s.workers_possible());
  fork_slots[0].store_relaxed(nullptr);  // older than the oldest
  favours = favour.get();
  blocks_here = &blocks;
  alone = s.regular_workers() == 1;
  lock_id = identity.value();
  base = fork_slots.get() + 1;
  end = base + fork_capacity;
  bottom.store_relaxed(base);
  top.store_relaxed(base);
  limit.store_relaxed(asymmetric_fences ? end - 1 : nullptr);
  static atomic<std::uint64_t> workers_ever{0};
  session = (workers_ever.fetch_add(1, std::memory_order_relaxed) + 1)
            << 40;  // a trillion switches until the next one's
}

void worker::thread_main() noexcept {
  char name[16];
  std::snprintf(name, sizeof name, "%.10s/%u", owner->options().name.c_str(), number);
  ::pthread_setname_np(::pthread_self(), name);
  thread_id.store(::gettid(), std::memory_order_relaxed);
  if (owner->options().pin_threads && !spare) pin_to_cpu(number);
  ::prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0);  // ns: sleepers wake on time
  set_occupant_namer(&name_occupant);
  std::optional<alternate_signal_stack> signals;
  try {
    signals.emplace();
  } catch (const resource_error&) {
    // Without it an overflow still faults; it is just not reported.
  }
  exceptions = reinterpret_cast<exception_state*>(abi::__cxa_get_globals());
  native_fiber = sanitizer_thread_fiber();
#if RAMIE_ASAN
  pthread_attr_t attributes;
  void* low = nullptr;
  ::pthread_getattr_np(::pthread_self(), &attributes);
  ::pthread_attr_getstack(&attributes, &low, &native_size);
  ::pthread_attr_destroy(&attributes);
  native_low = static_cast<char*>(low);
#endif
  clock_ns.store(now_ns(), std::memory_order_relaxed);
  if (owner->near_first()) owner->note_place(this);
  ramie_current_forks = this;
  prepare(first, &loop_entry);
  sanitizer_switch hooks;
#if RAMIE_TSAN
  hooks.before(nullptr, 0, tsan_fiber_of(first->top), false);
#elif RAMIE_ASAN
  hooks.before(lowest_usable(*first), usable_size(*first), nullptr, false);
#endif
  this->running = first;  // cppcheck takes the plain name for wait_word::running
  const transfer back = switch_context(native, first->saved, {0, this});
  hooks.after();
  finish_switch(this, back.word);
  ramie_current_forks = nullptr;
  stacks.flush();
  blocks.flush();
  on_duty.store(false, std::memory_order_release);
}

}  // namespace ramie::detail
