// The course of a run:
//  E1 Each simulated thread has a real one, which sleeps for ever; the simulated thread uses its stack and its
//     thread-local variables. All of them run on the one OS thread of the process, by ramie's own switch of stacks and
//     a change of the thread pointer. So the code under test, which has fibers and thread-locals of its own, needs no
//     change.
//  E2 Before each atomic step `point` decides whether another thread runs next. The decision depends on numbers from
//     the seed alone: either every so many steps at random, or by priorities that change at few random steps (PCT: S.
//     Burckhardt et al., "A randomized scheduler with probabilistic guarantees of finding bugs", ASPLOS 2010), which
//     finds bugs that need few changes at certain places among many steps. A thread that spins falls behind all others.
//  E3 A store goes into the thread's own buffer and becomes visible later, in order, at a random step, or when the
//     thread does what drains the buffer: a read-modify-write, a full fence, a system call; or when any thread calls
//     membarrier. The thread itself sees it at once. That is x86-TSO (P. Sewell et al., 2010).
//     Half of the runs have a weaker memory instead: weak_memory.hpp. A third of all runs have full fences in place of the
//     asymmetric ones, as on a kernel without membarrier: then a heavy fence is one of its own thread only.
//  E4 Time is virtual: a little for each step, and a jump to the next deadline when no thread can run (or, in some
//     runs, early, so that deadlines race with events).
//  E5 Before such a jump the program may look at everything (`at_rest`): what a wake-up was lost for waits although
//     somebody sleeps, whether or not a timer comes to its rescue.
//  E6 When no thread can run and there is no deadline, that is a deadlock. Lost wake-ups show as deadlocks, too.
#include "engine.hpp"

#include "plain_memory.hpp"
#include "simulator.hpp"

#include <ramie/machine/fence.hpp>

#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace ramie::interleave {

engine* active = nullptr;
plant planted = plant::none;
bool unmonitored = true;

namespace {

void* thread_locals() noexcept {
  void* at;
#if defined(__x86_64__)
  asm volatile("rdfsbase %0" : "=r"(at));
#else
  asm volatile("mrs %0, tpidr_el0" : "=r"(at));
#endif
  return at;
}

[[gnu::always_inline]] inline void set_thread_locals(void* at) noexcept {
#if defined(__x86_64__)
  asm volatile("wrfsbase %0" : : "r"(at) : "memory");
#else
  asm volatile("msr tpidr_el0, %0" : : "r"(at) : "memory");
#endif
}

constexpr std::int64_t step_ns = 10;
constexpr std::size_t stack_bytes = 512 * 1024;

struct lender {
  sim_thread* to;
  sem_t* ready;
};

/// The main function of the real threads (E1).
void* lend_stack(void* arg) {
  const auto& l = *static_cast<lender*>(arg);
  l.to->locals = thread_locals();
  char here;
  l.to->stack_top = reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(&here) - 16384) & ~std::uintptr_t{63});
  ::sem_post(l.ready);
  for (;;) ::pause();
}

std::uint64_t mix(std::uint64_t x) noexcept {  // splitmix64; S. Vigna, 2015
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

engine::engine() {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);
  sem_t ready;
  ::sem_init(&ready, 0, 0);
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, stack_bytes);
  for (std::uint32_t i = 0; i < threads_most; ++i) {
    threads_[i].number = i;
    lender l{&threads_[i], &ready};
    if (::pthread_create(&threads_[i].real, &attributes, &lend_stack, &l) != 0) std::abort();
    while (::sem_wait(&ready) != 0) {
    }
  }
  ::pthread_attr_destroy(&attributes);
  ::sem_destroy(&ready);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  events_.reserve(1 << 20);
}

std::uint64_t engine::random() noexcept {
  random_ += 0x9e3779b97f4a7c15u;
  return mix(random_);
}

