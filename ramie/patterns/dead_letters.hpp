// Messages that nobody handles.
#pragma once

#include <ramie/actor/ref.hpp>
#include <ramie/base/type_info.hpp>

#include <cstdint>
#include <functional>

namespace ramie {

enum class dead_letter_cause {
  down,        // the actor had ended, or ended before it came to the message
  full,        // its bounded mailbox had no room, see overflow
  restarting,  // a request, and its supervisor restarts the actor
};

struct dead_letter {
  any_actor to;
  const type_info* type;  // of the message
  dead_letter_cause cause;
};

/// How many there were since the process began.
struct dead_letter_counts {
  std::uint64_t down;
  std::uint64_t full;
  std::uint64_t restarting;
};
[[nodiscard]] dead_letter_counts dead_letters() noexcept;

/// `hook` is called for each later dead letter, on any thread and possibly concurrently. It must not suspend, throw, or
/// send messages. An empty one: none. Any thread; throws std::bad_alloc.
void on_dead_letter(std::function<void(const dead_letter&)> hook);

}  // namespace ramie
