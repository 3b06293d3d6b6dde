// Fork and join: functions that may run at the same time, at the price of little more than calls.
//
// The other functions' records are on the caller's stack and are offered to idle workers while the first one runs as a
// plain call; nearly always they are still there then and run as plain, inlined calls, too (queue/fork_deque.hpp has
// the protocol). Lazy task creation: E. Mohr, D. Kranz, R. Halstead, 1991; work first: Cilk-5, 1998.
#pragma once

#include <ramie/fiber/cancellation.hpp>
#include <ramie/queue/fork_deque.hpp>
#include <ramie/task/current.hpp>

#include <concepts>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

namespace ramie {

namespace detail {

template <class F>
using fork_result = std::conditional_t<std::is_void_v<std::invoke_result_t<F&>>, std::monostate,
                                       std::decay_t<std::invoke_result_t<F&>>>;

template <class F>
RAMIE_ALWAYS_INLINE fork_result<F> call_for_value(F& f) {
  if constexpr (std::is_void_v<std::invoke_result_t<F&>>) {
    f();
    return {};
  } else {
    return f();
  }
}

/// A second failure, while one is being handled: rethrows it if that one is `cancelled` and it is not, for an error
/// outranks a cancellation. Reports it otherwise.
void outrank_or_report(std::exception_ptr failure);

/// Closures this small and simple are copied into the record, which saves the thief and the owner a pointer.
template <class F>
inline constexpr bool fork_copies = std::is_trivially_copyable_v<F> && sizeof(F) <= 32;

template <class F>
class fork_job : public fork_frame {
 public:
  using result = fork_result<F>;

  RAMIE_ALWAYS_INLINE explicit fork_job(F& f) noexcept : closure_{f} {}
  fork_job(const fork_job&) = delete;
  fork_job& operator=(const fork_job&) = delete;
  RAMIE_ALWAYS_INLINE ~fork_job() {}

  /// Offers the job. The caller keeps the slot until it joins, best in a register.
  RAMIE_ALWAYS_INLINE fork_slot* push(fork_deque* d) noexcept {
    return d != nullptr ? fork_push(*d, *this, &run) : fork_nowhere(*this);
  }

  /// Joins: runs the function here, or waits for the worker that does.
  RAMIE_ALWAYS_INLINE result join(fork_slot* slot) {
    if (fork_take_back(*this, slot)) [[likely]]
      return call_for_value(closure_);
    return await();
  }

  /// The first function threw: drops the job if it has not started, otherwise waits for it. Throws its exception if
  /// that outranks the first one's, which is being handled.
  RAMIE_COLD void abandon(fork_slot* slot) {
    if (fork_take_back(*this, slot)) return;
    wait_for_thief(*this);
    if (failed_) {
      std::exception_ptr failure = std::move(outcome_.error);
      std::destroy_at(&outcome_.error);
      outrank_or_report(std::move(failure));
    } else if constexpr (!std::is_trivially_destructible_v<result>) {
      call_quietly([this] { std::destroy_at(&outcome_.value); });
    }
  }

 private:
  union outcome {
    outcome() noexcept {}
    ~outcome() {}
    result value;
    std::exception_ptr error;
  };

  static void run(fork_frame& f) noexcept {
    auto& me = static_cast<fork_job&>(f);
    std::exception_ptr failure;
    try {
      ::new (static_cast<void*>(std::addressof(me.outcome_.value))) result(call_for_value(me.closure_));
    } catch (...) {
      failure = std::current_exception();
    }
    me.failed_ = failure != nullptr;
    if (me.failed_) std::construct_at(&me.outcome_.error, std::move(failure));
  }

  RAMIE_NOINLINE result await() {
    wait_for_thief(*this);
    if (failed_) {
      std::exception_ptr failure = std::move(outcome_.error);
      std::destroy_at(&outcome_.error);
      std::rethrow_exception(std::move(failure));
    }
    struct dropping {
      result& value;
      ~dropping() { std::destroy_at(std::addressof(value)); }
    } after_move{outcome_.value};
    return std::move(outcome_.value);
  }

  std::conditional_t<fork_copies<F>, F, F&> closure_;
  bool failed_;  // written by the worker that runs it in the owner's place
  outcome outcome_;
};

/// Runs `f`, and drops `job` if it throws.
template <class F, class Job>
RAMIE_ALWAYS_INLINE auto call_guarding(F& f, Job& job, fork_slot* slot) {
  if constexpr (noexcept(f())) {
    return call_for_value(f);
  } else {
    try {
      return call_for_value(f);
    } catch (...) {
      job.abandon(slot);
      throw;
    }
  }
}

template <class F>
RAMIE_ALWAYS_INLINE std::tuple<fork_result<F>> fork_all(fork_deque*, F& f) {
  return {call_for_value(f)};
}

template <class F, class G, class... Rest>
RAMIE_ALWAYS_INLINE std::tuple<fork_result<F>, fork_result<G>, fork_result<Rest>...> fork_all(fork_deque* d, F& f, G& g,
                                                                                              Rest&... rest) {
  fork_job<G> job{g};
  fork_slot* slot = job.push(d);
  if constexpr (sizeof...(Rest) == 0) {
    fork_result<F> first = call_guarding(f, job, slot);
    return {std::move(first), job.join(slot)};
  } else {
    auto others = [&]() RAMIE_LAMBDA_INLINE { return fork_all(d, f, rest...); };
    auto done = call_guarding(others, job, slot);
    auto second = job.join(slot);
    return std::apply(
        [&](auto&& first, auto&&... last) RAMIE_LAMBDA_INLINE {
          return std::tuple<fork_result<F>, fork_result<G>, fork_result<Rest>...>{
              std::forward<decltype(first)>(first), std::move(second), std::forward<decltype(last)>(last)...};
        },
        std::move(done));
  }
}

}  // namespace detail

/// Calls all functions, at the same time if idle workers take them, and returns their results as a tuple; `void` gives
/// std::monostate, references decay. All have ended when it returns or throws. If one throws, functions not yet started
/// are dropped, and the exception is rethrown; of several exceptions one is rethrown, `cancelled` only if there is no
/// other, and the others are reported on standard error. Each function may suspend. They count as the calling fiber:
/// same id, fiber_local values and deadlines. May suspend. The wait itself is not cancelled: a stop request reaches the
/// functions, and this returns when they have ended. On a plain thread the functions run one after the other.
template <class F, class G, class... Rest>
  requires(std::invocable<F&> && std::invocable<G&> && (std::invocable<Rest&> && ...))
RAMIE_ALWAYS_INLINE auto fork_join(F&& f, G&& g, Rest&&... rest) {
  return detail::fork_all(detail::current_forks(), f, g, rest...);
}

}  // namespace ramie
