// What ramie throws. Every message names the argument, or the limit, that is at fault.
#pragma once

#include <stdexcept>
#include <string>

namespace ramie {

/// Base of all that ramie throws, except `cancelled`.
class error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An option or argument is out of its range. The message names it, its value and the range.
class invalid_argument : public error {
 public:
  using error::error;
};

/// The system refused memory, address space, a mapping or a thread.
/// The message names the limit (a sysctl, an rlimit) where one is known. `code()` is the errno.
class resource_error : public error {
 public:
  resource_error(const std::string& what, int code) : error{what}, code_{code} {}
  [[nodiscard]] int code() const noexcept { return code_; }

 private:
  int code_;
};

/// A call that the state of its object forbids: join twice, join from itself, runtime::spawn after shutdown.
class usage_error : public error {
 public:
  using error::error;
};

/// A timed operation ran out of time.
class timeout_error : public error {
 public:
  using error::error;
};

/// Thrown at a suspension point of a fiber that was asked to stop. Not an `error`: a handler
/// for failures should let it pass.
class cancelled : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "ramie: fiber cancelled"; }
};

/// Thrown to a caller that asks for the result of a fiber, or of a scope's child, that ended by `cancelled`: that one
/// was stopped, not the caller. A handler of `cancelled` catches it too, unless one of this kind stands before it.
class child_cancelled : public cancelled {
 public:
  [[nodiscard]] const char* what() const noexcept override {
    return "ramie: the fiber that was waited for was cancelled";
  }
};

}  // namespace ramie
