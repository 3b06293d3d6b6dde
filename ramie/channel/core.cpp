#include <ramie/channel/core.hpp>

#include <ramie/base/assert.hpp>
#include <ramie/channel/channel.hpp>

namespace ramie::detail {

bool waiting_line::has_other_than(const stack* self) const noexcept {
  for (const operation* o = line_.front(); o != nullptr; o = wait_list<operation>::after(*o))
    if (o->waiter.who() != self && !is_over(o->waiter)) return true;
  return false;
}

channel_core::~channel_core() {
  if (receivers.has_other_than(nullptr) || senders.has_other_than(nullptr))
    fatal("a channel was destroyed while somebody waited to send or receive on it", __FILE__, __LINE__);
}

void channel_core::leave(waiting_line& line, operation& mine) noexcept {
  channel_guard guard{*this};
  line.remove(mine);
  guard.unlock_for_nothing();
}

void channel_core::close() noexcept {
  operation* first = nullptr;
  {
    channel_guard guard{*this};
    if (closed.load(std::memory_order_relaxed)) return;
    closed.store(true, std::memory_order_relaxed);
    operation* last = nullptr;
    const auto end_all = [&](waiting_line& line) {
      while (operation* o = line.claim_first()) {
        o->result = operation::outcome::closed;
        o->next = nullptr;
        if (last == nullptr) first = o;
        else last->next = o;
        last = o;
      }
    };
    end_all(receivers);
    end_all(senders);
  }
  // Each may be gone as soon as it goes on, and with the last of them the channel.
  while (operation* o = first) {
    first = static_cast<operation*>(o->next);
    o->claimed.go_on();
  }
}

void throw_wait_cancelled() { throw cancelled{}; }

void throw_bad_capacity(std::size_t capacity, std::size_t most) {
  throw invalid_argument{"ramie: channel: capacity is " + std::to_string(capacity) + "; it must be at most " +
                         std::to_string(most) + " for elements of this size"};
}

}  // namespace ramie::detail
