// Why an actor ended, and how others hear of it.
#pragma once

#include <ramie/base/error.hpp>

#include <cstdint>
#include <exception>
#include <string>
#include <utility>

namespace ramie {

enum class exit_kind : std::uint8_t {
  alive,     // it has not ended
  stopped,   // stop() was called, or a fiber actor's function returned
  shutdown,  // its runtime or its supervisor shut it down
  failed,    // an exception left a handler: `exit_reason::exception`
  killed,    // kill() was called
  linked,    // an actor linked to it ended abnormally; `exit_reason::exception` is that one's
  gave_up,   // a supervisor: its children failed too often
};

/// What a monitor of an actor reports.
enum class monitoring : std::uint8_t {
  actor,        // only its final end, not restarts
  incarnation,  // the end of the one that runs now, also if a restart follows
};

/// The name of the kind, as spelled above.
[[nodiscard]] const char* to_string(exit_kind kind) noexcept;

/// Why an actor ended. A value; copying it copies an std::exception_ptr. Any thread.
class exit_reason {
 public:
  exit_reason() noexcept = default;
  explicit exit_reason(exit_kind kind, std::exception_ptr exception = {}) noexcept
      : kind_{kind}, exception_{std::move(exception)} {}

  [[nodiscard]] exit_kind kind() const noexcept { return kind_; }
  /// True for `stopped` and `shutdown`: nothing went wrong. Such ends do not spread over links.
  [[nodiscard]] bool normal() const noexcept { return kind_ == exit_kind::stopped || kind_ == exit_kind::shutdown; }
  /// What left the handler, or null.
  [[nodiscard]] const std::exception_ptr& exception() const noexcept { return exception_; }
  /// For logs: the kind, and the exception's text if there is one. Throws std::bad_alloc.
  [[nodiscard]] std::string what() const;

 private:
  exit_kind kind_ = exit_kind::alive;
  std::exception_ptr exception_;
};

/// Thrown by `ask` when the actor cannot answer: it has ended, ends before it answers, or is being restarted.
class actor_down : public error {
 public:
  explicit actor_down(exit_reason reason) : error{"ramie: actor down: " + reason.what()}, reason_{std::move(reason)} {}
  [[nodiscard]] const exit_reason& reason() const noexcept { return reason_; }

 private:
  exit_reason reason_;
};

/// Thrown by `ask` when a bounded mailbox refuses or drops the request.
class mailbox_full : public error {
 public:
  mailbox_full() : error{"ramie: ask: the actor's mailbox is full"} {}
};

/// Thrown by actor::stash when as many messages are put aside as actor_options::stash_capacity allows.
class stash_full : public error {
 public:
  stash_full() : error{"ramie: stash: full (actor_options::stash_capacity)"} {}
};

}  // namespace ramie