void engine::choose_policy() noexcept {
  constexpr std::array<std::uint32_t, 6> means{1, 2, 4, 8, 24, 80};
  constexpr std::array<std::uint64_t, 6> lengths{60, 200, 600, 2000, 6000, 20'000};
  constexpr std::array<std::uint32_t, 5> flushes{1, 4, 20, 100, 1000};
  priorities_ = below(2) != 0;
  switch_mean_ = means[below(means.size())];
  expected_steps_ = lengths[below(lengths.size())];
  changes_left_ = 1 + below(6);
  flush_one_in_ = flushes[below(flushes.size())];
  constexpr std::array<std::uint32_t, 4> olds{2, 2, 6, 30};
  constexpr std::array<std::uint64_t, 4> lasts{30, 300, 3000, 30'000};
  if (below(4) == 0) buffers_stores_ = is_weak_ = false;
  const std::uint32_t old_one_in = olds[below(olds.size())];
  const std::uint64_t old_lasts = lasts[below(lasts.size())];
  if (is_weak_) weak_.begin(old_one_in, old_lasts);
  if (below(2) == 0) time_flies_ = false;
  spurious_ = below(4) == 0;
}

void engine::set_next_switch() noexcept {
  if (!priorities_) {
    switch_at_ = steps_ + 1 + below(2 * switch_mean_);
  } else if (changes_left_ != 0) {
    --changes_left_;
    switch_at_ = steps_ + 1 + below(static_cast<std::uint32_t>(2 * expected_steps_ / (changes_left_ + 1)));
  } else {
    switch_at_ = UINT64_MAX;
  }
}

bool engine::run(std::uint64_t seed, const exploration& how, const std::function<void()>& body) {
  host_locals_ = thread_locals();
  random_ = mix(seed);
  steps_ = 0;
  steps_most_ = how.steps_most;
  hash_ = seed;
  now_ns_ = 1'000'000'000;
  next_deadline_ns_ = never_ns;
  used_ = 0;
  buffered_ = 0;
  least_priority_ = 1u << 30;
  is_weak_ = how.late_stores && is_weak(seed);
  buffers_stores_ = how.late_stores && !is_weak_;
  // As if init_fences() had decided so; before the run there is nothing that knows of another decision.
  detail::asymmetric_fences = seed % modes < 4;
  time_flies_ = how.time_flies;
  failed_ = false;
  events_.clear();
  choose_policy();
  if (seed == 0) {  // the warm-up: no thread is interrupted
    buffers_stores_ = is_weak_ = time_flies_ = spurious_ = false;
    priorities_ = true;
    changes_left_ = 0;
  }
  begin_plain_memory(is_weak_);
  active = this;
  sim_thread* first = start(body);
  set_next_switch();
  current_ = first;
  set_thread_locals(first->locals);
  detail::switch_context(host_, first->saved, {0, nullptr});
  active = nullptr;
  end_plain_memory();
  return failed_;
}

const char* engine::model() const noexcept {
  if (is_weak_) return detail::asymmetric_fences ? "weak memory, membarrier" : "weak memory, full fences";
  if (buffers_stores_) return detail::asymmetric_fences ? "x86-TSO, membarrier" : "x86-TSO, full fences";
  return detail::asymmetric_fences ? "membarrier" : "full fences";
}

void set_host_locals() noexcept {
  if (active != nullptr) active->take_host_locals();
}

void engine::take_host_locals() const noexcept { set_thread_locals(host_locals_); }

void engine::leave_run() noexcept {
  set_thread_locals(host_locals_);
  detail::switch_context(current_->saved, host_, {0, nullptr});
  std::abort();
}

void engine::fail(std::string what) noexcept {
  failure_ = std::move(what);
  failure_ += std::string{" ("} + model() + ", thread " + std::to_string(current_->number) + ", step " +
              std::to_string(steps_) + ")";
  failed_ = true;
  leave_run();
  std::abort();
}

// ---- threads -------------------------------------------------------------------------------------------------------

sim_thread* engine::start(std::function<void()> body) {
  sim_thread* t = nullptr;
  for (std::uint32_t i = 0; i < used_ && t == nullptr; ++i)
    if (threads_[i].now == sim_thread::state::unused) t = &threads_[i];
  if (t == nullptr) {
    if (used_ == threads_most) fail("too many simulated threads");
    t = &threads_[used_++];
  }
  t->body = std::move(body);
  t->now = sim_thread::state::runnable;
  if (is_weak_ && t != &threads_[0]) weak_.started(current_->number, t->number);
  t->stores.count = 0;
  t->priority = (1u << 30) + below(1u << 30);
  t->saved = detail::fresh_context(t->stack_top, &engine::thread_entry);
  if (priorities_) switch_at_ = std::min(switch_at_, steps_ + 1);
  return t;
}

void engine::thread_entry(std::uintptr_t, void*) noexcept {
  engine& e = *active;
  sim_thread& me = *e.current_;
  watching = watched_run;
  me.body();
  const unwatched here;
  me.body = nullptr;
  e.drain(me);
  me.now = sim_thread::state::finished;
  e.note("thread ends", nullptr, 0, nullptr);
  e.wake(&me, 1 << 20);
  bool over = true;
  for (std::uint32_t i = 0; i < e.used_; ++i) {
    const auto s = e.threads_[i].now;
    if (s == sim_thread::state::runnable || s == sim_thread::state::waiting) over = false;
  }
  if (over) e.leave_run();
  e.go_to(*e.pick_next());
  std::abort();
}

void engine::join(sim_thread* t) noexcept {
  while (t->now != sim_thread::state::finished) block(t, never_ns);
  if (is_weak_) weak_.joined(current_->number, t->number);
}

std::string engine::who_waits() const {
  std::string text;
  for (std::uint32_t i = 0; i < used_; ++i)
    if (threads_[i].now == sim_thread::state::waiting) text += " thread " + std::to_string(i);
  return text;
}

// ---- the next thread -----------------------------------------------------------------------------------------------

void engine::let_time_pass() noexcept {
  next_deadline_ns_ = never_ns;
  for (std::uint32_t i = 0; i < used_; ++i) {
    sim_thread& t = threads_[i];
    if (t.now != sim_thread::state::waiting) continue;
    if (t.deadline_ns <= now_ns_) t.now = sim_thread::state::runnable;
    else next_deadline_ns_ = std::min(next_deadline_ns_, t.deadline_ns);
  }
}

sim_thread* engine::pick_next() noexcept {
  if (now_ns_ >= next_deadline_ns_) let_time_pass();
  for (;;) {
    sim_thread* best = nullptr;
    std::uint32_t runnable = 0;
    for (std::uint32_t i = 0; i < used_; ++i) {
      sim_thread& t = threads_[i];
      if (t.now != sim_thread::state::runnable) continue;
      ++runnable;
      if (best == nullptr || (priorities_ ? t.priority > best->priority : below(runnable) == 0)) best = &t;
    }
    if (best != nullptr) return best;
    drain_all();
    let_time_pass();
    if (next_deadline_ns_ == never_ns) fail("deadlock: nobody can go on; waiting:" + who_waits());
    look_at_rest();
    now_ns_ = next_deadline_ns_;
    let_time_pass();
  }
}

/// Without a run the hooks read what is there, and without `watched_run` plain accesses are not watched.
void engine::look_at_rest() noexcept {
  if (!at_rest) return;
  const bool watched = std::exchange(watched_run, false);
  active = nullptr;
  const char* const wrong = at_rest();
  active = this;
  watched_run = watched;
  watching = false;
  if (wrong != nullptr) fail(std::string{"at rest: "} + wrong);
}

void engine::go_to(sim_thread& next) noexcept {
  sim_thread& from = *current_;
  if (&next == &from) return;
  current_ = &next;
  set_thread_locals(next.locals);
  detail::switch_context(from.saved, next.saved, {0, nullptr});
}

void engine::reschedule() noexcept {
  if (priorities_ && steps_ >= switch_at_ && below(2) == 0) current_->priority = --least_priority_;
  set_next_switch();
  if (time_flies_ && next_deadline_ns_ != never_ns && below(48) == 0) now_ns_ = std::max(now_ns_, next_deadline_ns_);
  go_to(*pick_next());
}

void engine::flush_one(sim_thread& t) noexcept {
  const store_buffer::entry& e = t.stores[0];
  __builtin_memcpy(e.at, &e.value, e.size);
  t.stores.first = (t.stores.first + 1) % store_buffer::most;
  --t.stores.count;
  --buffered_;
}

void engine::drain(sim_thread& t) noexcept {
  while (t.stores.count != 0) flush_one(t);
}

void engine::drain_all() noexcept {
  if (buffered_ == 0) return;
  for (std::uint32_t i = 0; i < used_; ++i) drain(threads_[i]);
}

void engine::fence(sim_thread& t) noexcept {
  drain(t);
  if (is_weak_) weak_.fence(t.number);
}

void engine::fence_all() noexcept {
  fence(*current_);
  for (std::uint32_t i = 0; i < used_; ++i) {
    if (below(4) == 0) point();
    drain(threads_[i]);
    if (is_weak_) weak_.interrupt(current_->number, i);
  }
  fence(*current_);
}

void engine::flush_some() noexcept {
  if (below(flush_one_in_) != 0) return;
  const std::uint32_t start = below(used_);
  for (std::uint32_t i = 0; i < used_; ++i) {
    sim_thread& t = threads_[(start + i) % used_];
    if (t.stores.count != 0) return flush_one(t);
  }
}

void engine::point() noexcept {
  ++steps_;
  now_ns_ += step_ns;
  if (buffered_ != 0) flush_some();
  if (steps_ >= switch_at_ || now_ns_ >= next_deadline_ns_) [[unlikely]] {
    if (steps_ > steps_most_) fail("livelock: more steps than a run may have");
    reschedule();
  } else if (steps_ > steps_most_) [[unlikely]] {
    fail("livelock: more steps than a run may have");
  }
}

void engine::give_way(std::int64_t took_ns) noexcept {
  ++steps_;
  now_ns_ += took_ns;
  if (buffered_ != 0) flush_some();
  if (steps_ > steps_most_) fail("livelock: more steps than a run may have");
  if (priorities_) current_->priority = --least_priority_;
  go_to(*pick_next());
}

void engine::block(const void* on, std::int64_t deadline_ns) noexcept {
  fence(*current_);
  current_->now = sim_thread::state::waiting;
  current_->waits_on = on;
  current_->deadline_ns = deadline_ns;
  next_deadline_ns_ = std::min(next_deadline_ns_, deadline_ns);
  go_to(*pick_next());
  fence(*current_);  // the kernel's, when it switches
}

void engine::wake(const void* on, int how_many) noexcept {
  const std::uint32_t start = below(used_);
  for (std::uint32_t i = 0; i < used_ && how_many > 0; ++i) {
    sim_thread& t = threads_[(start + i) % used_];
    if (t.now != sim_thread::state::waiting || t.waits_on != on) continue;
    t.now = sim_thread::state::runnable;
    --how_many;
    if (priorities_) switch_at_ = std::min(switch_at_, steps_ + 1);
  }
}

void engine::destroyed(void* at, unsigned) noexcept {
  if (buffered_ == 0) return;
  for (std::uint32_t i = 0; i < used_; ++i) {
    sim_thread& t = threads_[i];
    for (unsigned k = 0; k < t.stores.count; ++k) {
      if (t.stores[k].at != at) continue;
      if (&t != current_) fail("an atomic ends its life while a store of another thread to it is still under way");
      drain(t);
      break;
    }
  }
}

}  // namespace ramie::interleave
