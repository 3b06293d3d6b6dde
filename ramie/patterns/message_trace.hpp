// A record of messages: sender, receiver and content, to find mistakes.
#pragma once

#include <ramie/actor/ref.hpp>
#include <ramie/base/type_info.hpp>
#include <ramie/runtime/runtime.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ramie {

struct traced_message {
  std::chrono::nanoseconds at;  // just before it was sent, since the trace began
  any_actor from;               // empty if it was sent by a fiber, a thread or a timer
  std::string sender;           // as text: "teller" (bank::teller), fiber "main", a thread, a timer
  any_actor to;
  std::string receiver;
  const type_info* type;
  std::string text;     // what it says, if it can be printed: by to_string(m), or operator<<
  tell_status outcome;  // ok, down, dropped, or full; with full and a mailbox that makes senders wait, more is to come
};

/// On one line: `12.034 ms  "teller" (teller) -> "alice" (account): deposit 100`
[[nodiscard]] std::string to_string(const traced_message& m);

struct message_filter {
  std::vector<any_actor> actors{};        // only what one of these sends or gets; empty: all
  std::vector<const type_info*> types{};  // only messages of these types, as type_of<M>() tells them; empty: all
};

/// As long as it lives, each message to a class or fiber actor of the runtime is shown when it has been sent, and those
/// of timers when their actor comes to them; not what ramie itself tells (`down`, stop, replies). While the runtime is
/// recorded (runtime::record), they are in its trace, too.
///
///     ramie::message_trace shown;                                              // all, on standard error
///     ramie::message_trace deposits{{.types = {&ramie::type_of<deposit>()}}};
///
/// Messages cost a microsecond and more while there is a trace; those of other runtimes a little. What is not traced
/// pays nothing.
class message_trace {
 public:
  /// Called by the sender after the message is sent, at any time concurrently: it must not suspend, throw, or send
  /// messages. What a message led to may be shown before it, by another worker; `at` tells which came first.
  using function = std::function<void(const traced_message&)>;

  /// Any thread. Takes the locks of all actors there are, one by one. Throws std::bad_alloc.
  explicit message_trace(runtime& in, message_filter only = {}, function each = print);
  /// In the caller's runtime. Throws usage_error on a plain thread.
  explicit message_trace(message_filter only = {}, function each = print);
  message_trace(const message_trace&) = delete;
  message_trace& operator=(const message_trace&) = delete;
  /// Waits for calls under way. Not within one, and not after the runtime has ended.
  ~message_trace();

  /// Writes it to standard error.
  static void print(const traced_message& m);

  struct state;

 private:
  message_trace(detail::scheduler& in, message_filter only, function each);
  std::shared_ptr<state> state_;
};

}  // namespace ramie
