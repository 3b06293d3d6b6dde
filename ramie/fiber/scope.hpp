// A scope: any number of children, none of which outlives it. A child is first a fork job, as a function of fork_join:
// its record is in the scope, on the parent's stack, is offered to idle workers, and most often the parent runs it
// itself at `join`. For that the children must be the youngest jobs of the parent's deque. The scope knows that from
// two words: the deque's `session`, which no other fiber, and not this one after a suspension, ever sees again, and its
// youngest job: one of the scope's, or the one below before its first. Any other child (added after a wait, by another
// child, within a nested fork, or with options) is a fiber of its own, which the scope counts. It is a strand
// (region.hpp) of the scope's owner, exactly as a fork job that a thief took: so the two kinds of children differ in
// nothing but speed. What they inherit: docs/guides/structured.md.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/fiber/fork_join.hpp>
#include <ramie/fiber/options.hpp>
#include <ramie/fiber/scope_child.hpp>
#include <ramie/fiber/spawn.hpp>
#include <ramie/task/bound.hpp>
#include <ramie/task/region.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace ramie {

namespace detail {
class scope_body;
}  // namespace detail

/// Waits for its children before it ends. `spawn`, `join` and `cancel` may be called by the fiber (or thread) that owns
/// it; `spawn` and `cancel` also by its children, and by any fiber as long as the scope is alive.
///
/// A child is subject to the deadlines and shields around the scope, is stopped with its owner, and shares the owner's
/// identity: fiber_local variables, this_fiber::get_id, and the name and priority if it has none of its own.
///
/// A scope that is no local variable, but a member of an object on the heap, say, has no owner: its children that are
/// fibers are in no deadline and have an identity of their own. What would end other waits of the fiber or thread that
/// is in `join`, or destroys it, cancels the scope.
class scope {
 public:
  RAMIE_ALWAYS_INLINE scope() noexcept {
    if (detail::fork_deque* d = detail::current_forks(); d != nullptr) [[likely]] {
      adopt(*d);
      in_flight_ = d->exceptions->in_flight();
    } else {
      leave();
      in_flight_ = detail::exceptions_in_flight();
    }
  }
  scope(const scope&) = delete;
  scope& operator=(const scope&) = delete;
  static void* operator new(std::size_t) = delete;  // bound to a block, as its children are
  /// Waits for the children. Unlike `join` it cannot rethrow: a failure that no join rethrew is reported on standard
  /// error. If an exception leaves the scope's block, the children are cancelled first.
  RAMIE_ALWAYS_INLINE ~scope() {
    if (newest_ != below_ || rare_.load_relaxed() != nullptr) [[unlikely]]
      end();
  }

