#include <ramie/fiber/scope.hpp>

#include <ramie/base/atomic.hpp>
#include <ramie/base/error.hpp>
#include <ramie/sched/backoff.hpp>
#include <ramie/sched/region.hpp>
#include <ramie/sched/wait.hpp>
#include <ramie/sched/worker.hpp>
#include <ramie/stack/pool.hpp>

#include <cstdlib>
#include <mutex>
#include <new>

namespace ramie {

void detail::report_second_failure(const std::exception_ptr& failure) noexcept {
  report_lost_exception("", failure, "failed as well, in a fork whose first failure is on its way", false);
}

/// Made in the scope's own memory, by whoever needs it first: the owner, or a child that fails elsewhere.
struct scope::rare {
  struct chunk {
    chunk* older;
  };
  detail::spin_lock lock;
  detail::atomic<bool> failed{false};
  std::size_t fibers = 0;            // inside lock
  std::uint64_t waiter = 0;          // of await_fibers; inside lock
  std::exception_ptr first_failure;  // inside lock
  chunk* chunks = nullptr;           // memory for children that do not fit inline; owner only
  std::byte* chunk_at = nullptr;
  std::size_t chunk_left = 0;
  detail::task* owner = nullptr;      // whose stack the scope is on; known by the time a fiber of it runs
  fiber_of_scope* running = nullptr;  // fibers that have begun; inside lock
  detail::stopped_scope stopped;      // once `failed`

  void forget_stopped() noexcept {
    if (stopped.place == nullptr) return;
    detail::remove_stopped(stopped);
    stopped.place = nullptr;
  }
  void free_chunks() noexcept {
    while (chunk* c = chunks) {
      chunks = c->older;
      std::free(c);
    }
    chunk_left = 0;
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

void scope::fail(std::exception_ptr failure, bool stop_others) noexcept {
  rare& r = get_rare();
  {
    std::lock_guard guard{r.lock};
    if (r.first_failure == nullptr) {
      r.first_failure = std::move(failure);
      r.failed.store(true, std::memory_order_relaxed);
      if (!stop_others) return;
      if (r.owner == nullptr) r.owner = detail::owner_of_place(this);
      // Fibers of the scope cannot end while the lock is held. They have no stop callbacks.
      for (fiber_of_scope* f = r.running; f != nullptr; f = f->next) detail::request_stop(*f->running);
      r.stopped = {reinterpret_cast<const char*>(this), sizeof(scope), r.owner,
                   [](const void* place) noexcept {
                     return static_cast<const scope*>(place)->used_.load_relaxed() >= joining_mark;
                   },
                   nullptr};
      detail::add_stopped(r.stopped);
      return;
    }
  }
  detail::report_lost_exception("", failure, "child of a scope failed as well", false);
}

void scope::count_fiber() noexcept {
  rare& r = get_rare();
  detail::task* owner = detail::owner_of_place(this);
  std::lock_guard guard{r.lock};
  if (r.owner == nullptr) r.owner = owner;
  ++r.fibers;
}

void scope::fiber_began(fiber_of_scope& f) noexcept {
  rare& r = get_rare();
  std::lock_guard guard{r.lock};
  f.running = detail::current_worker()->current();
  f.next = r.running;
  if (f.next != nullptr) f.next->previous = &f;
  r.running = &f;
}

void scope::fiber_ended(fiber_of_scope& f) noexcept {
  rare& r = get_rare();
  std::uint64_t waiter = 0;
  {
    // The last touch of the scope is the unlock; await_fibers passes only after it has had the lock itself.
    std::lock_guard guard{r.lock};
    if (f.running != nullptr) {
      (f.previous == nullptr ? r.running : f.previous->next) = f.next;
      if (f.next != nullptr) f.next->previous = f.previous;
    }
    if (--r.fibers == 0) waiter = std::exchange(r.waiter, 0);
  }
  if (waiter != 0) detail::wake(detail::waiter_ref::from_bits(waiter));
}

void scope::not_begun() noexcept { fail(std::make_exception_ptr(cancelled{})); }

void scope::await_fibers() noexcept {
  rare& r = get_rare();
  for (;;) {
    static constexpr detail::wait_site site{"scope", {}};
    detail::wait pause{detail::wait::kind::uninterruptible, site};
    {
      std::lock_guard guard{r.lock};
      if (r.fibers == 0) {
        pause.withdraw();
        return;
      }
      r.waiter = pause.ref().bits();
    }
    pause.suspend();
  }
}

void scope::await_child(child& c) noexcept {
  detail::wait_for_thief(c);
  if (newest_ != nullptr) return;
  // The fiber may have suspended, and be elsewhere. If it is the owner who is here, and on an empty deque, what is
  // pushed next stands alone: no enclosing fork will take its slot away.
  detail::fork_deque* d = detail::current_forks();
  if (d == nullptr || d->bottom.load_relaxed() != d->base) return;
  const auto* here = reinterpret_cast<const char*>(this);
  if (here >= detail::lowest_usable(*d->running) && here < d->running->top) adopt(*d);
}

void* scope::take_chunk(std::size_t bytes, std::size_t alignment) {
  using chunk = rare::chunk;
  constexpr std::size_t usual = 1008;  // with malloc's head just 1 KiB, which glibc keeps at hand per thread
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

void scope::finish_join() {
  rare& r = get_rare();
  await_fibers();
  r.free_chunks();
  r.forget_stopped();
  std::exception_ptr failure = std::exchange(r.first_failure, nullptr);
  r.failed.store(false, std::memory_order_relaxed);
  if (failure != nullptr) std::rethrow_exception(std::move(failure));
}

void scope::end() noexcept {
  rare& r = get_rare();
  const bool unwinding = std::uncaught_exceptions() != 0;
  if ((newest_ != nullptr || unwinding) && !r.failed.load(std::memory_order_relaxed))
    fail(std::make_exception_ptr(cancelled{}), unwinding);  // drops what has not begun
  join_children();
  await_fibers();
  r.forget_stopped();
  if (r.first_failure != nullptr)
    detail::report_lost_exception("", r.first_failure, "child of a scope that was not joined failed", false);
  r.free_chunks();
  r.~rare();
}

}  // namespace ramie
