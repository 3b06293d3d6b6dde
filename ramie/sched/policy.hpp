// User-defined scheduling policies.
#pragma once

#include <ramie/task/ready_item.hpp>

#include <string_view>

namespace ramie {

namespace detail {
class placer;
}

/// A fiber or an actor that may run now: new, woken, or after a yield. A handle of one word; its holder hands it
/// back to the runtime exactly once, by returning it from scheduling_policy::take.
class runnable {
 public:
  runnable() noexcept = default;
  explicit operator bool() const noexcept { return static_cast<bool>(item_); }
  /// As given in fiber_options or actor_options; 0 if it was not. `main` and what ramie itself runs have 0.
  [[nodiscard]] int priority() const noexcept;
  /// As given there, or "".
  [[nodiscard]] std::string_view name() const noexcept;
  /// The worker that ran it last, or -1 if it is new.
  [[nodiscard]] int last_worker() const noexcept;

 private:
  friend class runnable_queue;
  friend class detail::placer;
  explicit runnable(detail::ready_item item) noexcept : item_{item} {}
  detail::ready_item item_;
};

/// First in, first out, linked through the runnables themselves: needs no memory, so nothing can fail. Not for several
/// threads at once.
class runnable_queue {
 public:
  [[nodiscard]] bool empty() const noexcept { return !first_; }
  void push(runnable r) noexcept {
    r.item_.set_next({});
    if (!first_) first_ = r.item_;
    else last_.set_next(r.item_);
    last_ = r.item_;
  }
  /// Empty if there is none.
  [[nodiscard]] runnable pop() noexcept {
    const runnable r{first_};
    if (first_) first_ = first_.next();
    return r;
  }

 private:
  detail::ready_item first_, last_;
};

/// Give one to runtime_options::policy (of one runtime only), and it decides which fiber or actor each worker runs
/// next; the runtime still decides which worker sleeps and is woken, and which fork jobs (fork_join, scope) are stolen.
/// What is pinned to a worker does not come here either. All three functions are called by several threads at once,
/// must not throw, suspend or block for long (a short lock is fine), and must not call back into the runtime.
/// docs/scheduler.md and examples/priorities.cpp show one.
class scheduling_policy {
 public:
  virtual ~scheduling_policy() = default;
  /// `r` may run. `worker`: the number of the worker that says so, or -1 for any other thread.
  virtual void put(runnable r, int worker) noexcept = 0;
  /// What `worker` runs next, or an empty one if there is nothing for it. Numbers are below runtime::workers(), but for
  /// spare workers, which stand in for stalled ones and have higher numbers.
  virtual runnable take(int worker) noexcept = 0;
  /// Would `take` return something for this worker? A worker sleeps if not. After each `put` the runtime calls this for
  /// sleeping workers and wakes the first for which it returns true; a woken worker does the same. So work may be for
  /// one particular worker. Called by any thread.
  virtual bool has_work(int worker) const noexcept = 0;
};

}  // namespace ramie
