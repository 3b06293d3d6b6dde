// A task with its closure, and later in the closure's place its result or its exception.
#pragma once

#include <ramie/fiber/options.hpp>
#include <ramie/task/clean_up.hpp>
#include <ramie/task/task.hpp>

#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>
#include <variant>

namespace ramie::detail {

class scheduler;

template <class R>
using value_of = std::conditional_t<std::is_void_v<R>, std::monostate, R>;

/// The place that closure, result and exception of a task use in turn: right behind it, whatever their types, because
/// the size of a task is a multiple of every alignment allowed there. So a handle finds the result without knowing the
/// closure's type.
inline void* place_of(task* t) noexcept { return reinterpret_cast<char*>(t) + sizeof(task); }
template <class T>
T& placed(task* t) noexcept {
  return *std::launder(static_cast<T*>(place_of(t)));
}

/// The fiber that runs here, or null on a plain thread. Children of forks count as the fiber that forked them.
[[nodiscard]] task* this_task() noexcept;

/// Throws usage_error if `t` is null or the caller itself.
void check_join(const task* t);
/// Puts the wait's reference into the task. False if the task is done. Throws usage_error if there is another waiter.
bool start_joining(task* t, wait& pause);
/// Takes it out. False: the task ended at this moment.
bool stop_joining(task* t, const wait& pause) noexcept;

/// Waits until the task is done. Throws `cancelled` if `k` allows. Inlined: see suspend.hpp.
RAMIE_ALWAYS_INLINE void await_end(task* t, wait::kind k, const std::source_location& where) {
  if (t->completion.load(std::memory_order_acquire) == task::done) return;
  const wait_site site{"join", where};
  wait pause{k, site};
  if (!start_joining(t, pause)) return;
  wake_reason why;
  try {
    why = pause.suspend();
  } catch (...) {
    if (stop_joining(t, pause)) throw;
    return;
  }
  if (why == wake_reason::cancelled && stop_joining(t, pause)) begin_again([&] { await_end(t, k, where); });
}
/// The same with a deadline: false if that came first.
bool await_end_until(task* t, steady::time_point deadline, const std::source_location& where);
void require_joinable(const task* t, const char* call);
/// Rethrows a fiber's exception, or child_cancelled in place of `cancelled`.
[[noreturn]] void rethrow_to_joiner(std::exception_ptr failure);
void detach_task(task* t);
/// For handles that are destroyed: stop, wait, drop.
void end_task(task* t) noexcept;
/// Passes the task to the calling worker's runtime. Throws usage_error on a plain thread, `cancelled` while the runtime
/// shuts down; then it is not taken.
void submit_here(task* t);
/// The same for tasks that were given options.
void submit_here_with_options(task* t);
void submit_with_options(task* t, scheduler& to);
/// Reports a failure that no join will see; ends the process if the fiber was detached.
void report_unseen_failure(const task& t, const std::exception_ptr& failure) noexcept;
/// Destroys a task that was made but could not be submitted.
void discard_task(task* t) noexcept;
/// Checks the options and keeps them with the task. Throws invalid_argument, std::bad_alloc.
void apply_options(task& t, const fiber_options& options);

template <class R, class Fn>
class fiber_task {
 public:
  static_assert(alignof(Fn) <= task_alignment_most && alignof(value_of<R>) <= task_alignment_most,
                "ramie: closures and results of fibers may be aligned to 64 bytes at most");

  /// A task that will call `f`, not yet submitted. Throws std::bad_alloc and what copying the closure throws.
  template <class F>
  static task* make(F&& f) {
    return make_by(type, [&](void* place, task*) { std::construct_at(static_cast<Fn*>(place), std::forward<F>(f)); });
  }

  /// The same for an Fn with a task_type of its own, constructed from the task before it, and from `args`.
  template <class... Args>
  static task* make_in_place(Args&... args) {
    return make_by(Fn::type, [&](void* place, task* t) { std::construct_at(static_cast<Fn*>(place), t, args...); });
  }

