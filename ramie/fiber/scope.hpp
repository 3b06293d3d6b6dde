// A scope: any number of children, none of which outlives it.
//
// A child is first a fork job, as in fork_join: its record lies in the scope, on the parent's stack, is offered to idle
// workers, and most often the parent runs it itself at `join`. That needs the children to be the youngest jobs of the
// parent's deque. The scope knows by two words: the deque's `session`, which no other fiber, and not this one after a
// suspension, ever sees again, and its youngest job: one of the scope's, or the one below before its first. Whoever
// spawns from elsewhere (a child on another worker, a nested fork) starts an ordinary fiber, which the scope counts.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/fiber/fork_join.hpp>
#include <ramie/fiber/spawn.hpp>

#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace ramie {

/// Children end before it does. `spawn` and `join` may be called by the fiber (or thread) that owns it; `spawn` also by
/// its children.
class scope {
 public:
  RAMIE_ALWAYS_INLINE scope() noexcept {
    if (detail::fork_deque* d = detail::current_forks(); d != nullptr) [[likely]]
      adopt(*d);
    else leave();
  }
  scope(const scope&) = delete;
  scope& operator=(const scope&) = delete;
  static void* operator new(std::size_t) = delete;  // lives and dies with a block, as its children do
  /// Joins if `join` was not called, dropping children not yet begun; when an exception passes, those that run are
  /// cancelled as well. A failure nobody saw is reported on standard error.
  RAMIE_ALWAYS_INLINE ~scope() {
    if (newest_ != nullptr || rare_.load_relaxed() != nullptr) [[unlikely]]
      end();
  }

  /// Adds a child that runs f(). If it throws, children not yet begun are dropped, waits of the others end by
  /// `cancelled`, and `join` rethrows. Does not suspend. On a plain thread f runs at once. Throws std::bad_alloc, and
  /// what copying f throws.
  template <class F>
    requires std::invocable<std::decay_t<F>&>
  RAMIE_ALWAYS_INLINE void spawn(F&& f) {
    using record = child_of<std::decay_t<F>>;
    detail::fork_deque* d = detail::current_forks();
    if (d != nullptr && d->session == session_.load_relaxed() && may_push(*d)) [[likely]] {
      auto* c = ::new (take_memory(sizeof(record), alignof(record))) record(std::in_place, std::forward<F>(f));
      c->owner = this;
      c->older = newest_;
      newest_ = c;
      detail::fork_push(*d, *c, &record::run);
    } else {
      // By a copy of its own: if f's address escaped, the compiler would first build it in memory on the other path
      // too.
      std::decay_t<F> copy(std::forward<F>(f));
      spawn_elsewhere(copy);
    }
  }

  /// Waits until all children have ended, running those that nobody has begun. Rethrows the first failure; later ones
  /// were reported on standard error. May suspend. The scope may be used again afterwards.
  RAMIE_ALWAYS_INLINE void join() {
    join_children();
    used_.store_relaxed(0);
    if (rare_.load_relaxed() != nullptr) [[unlikely]]
      finish_join();
  }

 private:
  struct child : detail::owned_frame {
    child* older;
  };

  template <class Closure>
  struct child_of : child {
    template <class F>
    RAMIE_ALWAYS_INLINE child_of(std::in_place_t, F&& f) : closure(std::forward<F>(f)) {}
    Closure closure;

    // The owner calls it as well as thieves do.
    static void run(detail::fork_frame& f) noexcept {
      auto& me = static_cast<child_of&>(f);
      if (me.of().rare_.load_relaxed() != nullptr) [[unlikely]]
        return me.run_if_wanted();
      me.run_closure();
    }
    // The owner is read again where it is needed, which leaves a register to the closure.
    [[nodiscard]] RAMIE_ALWAYS_INLINE scope& of() const noexcept { return *static_cast<scope*>(this->owner); }
    RAMIE_ALWAYS_INLINE void run_closure() noexcept {
      if constexpr (noexcept(closure())) {
        closure();
      } else {
        try {
          closure();
        } catch (...) {
          of().fail(std::current_exception());
        }
      }
      std::destroy_at(&closure);
    }
    RAMIE_COLD void run_if_wanted() noexcept {
      if (of().has_failed()) std::destroy_at(&closure);
      else run_closure();
    }
  };

  /// What most scopes never need; see scope.cpp.
  struct rare;
  static constexpr std::size_t rare_size = 160;

  template <class Closure>
  void run_child(Closure& closure) noexcept {
    if (rare_.load_relaxed() != nullptr && has_failed()) return;
    if constexpr (noexcept(closure())) {
      closure();
    } else {
      try {
        closure();
      } catch (...) {
        fail(std::current_exception());
      }
    }
  }

