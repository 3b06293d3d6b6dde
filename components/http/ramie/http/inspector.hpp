// A page that shows what a running program does.
#pragma once

#include <ramie/net.hpp>
#include <ramie/runtime.hpp>

#include <memory>
#include <string>

namespace ramie::http {

struct inspector_options {
  net::endpoint at{"127.0.0.1", 0};  // port 0: a free one
  /// Its holder may look. Empty: anybody who reaches `at`, which then has to be an address of the loopback. At
  /// least 16 characters: letters, digits, '-', '.', '_' and '~'.
  std::string token{};
};

/// Serves a page about a runtime, the JSON behind it, dumps, traces and metrics: docs/inspector.md. It has a thread and
/// a runtime of its own, so it answers while all workers of the other are busy or stuck, and is not counted there.
/// Looking costs at most 1 % of one processor, whatever the number of fibers and viewers: the more a look costs, the
/// rarer it is. Without a viewer the thread sleeps.
///
/// With RAMIE_INSPECT=[TOKEN@]ADDRESS:PORT in the environment a program that is linked with ramie::http has one for all
/// of its runtimes, from the first one's beginning to the last one's end.
class inspector {
 public:
  /// Serves from now on. Throws invalid_argument (an address other than the loopback's without a token; a token that is
  /// too short), io_error (it cannot listen there), and what the constructor of runtime throws. Any thread.
  explicit inspector(runtime& of, const inspector_options& options = {});
  inspector(const inspector&) = delete;
  inspector& operator=(const inspector&) = delete;
  /// Cuts off viewers. May come after the end of the runtime. Blocks, does not suspend.
  ~inspector();

  [[nodiscard]] net::endpoint at() const;
  /// Of the page; the token is behind its '#', which browsers do not send.
  [[nodiscard]] std::string url() const;

  struct core;  // internal
  /// Internal: of all runtimes.
  [[nodiscard]] static std::unique_ptr<inspector> of_all(const inspector_options& options);

 private:
  explicit inspector(std::unique_ptr<core> c) noexcept;
  std::unique_ptr<core> core_;
};

}  // namespace ramie::http