  /// Adds a child that runs f(). If it throws, the scope is cancelled, and `join` rethrows. Does not suspend. On a
  /// plain thread f runs at once. Throws std::bad_alloc, and what copying f throws; `cancelled` while the runtime shuts
  /// down. Once a child has failed, f is dropped until the next `join`; children that call this get `cancelled`, and an
  /// owner that has waited since the scope was made gets that failure.
  template <class F>
    requires(std::invocable<std::decay_t<F>&> && !detail::gives_result<std::decay_t<F>>)
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
      spawn_elsewhere(copy, nullptr);
    }
  }

  /// As above: f(args...), which are copied or moved, as by std::thread.
  template <class F, class First, class... Rest>
    requires std::invocable<std::decay_t<F>, std::decay_t<First>, std::decay_t<Rest>...>
  auto spawn(F&& f, First&& first, Rest&&... rest) {
    return spawn(detail::bind_call(std::forward<F>(f), std::forward<First>(first), std::forward<Rest>(rest)...));
  }

  /// As above with a name and other options. Throws invalid_argument.
  template <class F>
    requires(std::invocable<std::decay_t<F>&> && !detail::gives_result<std::decay_t<F>>)
  void spawn(const fiber_options& options, F&& f) {
    std::decay_t<F> copy(std::forward<F>(f));
    spawn_elsewhere(copy, &options);
  }

  /// As above for a function with a result: child_result<R>, valid as long as the scope. If the result is a reference,
  /// its object is copied.
  template <class F>
    requires detail::gives_result<std::decay_t<F>>
  auto spawn(F&& f) {
    auto& to = new_outcome<F>();
    spawn(detail::child_with_result<detail::child_value<F>, std::decay_t<F>>{to, std::decay_t<F>(std::forward<F>(f))});
    return child_result<detail::child_value<F>>{to};
  }
  template <class F>
    requires detail::gives_result<std::decay_t<F>>
  auto spawn(const fiber_options& options, F&& f) {
    auto& to = new_outcome<F>();
    spawn(options,
          detail::child_with_result<detail::child_value<F>, std::decay_t<F>>{to, std::decay_t<F>(std::forward<F>(f))});
    return child_result<detail::child_value<F>>{to};
  }

  /// Stops the children, without a failure: those not started are dropped, and waits of the others throw `cancelled`,
  /// which `join` then does not rethrow. Children added before the next `join` are dropped as well; a child that adds
  /// one gets `cancelled`. Does not suspend.
  void cancel() noexcept;
  /// True if `cancel` was called or a child failed since the last `join`.
  [[nodiscard]] bool is_cancelled() const noexcept { return rare_.load_relaxed() != nullptr && has_failed(); }

  /// Waits until all children have ended, running those not started elsewhere. Rethrows the first failure, `cancelled`
  /// only if nothing else failed; later ones were reported on standard error. May suspend. The wait itself is not
  /// cancelled: a stop request reaches the children, and `join` returns when they have ended. The scope may be used
  /// again afterwards.
  RAMIE_ALWAYS_INLINE void join() {
    join_children();
    used_.store_relaxed(0);
    if (rare_.load_relaxed() != nullptr) [[unlikely]]
      finish_join();
  }

 protected:
  /// For body_scope (in_scope.hpp): a stop of the scope ends the owner's own waits as well. Before there are children.
  void guard(detail::scope_body& body) noexcept;
  /// The body's failure, as that of a child that is not tolerated.
  void fail_by_body(std::exception_ptr failure) noexcept;

 private:
  struct child : detail::owned_frame {
    detail::fork_frame* older;
  };

  template <class Closure>
  struct child_of;  // as a fork job: scope_impl.hpp
  template <class F>
  struct fiber_child;  // as a fiber

  /// The part that most scopes never need; see scope.cpp.
  struct rare;
  static constexpr std::size_t rare_size = 192;

  template <class Closure>
  void run_child(Closure& closure) noexcept;
  template <class F>
  RAMIE_COLD void spawn_elsewhere(F& f, const fiber_options* options);

  RAMIE_ALWAYS_INLINE void adopt(detail::fork_deque& d) noexcept {
    session_.store_relaxed(d.session);
    newest_ = below_ = d.bottom.load_relaxed()[-1].load_relaxed();
  }

  /// In the scope's session: is the deque's youngest job the scope's newest child, or, if it has none, the job that was
  /// the youngest at first? Then its join comes later than that of what is pushed now.
  [[nodiscard]] RAMIE_ALWAYS_INLINE bool may_push(const detail::fork_deque& d) const noexcept {
    return d.bottom.load_relaxed()[-1].load_relaxed() == newest_;
  }

  RAMIE_ALWAYS_INLINE void leave() noexcept {
    session_.store_relaxed(0);
    newest_ = below_ = nullptr;
  }

  RAMIE_ALWAYS_INLINE void join_children() noexcept {
    used_.store_relaxed(joining_mark);  // children that a child adds meanwhile get other memory
    if (newest_ != below_ && detail::binds()) [[unlikely]]
      return join_where_bound();
    run_children();
  }
  RAMIE_ALWAYS_INLINE void run_children() noexcept {
    // Children are adjacent in the deque. Any jobs above them are of a scope that came later and is not joined yet, or
    // of a fork around this join.
    if (newest_ != below_ && !detail::fork_is_youngest(*newest_)) [[unlikely]]
      detail::fork_uncover(*newest_);
    while (newest_ != below_) {
      auto* const c = static_cast<child*>(newest_);
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
  auto& new_outcome() {
    auto* made = new detail::child_outcome<detail::child_value<F>>;
    keep_outcome(*made);
    return *made;
  }

  // scope.cpp
  rare& get_rare() noexcept;
  [[nodiscard]] bool has_failed() const noexcept;
  void fail(std::exception_ptr failure) noexcept;
  void record(rare& r, std::exception_ptr failure) noexcept;
  void throw_if_failed(rare& r);
  void look_for_owner(rare& r) noexcept;
  bool begin_to_stop(rare& r) noexcept;
  void stop(rare& r) noexcept;
  void start(detail::scope_child& c, const fiber_options* options);
  void fiber_began(detail::scope_child& c) noexcept;
  void fiber_ended(detail::scope_child& c) noexcept;
  void keep_outcome(detail::child_end& made) noexcept;
  static bool is_nobodys(rare& r) noexcept;
  bool await_as_owner(rare& r, detail::wait& pause) noexcept;
  std::exception_ptr await_fibers() noexcept;
  void* take_chunk(std::size_t bytes, std::size_t alignment);
  RAMIE_COLD void await_child(child& c) noexcept;
  RAMIE_COLD void finish_join();
  RAMIE_COLD void join_where_bound() noexcept;
  RAMIE_COLD void end() noexcept;

  detail::word<std::uint64_t> session_;  // children are pushed in it; children elsewhere compare it with their worker's
  detail::fork_frame* below_;            // the youngest job then, not counting children of the scope
  detail::word<rare*> rare_{nullptr};    // here, so that compilers do not merge the writes of its neighbours
  detail::fork_frame* newest_;           // child, or, without one, `below_`
  static constexpr std::size_t joining_mark = std::size_t{1} << 32;
  detail::word<std::size_t> used_{0};  // of inline_memory_; joining_mark: the owner runs children, or waits for them
  std::uint32_t in_flight_;            // exceptions, when it was made (task/region.hpp)
  alignas(16) std::byte rare_memory_[rare_size];
  alignas(16) std::byte inline_memory_[640];
};

}  // namespace ramie

#include <ramie/fiber/scope_impl.hpp>
