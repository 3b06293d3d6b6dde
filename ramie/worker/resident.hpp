// Long-lived residents: what a scheduler must know of them to end them when it shuts down. (How a resident is run:
// task/scheduling.hpp.) An idle one is in no queue and on no stack, so each worker keeps a list of those that were made
// on it.
#pragma once

#include <ramie/machine/spin_lock.hpp>
#include <ramie/queue/adaptive_lock.hpp>
#include <ramie/task/ready_item.hpp>
#include <ramie/task/task.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>

namespace ramie::detail {

/// What reports say about a resident.
struct resident_facts {
  const char* kind = "resident";  // "actor"
  std::string_view type;          // its class
  const char* state = "";         // "idle", "has ended", ...
  std::uint64_t mail = 0;         // messages that wait
  const void* supervisor = nullptr;
};

/// Describes a resident from a copy of its first resident_type::size bytes, made at any moment; only its type
/// if there is no copy. Async-signal-safe.
using resident_describer = void (*)(const void* copy, const void* type, resident_facts& found) noexcept;
/// The one that reports may call: a type read from memory that may be reused may not be a type. Any thread.
void set_resident_describer(resident_describer known) noexcept;

struct resident_type : task_type {
  /// The runtime ends, and this resident must end soon. Called again and again until it does, under the list's lock:
  /// short, does not suspend.
  void (*shut_down)(task& self) noexcept;
  resident_describer describe = nullptr;
  std::size_t size = 0;  // of the part that `describe` needs
};

class resident_list;

struct resident : task {
  resident* newer = nullptr;
  resident* older = nullptr;
  resident_list* listed_in = nullptr;
  atomic<std::uint32_t> handled{0};  // messages, or other units of its work; written by the worker that runs it
  /// Uses of `lock`, as a power of two, after which it belongs to one worker. Short-lived actors that are stolen by
  /// the hundred must not pay for that: skynet by actors on two workers 0.5 to 3 us a node with 0, 0.3 with 4.
  static constexpr std::uint8_t lock_patience = RAMIE_INTERLEAVE ? 1 : 4;
  /// Guards its mailbox, or other work to do. It is here because it moves with the resident.
  adaptive_lock lock{lock_patience};
};

/// Null: it is a fiber, or a task that has not begun. Conditions as for task_of.
[[nodiscard]] inline resident* as_long_lived(ready_item item) noexcept {
  if (!item.is_resident() || item.as_resident()->type->kind != task_kind::resident) return nullptr;
  return static_cast<resident*>(item.as_resident());
}

class resident_list {
 public:
  void add(resident& r) noexcept {
    std::lock_guard guard{lock_};
    r.listed_in = this;
    r.older = newest_;
    (newest_ == nullptr ? oldest_ : newest_->newer) = &r;
    newest_ = &r;
    ++size_;
  }
  void remove(resident& r) noexcept {
    std::lock_guard guard{lock_};
    take_out(r);
    r.newer = r.older = nullptr;
    --size_;
  }
  /// Calls `visit(resident)` for at most `most` of them, newest first; returns how many. Does nothing and returns -1
  /// if the list is being changed: does not wait. Any thread, signal handlers too.
  template <class Visit>
  std::ptrdiff_t try_for_each(std::size_t most, Visit visit) noexcept {
    if (!lock_.try_lock()) return -1;
    std::ptrdiff_t n = 0;
    for (resident* r = newest_; r != nullptr && most != 0; r = r->older, --most, ++n) visit(*r);
    lock_.unlock();
    return n;
  }
  [[nodiscard]] std::size_t size() noexcept {
    std::lock_guard guard{lock_};
    return size_;
  }
  /// Calls resident_type::shut_down for `most` of them, the newest first. One that is told goes behind all others, so
  /// the next call begins with those that have waited longest. Lets go of the lock in between: one that ends needs it
  /// to leave.
  void shut_down(std::size_t most) noexcept;

 private:
  friend struct debug_access;
  void take_out(resident& r) noexcept {
    (r.newer == nullptr ? newest_ : r.newer->older) = r.older;
    (r.older == nullptr ? oldest_ : r.older->newer) = r.newer;
  }
  spin_lock lock_;
  std::size_t size_ = 0;
  resident* newest_ = nullptr;
  resident* oldest_ = nullptr;
};

}  // namespace ramie::detail