  RAMIE_ALWAYS_INLINE void adopt(detail::fork_deque& d) noexcept {
    session_.store_relaxed(d.session);
    below_ = d.bottom.load_relaxed()[-1].load_relaxed();
  }

  /// In the scope's session: is the youngest job of the deque the scope's newest child, or, if it has none, the one
  /// that was the youngest at first? Whose join comes later than that of what is pushed now.
  [[nodiscard]] RAMIE_ALWAYS_INLINE bool may_push(const detail::fork_deque& d) const noexcept {
    return d.bottom.load_relaxed()[-1].load_relaxed() == (newest_ == nullptr ? below_ : newest_);
  }

  RAMIE_ALWAYS_INLINE void leave() noexcept {
    session_.store_relaxed(0);
    below_ = nullptr;
  }

  RAMIE_ALWAYS_INLINE void join_children() noexcept {
    used_.store_relaxed(joining_mark);  // children that a child adds meanwhile get other memory
    // Children lie side by side in the deque. What lies above them, if anything, is of a scope that came later and is
    // not joined yet, or of a fork around this join.
    if (newest_ != nullptr && !detail::fork_is_youngest(*newest_)) [[unlikely]]
      detail::fork_uncover(*newest_);
    while (child* c = newest_) {
      newest_ = c->older;
      if (detail::fork_take_back_youngest(*c)) [[likely]]
        reinterpret_cast<detail::fork_frame::function>(c->state.load_relaxed())(*c);
      else await_child(*c);
    }
  }

  RAMIE_ALWAYS_INLINE void* take_memory(std::size_t bytes, std::size_t alignment) {
    bytes = (bytes + 15) & ~std::size_t{15};
    const std::size_t at = used_.load_relaxed();
    if (alignment <= 16 && at + bytes <= sizeof(inline_memory_)) [[likely]] {
      used_.store_relaxed(at + bytes);
      return inline_memory_ + at;
    }
    return take_chunk(bytes, alignment);
  }

  template <class F>
  RAMIE_COLD void spawn_elsewhere(F& f) {
    if (detail::current_forks() == nullptr) {
      run_child(f);
      return;
    }
    count_fiber();
    ramie::spawn([ending = fiber_of_scope{this}, closure = std::move(f)]() mutable noexcept {
      ending.begin();
      ending.owner->run_child(closure);  // destroyed before `ending`
    }).detach();
  }

  /// Counts a fiber out when its closure goes away: after its end, or because it could not be started, or was not for a
  /// shutdown.
  struct fiber_of_scope {
    scope* owner;
    detail::task* running = nullptr;  // from `begin` on: linked among the scope's running fibers
    fiber_of_scope* next = nullptr;
    fiber_of_scope* previous = nullptr;
    explicit fiber_of_scope(scope* s) noexcept : owner{s} {}
    fiber_of_scope(fiber_of_scope&& other) noexcept : owner{std::exchange(other.owner, nullptr)} {}
    ~fiber_of_scope() {
      if (owner == nullptr) return;
      if (running == nullptr) owner->not_begun();
      owner->fiber_ended(*this);
    }
    void begin() noexcept { owner->fiber_began(*this); }
  };

  // scope.cpp
  rare& get_rare() noexcept;
  [[nodiscard]] bool has_failed() const noexcept;
  void fail(std::exception_ptr failure, bool stop_others = true) noexcept;
  void count_fiber() noexcept;
  void fiber_began(fiber_of_scope& f) noexcept;
  void fiber_ended(fiber_of_scope& f) noexcept;
  void not_begun() noexcept;
  void await_fibers() noexcept;
  void* take_chunk(std::size_t bytes, std::size_t alignment);
  RAMIE_COLD void await_child(child& c) noexcept;
  RAMIE_COLD void finish_join();
  RAMIE_COLD void end() noexcept;

  detail::word<std::uint64_t> session_;  // children are pushed in it; those elsewhere compare it with their worker's
  detail::fork_frame* below_;            // what is the youngest job then, without children of the scope
  detail::word<rare*> rare_{nullptr};    // here, so that compilers do not write its neighbours as one
  child* newest_ = nullptr;
  static constexpr std::size_t joining_mark = std::size_t{1} << 32;
  detail::word<std::size_t> used_{0};  // of inline_memory_; joining_mark: the owner runs children, or waits for them
  alignas(16) std::byte rare_memory_[rare_size];
  alignas(16) std::byte inline_memory_[640];
};

}  // namespace ramie
