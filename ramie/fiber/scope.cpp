#include <ramie/fiber/scope.hpp>

#include <ramie/base/atomic.hpp>
#include <ramie/base/error.hpp>
#include <ramie/fiber/in_scope.hpp>
#include <ramie/machine/backoff.hpp>
#include <ramie/stack/pool.hpp>
#include <ramie/task/bound.hpp>
#include <ramie/task/clean_up.hpp>
#include <ramie/task/region.hpp>
#include <ramie/task/wait.hpp>

#include <cstdlib>
#include <mutex>
#include <new>

namespace ramie {

/// Made in the scope's own memory at the first need, by the owner or by a child that fails elsewhere.
struct scope::rare {
  struct chunk {
    chunk* older;
  };
  detail::spin_lock lock;
  detail::atomic<bool> failed{false};  // or cancelled: children that have not started are dropped
  detail::failure_rank rank{};         // of `first_failure`; inside lock
  bool by_name = false;                // `cancel` was called, so `cancelled` is no failure; inside lock
  bool looked_for_owner = false;       // inside lock
  std::size_t fibers = 0;              // inside lock
  std::uint64_t waiter = 0;            // of await_fibers; inside lock
  std::exception_ptr first_failure;    // inside lock
  chunk* chunks = nullptr;             // memory for children that do not fit inline; owner only
  std::byte* chunk_at = nullptr;
  std::size_t chunk_left = 0;
  detail::atomic<detail::task*> owner{
      nullptr};  // the scope is on its stack, and its fibers are its strands; written inside lock
  detail::scope_child* running = nullptr;  // fibers that have started; inside lock
  detail::stopped_scope stopped;           // once `failed`
  detail::child_end* outcomes = nullptr;   // inside lock
  detail::scope_body* body = nullptr;      // in_scope's; set before there are children
  bool told = false;                       // the owner knows of `first_failure`, by `spawn`; inside lock

