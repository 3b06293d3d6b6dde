// Residents that live long: what a scheduler must know of them to end them when it shuts down. (How a resident is run:
// worker.hpp.) An idle one is in no queue and on no stack, so each worker keeps a list of those that were made on it.
#pragma once

#include <ramie/sched/adaptive_lock.hpp>
#include <ramie/sched/affinity.hpp>
#include <ramie/sched/ready_item.hpp>
#include <ramie/sched/spin_lock.hpp>
#include <ramie/sched/task.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>

namespace ramie::detail {

struct fork_deque;

/// What reports say of a resident.
struct resident_facts {
  const char* kind = "resident";  // "actor"
  std::string_view type;          // its class
  const char* state = "";         // "idle", "has ended", ...
  std::uint64_t mail = 0;         // messages that wait
};

/// Tells of a resident by a copy of its first resident_type::size bytes, made at any moment; of its type alone
/// if there is no copy. Async-signal-safe.
using resident_describer = void (*)(const void* copy, const void* type, resident_facts& found) noexcept;
/// The one that reports may call: a type that is read from memory which changes hands may be no type. Any thread.
void set_resident_describer(resident_describer known) noexcept;

struct resident_type : task_type {
  /// The runtime ends: so shall this one, soon. Called again and again until it does, under the list's lock: short,
  /// does not suspend.
  void (*shut_down)(task& self) noexcept;
  resident_describer describe = nullptr;
  std::size_t size = 0;  // of the part that `describe` needs
};

class resident_list;

struct resident : task {
  resident* newer = nullptr;
  resident* older = nullptr;
  resident_list* listed_in = nullptr;
  home_learner learner;              // for who makes it ready or runs it
  atomic<std::uint32_t> handled{0};  // messages, or whatever its work comes in; written by who runs it
  /// Uses of `lock`, as a power of two, after which it belongs to one worker. Actors of short lives that are stolen by
  /// the hundred must not pay for that: skynet by actors on two workers 0.5 to 3 us a node with 0, 0.3 with 4.
  static constexpr std::uint8_t lock_patience = 4;
  /// Guards its mailbox, or whatever says that it has something to do. Here, since it moves along with the resident.
  adaptive_lock lock{lock_patience};
};

/// Null: it is a fiber, or a task that has not begun. As for task_of.
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
    if (newest_ != nullptr) newest_->newer = &r;
    newest_ = &r;
  }
  void remove(resident& r) noexcept {
    std::lock_guard guard{lock_};
    (r.newer == nullptr ? newest_ : r.newer->older) = r.older;
    if (r.older != nullptr) r.older->newer = r.newer;
    r.newer = r.older = nullptr;
  }
  /// Calls `visit(context, resident)` for at most `most` of them, newest first; gives how many. Nothing at all, and -1,
  /// if the list is being changed: does not wait. Any thread, signal handlers too.
  template <class Visit>
  std::ptrdiff_t try_for_each(std::size_t most, Visit visit) noexcept {
    if (!lock_.try_lock()) return -1;
    std::ptrdiff_t n = 0;
    for (resident* r = newest_; r != nullptr && most != 0; r = r->older, --most, ++n) visit(*r);
    lock_.unlock();
    return n;
  }
  void shut_down() noexcept {
    std::lock_guard guard{lock_};
    for (resident* r = newest_; r != nullptr; r = r->older) static_cast<const resident_type*>(r->type)->shut_down(*r);
  }

 private:
  friend struct debug_access;
  spin_lock lock_;
  resident* newest_ = nullptr;
};

/// Gives `r` to the calling worker's scheduler, so that make_ready knows where to. Throws usage_error on a plain thread
/// and after shutdown began; does not suspend.
void prepare_resident(resident& r);
/// It runs on that worker only. Between the two; throws invalid_argument for a number there is not.
void pin_resident(resident& r, int to);
/// Counts it among what is alive there; its worker may be another one by now. Throws usage_error after shutdown began.
void enlist_resident(resident& r);
/// The last that happens to an enlisted resident, from its `rest`.
void strike_resident(resident& r) noexcept;
/// make_resident_ready on the scheduler where it was enlisted.
void make_ready(resident& r) noexcept;
/// The same for `me`, the calling worker.
void make_ready_from(resident& r, fork_deque* me) noexcept;
/// The runtime that the calling worker belongs to is shutting down.
[[nodiscard]] bool is_draining() noexcept;

}  // namespace ramie::detail
