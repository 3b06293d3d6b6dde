// An executor on ramie's workers, with the I/O of Boost.Asio behind it.
#pragma once

#include <ramie/asio/handlers.hpp>
#include <ramie/ramie.hpp>

#include <boost/asio/execution.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

namespace ramie::asio {

class context;

/// Runs each function as a fiber of a runtime: it may wait. Meets Asio's requirements of executors (blocking.never).
/// What a function throws ends the process, as from any detached fiber.
class executor {
 public:
  template <class F>
  void execute(F f) const;

  [[nodiscard]] boost::asio::io_context& query(boost::asio::execution::context_t) const noexcept;
  static constexpr boost::asio::execution::blocking_t query(boost::asio::execution::blocking_t) noexcept {
    return boost::asio::execution::blocking.never;
  }
  [[nodiscard]] executor require(boost::asio::execution::blocking_t::never_t) const noexcept { return *this; }
  friend bool operator==(const executor&, const executor&) noexcept = default;

 private:
  friend class context;
  explicit executor(context& of) noexcept : of_{&of} {}
  context* of_;
};

/// An io_context of Asio, which a thread of its own runs, for objects whose handlers are fibers of `rt`. Each operation
/// that waits costs two changes of threads more than one of ramie::net. Destroy it after the objects that use it (those
/// that its handlers own end with them), before the runtime ends, and not in one of its handlers.
class context {
 public:
  explicit context(runtime& rt);
  context(const context&) = delete;
  context& operator=(const context&) = delete;
  /// Asks the handlers that run to stop, and waits for them; those that were to come are destroyed uncalled. Then
  /// operations under way are given up: fibers that wait for them get asio::error::operation_aborted. Suspends a fiber,
  /// and blocks until the thread has ended.
  ~context();

  /// For objects whose handlers are to be fibers.
  [[nodiscard]] executor get_executor() noexcept { return executor{*this}; }
  /// For objects whose handlers are called by the context's thread: they must not wait.
  [[nodiscard]] boost::asio::io_context& io() noexcept { return *io_; }
  [[nodiscard]] runtime& machine() const noexcept { return *machine_; }

  /// Internal: calls f() on the thread of the context that `c` belongs to. False if it is none.
  static bool call_in(boost::asio::execution_context& c, std::function<void()> f);
  /// Internal: calls f() in a fiber that the context's end waits for, or destroys f if the end has begun.
  template <class F>
  void run_handler(F f);

 private:
  runtime* machine_;
  std::shared_ptr<handler_set> handlers_ = std::make_shared<handler_set>();
  std::unique_ptr<boost::asio::io_context> io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::thread thread_;
};

template <class F>
void executor::execute(F f) const {
  of_->run_handler(std::move(f));
}
template <class F>
void context::run_handler(F f) {
  const std::shared_ptr<handler_set> all = handlers_;  // `this` may be gone when the handler has ended
  const std::optional<handler_set::place> at = all->enter();
  if (!at) return;
  join_handle<void> fiber;
  try {
    fiber = machine_->spawn([inside = inside_handlers{all, *at}, f = std::move(f)]() mutable {
      const inside_handlers until_the_end = std::move(inside);  // outlives what f has
      F own = std::move(f);
      std::move(own)();
    });
  } catch (...) {
    all->settle(*at, {});
    throw;
  }
  all->settle(*at, std::move(fiber));
}
inline boost::asio::io_context& executor::query(boost::asio::execution::context_t) const noexcept { return of_->io(); }

}  // namespace ramie::asio