  /// Inside the lock, with no fibers left: as if nothing had failed. Returns the first failure.
  [[nodiscard]] std::exception_ptr begin_again() noexcept {
    if (body == nullptr || !by_name) {  // a body that is cancelled stays so, also if it joins
      forget_stop();
      by_name = false;
      failed.store(false, std::memory_order_relaxed);
    }
    return std::exchange(first_failure, nullptr);
  }
  void forget_stop() noexcept {
    if (stopped.place != nullptr) detail::remove_stopped(stopped);
    stopped.place = nullptr;
  }
  void free_chunks() noexcept {
    while (chunk* c = chunks) {
      chunks = c->older;
      std::free(c);
    }
    chunk_left = 0;
  }
  void free_outcomes() noexcept {
    while (detail::child_end* e = outcomes) {
      outcomes = e->older;
      delete e;
    }
  }
};

scope::rare& scope::get_rare() noexcept {
  static_assert(sizeof(rare) <= rare_size && alignof(rare) <= 16);
  static char under_construction;
  rare* const busy = reinterpret_cast<rare*>(&under_construction);
  rare* seen = rare_.load_acquire();
  if (seen == nullptr && rare_.compare_exchange(seen, busy)) {
    seen = ::new (static_cast<void*>(rare_memory_)) rare;
    rare_.store_release(seen);
    return *seen;
  }
  for (int round = 0; seen == busy || seen == nullptr;) {
    detail::pause_a_little(round);
    seen = rare_.load_acquire();
  }
  return *seen;
}

bool scope::has_failed() const noexcept {
  return const_cast<scope*>(this)->get_rare().failed.load(std::memory_order_relaxed);
}

void scope::fail(std::exception_ptr failure) noexcept {
  rare& r = get_rare();
  if (r.body == nullptr || !r.body->tolerates(failure)) record(r, std::move(failure));
}

void scope::guard(detail::scope_body& body) noexcept { get_rare().body = &body; }

void scope::fail_by_body(std::exception_ptr failure) noexcept { record(get_rare(), std::move(failure)); }

void scope::record(rare& r, std::exception_ptr failure) noexcept {
  const detail::failure_rank rank = detail::rank_of(failure);  // throws, so not inside the lock
  {
    std::lock_guard guard{r.lock};
    if ((r.by_name && rank != detail::failure_rank::error) || failure == r.first_failure) return;
    if (r.first_failure == nullptr) {
      r.first_failure = std::move(failure);
      r.rank = rank;
      if (!begin_to_stop(r)) return;
      failure = nullptr;
    } else if (rank > r.rank) {
      std::swap(r.first_failure, failure);
      r.rank = rank;
      r.told = false;
    }
  }
  if (failure == nullptr) stop(r);
  else if (rank == detail::failure_rank::error && (r.body == nullptr || !r.body->takes(failure)))
    detail::report_lost_exception(nullptr, failure, "a child of a scope failed after another one", false);
}

void scope::cancel() noexcept {
  rare& r = get_rare();
  {
    std::lock_guard guard{r.lock};
    r.by_name = true;
    if (!begin_to_stop(r)) return;
  }
  stop(r);
}

/// Inside the lock.
void scope::look_for_owner(rare& r) noexcept {
  if (!std::exchange(r.looked_for_owner, true)) r.owner.store(detail::owner_of_place(this), std::memory_order_relaxed);
}

/// Inside the lock. False if there is nothing left to do.
bool scope::begin_to_stop(rare& r) noexcept {
  if (r.failed.exchange(true, std::memory_order_relaxed)) return false;
  if (r.body != nullptr) session_.store_relaxed(0);  // so `spawn` asks throw_if_failed
  look_for_owner(r);
  // Without an owner (a plain thread's scope, or one not on a stack) the fibers are strands of none. They have no stop
  // callbacks. The lock keeps them from ending.
  if (r.owner.load(std::memory_order_relaxed) == nullptr)
    for (detail::scope_child* c = r.running; c != nullptr; c = c->next) detail::request_stop(*c->self);
  ++r.fibers;  // the scope does not end before `stop` has
  return true;
}

/// Not inside the lock: children are looked for, and some may be about to end.
void scope::stop(rare& r) noexcept {
  r.stopped = {
      reinterpret_cast<const char*>(this),
      sizeof(scope),
      in_flight_,
      r.owner.load(std::memory_order_relaxed),
      r.body != nullptr
          ? [](const void*) noexcept { return true; }
          : [](const void*
                   place) noexcept { return static_cast<const scope*>(place)->used_.load_relaxed() >= joining_mark; },
      nullptr};
  detail::add_stopped(r.stopped);
  std::uint64_t waiter = 0;
  {
    std::lock_guard guard{r.lock};
    if (--r.fibers == 0) waiter = std::exchange(r.waiter, 0);
  }
  if (waiter != 0) detail::wake(detail::waiter_ref::from_bits(waiter));
}

static void submit_child(detail::scope_child& c) {
  if (c.self->extras.load(std::memory_order_relaxed) == nullptr) detail::submit_here(c.self);
  else detail::submit_here_with_options(c.self);
}

/// Tells whoever would go on adding children that are dropped: an owner that has waited in between, and may do so for
/// ever. Not in clean-up, where nobody would hear of it.
void scope::throw_if_failed(rare& r) {
  if (!r.failed.load(std::memory_order_relaxed) || detail::exceptions_in_flight() != 0) return;
  const bool stopped = detail::limits_here().stopped;
  if (stopped) detail::begin_again([] {});
  const detail::worker_base* const w = detail::current_worker();
  std::exception_ptr failure;
  {
    std::lock_guard guard{r.lock};
    // The owner of one that is not on its stack is not known.
    const detail::task* const owner = r.owner.load(std::memory_order_relaxed);
    const bool by_owner = owner == nullptr || owner == (w == nullptr ? nullptr : w->running_task());
    if (r.by_name || !by_owner || used_.load_relaxed() >= joining_mark) return;
    if (stopped && r.rank != detail::failure_rank::error) return;  // in clean-up
    failure = r.first_failure;
    r.told = failure != nullptr;
  }
  if (failure != nullptr) std::rethrow_exception(std::move(failure));
}

/// Passes a child that is a fiber to the scheduler. It is counted in any case: if this throws, the caller ends it.
RAMIE_NOINLINE void scope::start(detail::scope_child& c, const fiber_options* options) {
  detail::task& t = *c.self;
  t.completion.store(detail::task::detached, std::memory_order_relaxed);
  rare& r = get_rare();
  std::exception_ptr refused;
  try {
    throw_if_failed(r);
    if (options != nullptr) detail::apply_options(t, *options);
  } catch (const detail::passes_on&) {
    throw;
  } catch (...) {
    refused = std::current_exception();
  }
  {
    std::lock_guard guard{r.lock};
    look_for_owner(r);
    detail::task* const owner = r.owner.load(std::memory_order_relaxed);
    if (owner != nullptr && !RAMIE_PLANT(scope_child_of_nobody)) {
      c.in_flight = in_flight_;
      t.parent = owner;
      t.flags.fetch_or(detail::task::strand_flag | detail::task::child_flag, std::memory_order_relaxed);
    }
    ++r.fibers;
  }
  if (refused != nullptr) std::rethrow_exception(std::move(refused));
  submit_child(c);
}

void scope::fiber_began(detail::scope_child& c) noexcept {
  // As for fork jobs that start elsewhere (run_fork_job): from now on request_stop has to look for it.
  if (c.self->parent != nullptr && !RAMIE_PLANT(scope_child_unmarked)) detail::begin_strand(*c.self);
  rare& r = get_rare();
  std::lock_guard guard{r.lock};
  c.next = r.running;
  c.previous = nullptr;
  if (c.next != nullptr) c.next->previous = &c;
  r.running = &c;
  c.begun = true;
}

void scope::fiber_ended(detail::scope_child& c) noexcept {
  detail::unlink_strand(c.link);
  rare& r = get_rare();
  std::uint64_t waiter = 0;
  {
    // The last access to the scope is the unlock; await_fibers passes only after it has held the lock itself. From then
    // on the parent may be gone as well.
    std::lock_guard guard{r.lock};
    c.self->flags.fetch_and(~(detail::task::strand_flag | detail::task::child_flag), std::memory_order_relaxed);
    c.self->parent = nullptr;
    if (c.begun) {
      (c.previous == nullptr ? r.running : c.previous->next) = c.next;
      if (c.next != nullptr) c.next->previous = c.previous;
    }
    if (--r.fibers == 0) waiter = std::exchange(r.waiter, 0);
  }
  if (waiter != 0) detail::wake(detail::waiter_ref::from_bits(waiter));
}

void scope::keep_outcome(detail::child_end& made) noexcept {
  rare& r = get_rare();
  std::lock_guard guard{r.lock};
  made.older = r.outcomes;
  r.outcomes = &made;
}

bool scope::is_nobodys(rare& r) noexcept {
  std::lock_guard guard{r.lock};
  return r.looked_for_owner && r.owner.load(std::memory_order_relaxed) == nullptr;
}

/// For a scope that is not on a stack, whose fibers are strands of nobody: what would end other waits of the caller
/// ends this one, too, and they are cancelled. False: that has happened, or the caller could not suspend.
bool scope::await_as_owner(rare& r, detail::wait& pause) noexcept {
  bool cut_off = true;
  try {
    if (pause.suspend() == detail::wake_reason::event) return true;
  } catch (const std::exception&) {  // no stack for other work, no memory for a timer
    cut_off = false;
  }
  {
    std::lock_guard guard{r.lock};
    if (r.waiter == pause.ref().bits()) r.waiter = 0;
  }
  if (cut_off) record(r, std::make_exception_ptr(cancelled{}));
  return false;
}

/// Until no fiber is left, nor a `cancel` under way. One that comes later is about what the scope is used for next.
std::exception_ptr scope::await_fibers() noexcept {
  rare& r = get_rare();
  const detail::scope_wait_site site{{detail::scope_reason, {}}, this};
  using kind = detail::wait::kind;
  for (bool as_owner = r.owner.load(std::memory_order_relaxed) == nullptr && is_nobodys(r);;) {
    detail::wait pause{as_owner ? kind::cancellable : kind::uninterruptible, site};
    {
      std::lock_guard guard{r.lock};
      if (r.fibers == 0) {
        pause.withdraw();
        if (!RAMIE_PLANT(scope_begins_again_late)) return r.begin_again();
        break;
      }
      r.waiter = pause.ref().bits();
    }
    if (as_owner) as_owner = await_as_owner(r, pause);
    else pause.suspend();
  }
  return r.begin_again();
}

void scope::await_child(child& c) noexcept {
  detail::wait_for_thief(c, in_flight_);
  if (newest_ != below_) return;
  // The fiber may have suspended, and be elsewhere. If the owner is here, and on an empty deque, what is pushed next
  // stands alone: no enclosing fork will take its slot away.
  detail::fork_deque* d = detail::current_forks();
  if (d == nullptr || d->bottom.load_relaxed() != d->base) return;
  const auto* here = reinterpret_cast<const char*>(this);
  if (here >= detail::lowest_usable(*d->running) && here < d->running->top) adopt(*d);
}

void* scope::take_chunk(std::size_t bytes, std::size_t alignment) {
  using chunk = rare::chunk;
  constexpr std::size_t usual = 1008;  // with malloc's header just 1 KiB, which glibc caches per thread
  rare& r = get_rare();
  if (alignment > 16 || bytes > usual / 4) {
    const std::size_t unit = alignment > 16 ? alignment : 16;
    const std::size_t head = (sizeof(chunk) + unit - 1) / unit * unit;
    void* memory = std::aligned_alloc(unit, (head + bytes + unit - 1) / unit * unit);
    if (memory == nullptr) throw std::bad_alloc{};
    r.chunks = ::new (memory) chunk{r.chunks};
    return static_cast<std::byte*>(memory) + head;
  }
  if (r.chunk_left < bytes) {
    void* memory = std::malloc(usual);
    if (memory == nullptr) throw std::bad_alloc{};
    r.chunks = ::new (memory) chunk{r.chunks};
    r.chunk_at = static_cast<std::byte*>(memory) + 16;
    r.chunk_left = usual - 16;
  }
  void* memory = r.chunk_at;
  r.chunk_at += bytes;
  r.chunk_left -= bytes;
  return memory;
}

/// Children that are calls see what those see that are not.
void scope::join_where_bound() noexcept {
  const detail::bound_scope here{detail::bound_scope::as_at{this}};
  run_children();
}

void scope::finish_join() {
  rare& r = get_rare();
  std::exception_ptr failure = await_fibers();
  r.told = false;
  r.free_chunks();
  if (failure != nullptr) std::rethrow_exception(std::move(failure));
}

void scope::end() noexcept {
  if (detail::exceptions_in_flight() > in_flight_) cancel();  // its block is left by an exception
  join_children();
  if (rare_.load_relaxed() == nullptr) return;
  rare& r = get_rare();
  if (const std::exception_ptr failure = await_fibers(); failure != nullptr && !r.told)
    detail::report_lost_exception(nullptr, failure, "a child of a scope that was not joined failed", false);
  r.free_chunks();
  if (r.outcomes != nullptr) detail::call_quietly([&r] { r.free_outcomes(); });
  r.forget_stop();
  r.~rare();
}

// ---- results ------------------------------------------------------------------------------------------------------

void detail::child_end::end(std::exception_ptr failure) noexcept {
  std::uint64_t waiter;
  {
    std::lock_guard guard{lock_};
    failure_ = std::move(failure);
    ended_.store(true, std::memory_order_release);
    waiter = std::exchange(waiter_, 0);
  }
  if (waiter != 0) wake(waiter_ref::from_bits(waiter));
}

bool detail::child_end::put(const wait& pause) noexcept {
  std::lock_guard guard{lock_};
  if (is_ready() || (waiter_ != 0 && waiter_ != pause.ref().bits())) return false;
  waiter_ = pause.ref().bits();
  return true;
}

bool detail::child_end::take_back(std::uint64_t waiter) noexcept {
  std::lock_guard guard{lock_};
  if (waiter_ != waiter) return false;
  waiter_ = 0;
  return true;
}

void detail::child_end::await(const std::source_location& where) {
  if (is_ready()) return;
  const wait_site site{"child of a scope", where};
  wait pause{wait::kind::cancellable, site};
  if (!put(pause)) {
    pause.withdraw();
    if (is_ready()) return;
    throw usage_error{"ramie: child_result::get: another fiber waits for this child already"};
  }
  wake_reason why;
  try {
    why = pause.suspend();
  } catch (...) {
    if (take_back(pause.ref().bits())) throw;
    return;
  }
  if (why == wake_reason::cancelled && take_back(pause.ref().bits())) begin_again([&] { await(where); });
}

}  // namespace ramie