 private:
  template <class Construct>
  RAMIE_ALWAYS_INLINE static task* make_by(const task_type& kind, Construct construct) {
    void* memory =
        list != task_cache::no_list ? allocate_task(list) : ::operator new(size, std::align_val_t{task_alignment_most});
    task* t = std::construct_at(static_cast<task*>(memory));
    t->type = &kind;
    t->list = list;
    try {
      construct(place_of(t), t);
    } catch (...) {
      destroy_task(t);
      throw;
    }
    return t;
  }

  static constexpr std::size_t larger(std::size_t a, std::size_t b) noexcept { return a > b ? a : b; }
  static constexpr std::size_t size =
      sizeof(task) + larger(sizeof(Fn), larger(sizeof(value_of<R>), sizeof(std::exception_ptr)));
  static constexpr std::uint8_t list =
      larger(alignof(Fn), alignof(value_of<R>)) <= task_alignment ? task_cache::list_of(size) : task_cache::no_list;

  static void fail(task& t, std::exception_ptr why) noexcept {
    std::construct_at(static_cast<std::exception_ptr*>(place_of(&t)), std::move(why));
    t.flags.fetch_or(task::failed_flag, std::memory_order_relaxed);
  }

  /// Its destructor may wait, and nothing could catch what such a wait threw.
  RAMIE_ALWAYS_INLINE static void destroy_closure(task& t) noexcept {
    if constexpr (!std::is_trivially_destructible_v<Fn>) t.flags.fetch_or(task::ending_flag, std::memory_order_relaxed);
    std::destroy_at(&placed<Fn>(&t));
  }

  static void run(task& t) noexcept {
    std::exception_ptr failure;
    bool closure_alive = true;
    try {
      if constexpr (std::is_void_v<R>) {
        std::move(placed<Fn>(&t))();
      } else {
        R result = std::move(placed<Fn>(&t))();
        closure_alive = false;
        destroy_closure(t);
        std::construct_at(static_cast<R*>(place_of(&t)), std::move(result));
        return;
      }
    } catch (...) {
      failure = std::current_exception();
    }
    // Outside the handler: the closure's destructor may suspend.
    if (closure_alive) destroy_closure(t);
    if (failure) fail(t, std::move(failure));
  }

  static void skip(task& t, std::exception_ptr why) noexcept {
    std::destroy_at(&placed<Fn>(&t));
    fail(t, std::move(why));
  }

  /// For a task that was detached, or whose handle was dropped: its result will not be read.
  static void drop(task& t) noexcept {
    if ((t.flags.load(std::memory_order_relaxed) & task::failed_flag) == 0) {
      if constexpr (!std::is_void_v<R> && !std::is_trivially_destructible_v<R>) {
        t.flags.fetch_or(task::ending_flag, std::memory_order_relaxed);  // as above, if `t` itself drops it
        std::destroy_at(&placed<R>(&t));
      }
      return;
    }
    report_unseen_failure(t, placed<std::exception_ptr>(&t));
    std::destroy_at(&placed<std::exception_ptr>(&t));
  }

  static constexpr task_type type{&run, &skip, &drop};
};

/// Result or exception of a task that is done; ends its life.
template <class R>
R take_result(task* t) {
  struct ending {
    task* t;
    ~ending() { destroy_task(t); }
  } at_end{t};
  if ((t->flags.load(std::memory_order_relaxed) & task::failed_flag) != 0) [[unlikely]] {
    std::exception_ptr failure = std::move(placed<std::exception_ptr>(t));
    std::destroy_at(&placed<std::exception_ptr>(t));
    rethrow_to_joiner(std::move(failure));
  }
  if constexpr (!std::is_void_v<R>) {
    struct dropping {
      task* t;
      ~dropping() { std::destroy_at(&placed<R>(t)); }
    } after_move{t};
    return std::move(placed<R>(t));
  }
}

}  // namespace ramie::detail
