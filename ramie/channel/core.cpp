#include <ramie/channel/core.hpp>

#include <ramie/base/assert.hpp>
#include <ramie/channel/channel.hpp>

#include <utility>

namespace ramie::detail {

bool waiting_line::has_other_than(const stack* self) const noexcept {
  for (const operation* o = line_.front(); o != nullptr; o = wait_list<operation>::after(*o))
    if (o->waiter.who() != self && !is_over(o->waiter)) return true;
  return false;
}

channel_core::~channel_core() {
  if (receivers.has_other_than(nullptr) || senders.has_other_than(nullptr))
    fatal("a channel was destroyed while a fiber or thread waited to send or receive on it", __FILE__, __LINE__);
}

void channel_core::leave(waiting_line& line, operation& mine) noexcept {
  channel_guard guard{*this};
  line.remove(mine);
  guard.unlock_for_nothing();
}

void channel_core::close() noexcept {
  operation* last = nullptr;
  [[maybe_unused]] operation* held = nullptr;  // of the plant
  {
    channel_guard guard{*this};
    if (closed.load(std::memory_order_relaxed)) return;
    closed.store(true, std::memory_order_relaxed);
    const auto end_all = [&](waiting_line& line) {
      while (operation* o = line.claim_first()) {
        o->result = operation::outcome::closed;
        if (RAMIE_PLANT(close_holds_two)) std::swap(o, held);
        if (o == nullptr) continue;
        if (receivers.empty() && senders.empty()) last = o;  // the line is empty now, so this ends the loop
        else o->claimed.go_on();                             // C7
      }
    };
    end_all(receivers);
    end_all(senders);
  }
  if (RAMIE_PLANT(close_holds_two) && held != nullptr) held->claimed.go_on();
  if (last != nullptr) last->claimed.go_on();  // C4
}

void throw_bad_capacity(std::size_t capacity, std::size_t most) {
  throw invalid_argument{"ramie: channel: capacity is " + std::to_string(capacity) + "; it must be at most " +
                         std::to_string(most) + " for elements of this size"};
}

}  // namespace ramie::detail
