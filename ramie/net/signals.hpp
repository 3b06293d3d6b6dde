// Waiting for signals of the system.
#pragma once

#include <ramie/poll/descriptor.hpp>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <source_location>

namespace ramie::net {

/// While it exists, the given signals are delivered to `wait` instead of having their default effect. A signal without
/// a waiter is kept; several of a kind count as one. If several objects take the same signal, each gets it. It may be
/// made at any time, in any thread: a handler is installed, and the previous one is restored when the last object that
/// takes the signal ends. A signal that is blocked in the thread that makes the object, as supervisors do it to
/// programs that they start, is taken by a thread of its own, which is started then. (signalfd(2) would need the signal
/// blocked in every thread.)
class signals {
 public:
  /// Throws invalid_argument for what cannot be taken (SIGKILL, SIGSTOP, and SIGSEGV and the like, which are errors of
  /// the program), io_error, resource_error, and usage_error if there are 64 such objects.
  signals(std::initializer_list<int> which);
  signals(const signals&) = delete;
  signals& operator=(const signals&) = delete;
  ~signals();

  /// Waits for the next of them, and returns which. Suspends. Throws `cancelled`, io_error with io_errc::closed.
  int wait(std::source_location where = std::source_location::current());
  /// The next of them if one has come. Does not suspend. Throws io_error with io_errc::closed.
  [[nodiscard]] std::optional<int> try_wait();
  /// Ends all calls of `wait`. Does not suspend. Any thread.
  void close() noexcept { handle_.close(); }

 private:
  friend struct detail::socket_access;
  [[nodiscard]] std::optional<int> take() noexcept;

  std::uint32_t slot_;
  detail::handle handle_;
};

}  // namespace ramie::net
