// Children whose results are taken in the order in which they come: tokio's JoinSet, Python's as_completed, Java's
// CompletionService.
//
//   ramie::join_set<page> pages;
//   for (const std::string& url : urls) pages.spawn([&url] { return fetch(url); });
//   while (auto next = pages.next()) show(*next);
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/base/error.hpp>
#include <ramie/fiber/cancellation.hpp>
#include <ramie/fiber/options.hpp>
#include <ramie/fiber/scope.hpp>
#include <ramie/fiber/spawn.hpp>
#include <ramie/machine/spin_lock.hpp>
#include <ramie/sync/event.hpp>
#include <ramie/task/ready_point.hpp>

#include <concepts>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>

namespace ramie {

namespace detail {
struct waitable_access;  // channel/on_ready.hpp
}

/// Children with results of the type R, or void. Each is a child of a scope that is where the set is (scope.hpp): it
/// has the deadlines, shields and identity of the set's owner. A child that fails ends neither the others nor the
/// owner, who gets the failure by `next`. `spawn` and `cancel` may be called by any fiber as long as the set is alive,
/// `next` and `on_ready` by one at a time.
template <class R>
class join_set {
  static_assert(std::is_void_v<R> || (std::is_object_v<R> && std::is_move_constructible_v<R>),
                "ramie::join_set: results must be movable objects, or void");
  using value = std::conditional_t<std::is_void_v<R>, std::true_type, R>;

 public:
  join_set() = default;
  join_set(const join_set&) = delete;
  join_set& operator=(const join_set&) = delete;
  static void* operator new(std::size_t) = delete;  // as a scope
  /// Cancels the children that still run, and waits for them. Results that were not taken are dropped, and failures
  /// with them. Suspends.
  ~join_set() {
    if (!empty()) cancel();
  }

  /// Adds a child that runs f(args...), copied or moved as by std::thread. As scope::spawn: does not suspend, and on a
  /// plain thread f runs at once. Throws std::bad_alloc; `cancelled` while the runtime shuts down. After `cancel`, f is
  /// dropped.
  template <class F, class... Args>
    requires std::is_invocable_r_v<R, std::decay_t<F>, std::decay_t<Args>...>
  void spawn(F&& f, Args&&... args) {
    if constexpr (sizeof...(Args) == 0) children_.spawn(child_of(std::forward<F>(f)));
    else children_.spawn(child_of(detail::bind_call(std::forward<F>(f), std::forward<Args>(args)...)));
  }
  /// As above with a name and other options. Throws invalid_argument.
  template <class F>
    requires std::is_invocable_r_v<R, std::decay_t<F>&>
  void spawn(const fiber_options& options, F&& f) {
    children_.spawn(options, child_of(std::forward<F>(f)));
  }

  /// The result of a child that has ended, each once, in the order of their ends: std::optional<R>, or, if R is void,
  /// true. Waits for the next one; nullopt, or false, if none is left. A child's failure is thrown, and the other
  /// results come by the calls after that. Children that `cancel` has stopped give no result; one that was stopped
  /// otherwise gives child_cancelled. Suspends. Throws `cancelled`, having taken nothing.
  [[nodiscard]] auto next(std::source_location where = std::source_location::current()) {
    using result = std::conditional_t<std::is_void_v<R>, bool, std::optional<R>>;
    while (const std::unique_ptr<outcome> ended = take(where)) {
      if (ended->failure != nullptr) detail::rethrow_to_joiner(ended->failure);
      if (!ended->got) continue;
      if constexpr (std::is_void_v<R>) return true;
      else return result{std::move(*ended->got)};
    }
    return result{};
  }

  /// How many children have a result to come, or one that was not taken. May be outdated at once, if others add some.
  [[nodiscard]] std::size_t size() const noexcept { return added_.load(std::memory_order_relaxed) - taken_; }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }

  /// Stops the children: those not started are dropped, waits of the others throw `cancelled`. Results that are there
  /// can still be taken; `next` may then wait for the ends of others, even if `on_ready` was. Does not suspend.
  void cancel() noexcept {
    cancelled_.store(true, std::memory_order_relaxed);
    children_.cancel();
  }

 private:
  friend detail::waitable_access;

  struct outcome {
    outcome* newer = nullptr;
    std::exception_ptr failure;
    std::optional<value> got;  // neither: it was cancelled
  };

  /// The function of a child. If it is destroyed without having been called, the child was dropped.
  template <class F>
  class child {
   public:
    child(join_set& to, F f) : to_{&to}, ended_{new outcome}, call_(std::move(f)) {
      to.added_.fetch_add(1, std::memory_order_relaxed);
    }
    child(child&&) noexcept(std::is_nothrow_move_constructible_v<F>) = default;
    ~child() {
      if (ended_ != nullptr) to_->end(std::move(ended_));
    }
    void operator()() noexcept {
      try {
        if constexpr (std::is_void_v<R>) {
          call_();
          ended_->got.emplace();
        } else {
          ended_->got.emplace(call_());
        }
      } catch (const cancelled&) {
        if (!to_->cancelled_.load(std::memory_order_relaxed)) ended_->failure = std::current_exception();
      } catch (...) {
        ended_->failure = std::current_exception();
      }
      to_->end(std::move(ended_));
    }

   private:
    join_set* to_;
    std::unique_ptr<outcome> ended_;
    F call_;
  };
  template <class F>
  child<std::decay_t<F>> child_of(F&& f) {
    return {*this, std::forward<F>(f)};
  }

  void end(std::unique_ptr<outcome> ended) noexcept {
    const std::lock_guard guard{lock_};
    outcome* const o = ended.release();
    (newest_ == nullptr ? ended_.oldest : newest_->newer) = o;
    newest_ = o;
    some_.set();
  }

  /// Null if no child is left.
  std::unique_ptr<outcome> take(const std::source_location& where) {
    for (detail::ready_point();; some_.wait(where)) {
      const std::lock_guard guard{lock_};
      if (ended_.oldest == nullptr && !empty()) continue;
      std::unique_ptr<outcome> oldest{ended_.oldest};
      if (oldest == nullptr) return oldest;
      ++taken_;
      ended_.oldest = oldest->newer;
      if (ended_.oldest == nullptr) {
        newest_ = nullptr;
        some_.reset();
      }
      return oldest;
    }
  }

  struct rest {
    outcome* oldest = nullptr;
    ~rest() {
      if (oldest == nullptr) return;
      detail::call_quietly([this] {
        while (oldest != nullptr) delete std::exchange(oldest, oldest->newer);
      });
    }
  };

  detail::atomic<bool> cancelled_{false};
  detail::atomic<std::size_t> added_{0};
  std::size_t taken_ = 0;  // by `next`
  detail::spin_lock lock_;
  rest ended_;                 // not taken; inside lock_
  outcome* newest_ = nullptr;  // inside lock_
  event some_;                 // set while there are any in `ended_`; set and reset inside lock_
  scope children_;             // gone before the others
};

}  // namespace ramie
