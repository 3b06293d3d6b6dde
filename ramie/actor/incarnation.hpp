// What belongs to one life of an actor's state, from before its constructor runs until after its destructor has: an
// actor that is never restarted has one, a supervised one has one after the other, in the same block. incarnation.cpp
// has the protocol.
#pragma once

#include <ramie/actor/cell.hpp>
#include <ramie/actor/timer.hpp>
#include <ramie/base/type_info.hpp>
#include <ramie/machine/spin_lock.hpp>

#include <cstdint>
#include <memory>
#include <vector>

namespace ramie::detail {

struct actor_timer;
struct tie;

/// A tie's place in a list of one of its two sides.
struct tie_hook {
  tie* of = nullptr;
  tie_hook* next = nullptr;
  tie_hook* previous = nullptr;
  bool linked = false;  // lock of the list's actor
};

/// Doubly linked, so that each removal takes the same few steps. Guarded by the lock of the actor whose list it is.
class tie_list {
 public:
  [[nodiscard]] tie_hook* front() const noexcept { return first_; }
  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
  void push_back(tie_hook& h) noexcept {
    h.next = nullptr;
    h.previous = last_;
    (last_ == nullptr ? first_ : last_->next) = &h;
    last_ = &h;
    h.linked = true;
    ++size_;
  }
  /// False, and nothing happened, if somebody else took it out before.
  bool remove(tie_hook& h) noexcept {
    if (!h.linked) return false;
    (h.previous == nullptr ? first_ : h.previous->next) = h.next;
    (h.next == nullptr ? last_ : h.next->previous) = h.previous;
    h.linked = false;
    --size_;
    return true;
  }

 private:
  tie_hook* first_ = nullptr;
  tie_hook* last_ = nullptr;
  std::uint32_t size_ = 0;
};

enum class tie_kind : std::uint8_t {
  link,     // ends with either incarnation, and tells the other
  monitor,  // ends with the watcher's incarnation, or with the target's actor, and tells the watcher of the latter
  watch,    // as `monitor`, but of the target's incarnation
};

/// Two actors, one of which hears of the other's end. In a list of each, and freed with the second removal.
struct tie {
  tie_kind kind;
  atomic<bool> over{false};  // claimed by the thread that ends it: I6
  atomic<std::uint32_t> references{2};
  actor_cell* side[2];             // watcher (or one of the linked), target; a reference to each
  std::uint32_t incarnation[2]{};  // of each, when it was made
  message* note = nullptr;         // monitors: the message that will tell
  tie_hook hook[2]{};
  std::uint64_t number = 0;  // of the watcher's monitors, for monitor_ref

  void release() noexcept;
};

/// Other handlers in place of a class actor's own, see become().
struct behaviour {
  virtual ~behaviour() = default;
  /// The handler for messages of this type, or null: the class's own is used.
  virtual void* find(const type_info& message) noexcept = 0;
};

struct keyed_timer {
  timer_key key;
  timer_handle handle;
};

struct incarnation {
  std::uint32_t number = 0;          // lock; the first is 0
  tie_list ties;                     // lock: links, its own monitors of others, others' watches of it
  exit_reason kill_reason;           // lock: of a kill that was not heeded yet
  const task* constructs = nullptr;  // lock: the task that runs the constructor
  // The running actor's own.
  exit_reason stop_reason;  // alive: it was given none
  std::shared_ptr<behaviour> becoming;
  std::vector<std::shared_ptr<behaviour>> replaced;  // one of them may be running
  message_queue stash;
  std::uint32_t stashed = 0;
  std::vector<keyed_timer> keyed;

  spin_lock timers_lock;
  actor_timer* timers = nullptr;
};

/// Ends all timers of the incarnation.
void cancel_timers(incarnation& of) noexcept;
/// Claims each of the ties, which are taken out of the lists of `c` already, tells the other sides and lets go. True if
/// there was anybody to tell. Not under the lock.
bool end_ties(actor_cell& c, tie_hook* first, const exit_reason& why) noexcept;
/// True for a note or a timer's message of an incarnation that has ended: nobody wants it any more. The running actor.
[[nodiscard]] bool is_stale(actor_cell& c, const message& m) noexcept;

}  // namespace ramie::detail
