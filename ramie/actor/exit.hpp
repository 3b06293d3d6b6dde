// Why an actor ended, and how others hear of it.
#pragma once

#include <ramie/base/error.hpp>
#include <ramie/base/type_info.hpp>

#include <concepts>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace ramie {

enum class exit_kind : std::uint8_t {
  alive,      // it has not ended
  stopped,    // stop() was called, or a fiber actor's function returned
  shutdown,   // its runtime or its supervisor shut it down
  failed,     // an exception left a handler: `exit_reason::exception`
  killed,     // kill() was called
  linked,     // an actor linked to it ended abnormally; `exit_reason::exception` is that one's
  gave_up,    // a supervisor: its children failed too often
  custom,     // stop() or exit() with a reason of the program's own: `exit_reason::of`
  node_lost,  // it was on another node, of which nothing is known any more: see ramie::cluster
};

/// What a monitor of an actor reports.
enum class monitoring : std::uint8_t {
  actor,        // only its final end, not restarts
  incarnation,  // the end of the one that runs now, also if a restart follows
};

/// The name of the kind, as spelled above.
[[nodiscard]] const char* to_string(exit_kind kind) noexcept;

namespace detail {

/// What the reasons of the program's own are as exceptions.
template <class T>
class exit_value final : public std::exception {
 public:
  explicit exit_value(T v) : value{std::move(v)}, text_{text_of(value)} {}
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }
  T value;

 private:
  static std::string text_of(const T& v) {
    if constexpr (std::convertible_to<const T&, std::string_view>) return std::string{std::string_view{v}};
    else if constexpr (std::is_arithmetic_v<T>) return std::to_string(v);
    else return std::string{type_of<T>().name()};
  }
  std::string text_;
};

}  // namespace detail

/// Why an actor ended. A value; copying it copies an std::exception_ptr. Any thread.
class exit_reason {
 public:
  exit_reason() noexcept = default;
  explicit exit_reason(exit_kind kind, std::exception_ptr exception = {}) noexcept
      : kind_{kind}, exception_{std::move(exception)} {}

  /// One of the program's own: a string, a number, an enumerator, whatever can be copied. It is not normal, and spreads
  /// over links, whose other ends have it as well. Throws std::bad_alloc.
  template <class T>
  [[nodiscard]] static exit_reason of(T value) {
    return exit_reason{exit_kind::custom, std::make_exception_ptr(detail::exit_value<T>{std::move(value)})};
  }
  static exit_reason of(const char* text) { return of(std::string{text}); }
  /// What `of` was given, or null if it was not given a T. Valid as long as this reason or a copy.
  template <class T>
  [[nodiscard]] const T* as() const noexcept {
    if (exception_ == nullptr) return nullptr;
    try {
      std::rethrow_exception(exception_);
    } catch (const detail::exit_value<T>& given) {
      return &given.value;
    } catch (...) {
      return nullptr;
    }
  }

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
