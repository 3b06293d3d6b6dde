// Messages that nobody handles.
#pragma once

#include <ramie/actor/ref.hpp>
#include <ramie/base/type_info.hpp>
#include <ramie/runtime/runtime.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace ramie {

enum class dead_letter_cause {
  down,        // the actor had ended, or ended before it came to the message
  full,        // its bounded mailbox had no room, see overflow
  restarting,  // a request, and its supervisor restarts the actor
  lost,        // the actor is on another node, which was lost before the message was sent there
};

struct dead_letter {
  any_actor to;
  const type_info* type;  // of the message
  dead_letter_cause cause;
  detail::message* letter;  // internal

  /// What it says, if it can be printed: by to_string(m), or operator<<. Within the hook only. Throws what these throw.
  [[nodiscard]] std::string text() const;
};

/// How many there were since the process began.
struct dead_letter_counts {
  std::uint64_t down;
  std::uint64_t full;
  std::uint64_t restarting;
  std::uint64_t lost = 0;
};
[[nodiscard]] dead_letter_counts dead_letters() noexcept;

/// `hook` is called for each later dead letter, on any thread and possibly concurrently. It must not suspend, throw, or
/// send messages, nor call this. An empty one: none. Any thread; throws std::bad_alloc.
void on_dead_letter(std::function<void(const dead_letter&)> hook);

/// As long as it lives, a hook for the dead letters to actors of one runtime.
class dead_letter_watch {
 public:
  /// Any thread. Throws std::bad_alloc.
  dead_letter_watch(runtime& in, std::function<void(const dead_letter&)> hook);
  dead_letter_watch(const dead_letter_watch&) = delete;
  dead_letter_watch& operator=(const dead_letter_watch&) = delete;
  /// Waits for calls under way; not within one. The runtime may have ended.
  ~dead_letter_watch();

  struct state;

 private:
  std::shared_ptr<state> state_;
};

}  // namespace ramie
