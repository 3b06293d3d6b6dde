// Residents that live long: what a scheduler must know of them to end them when it shuts down. (How a resident is run:
// worker.hpp.) An idle one is in no queue and on no stack, so each worker keeps a list of those that were made on it.
#pragma once

#include <ramie/sched/spin_lock.hpp>
#include <ramie/sched/task.hpp>

#include <mutex>

namespace ramie::detail {

struct resident_type : task_type {
  /// The runtime ends: so shall this one, soon. Called again and again until it does, under the list's lock: short,
  /// does not suspend.
  void (*shut_down)(task& self) noexcept;
};

class resident_list;

struct resident : task {
  resident* newer = nullptr;
  resident* older = nullptr;
  resident_list* listed_in = nullptr;
};

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
  void shut_down() noexcept {
    std::lock_guard guard{lock_};
    for (resident* r = newest_; r != nullptr; r = r->older) static_cast<const resident_type*>(r->type)->shut_down(*r);
  }

 private:
  spin_lock lock_;
  resident* newest_ = nullptr;
};

/// Gives `r` to the calling worker's scheduler, so that make_ready knows where to. Throws usage_error on a plain thread
/// and after shutdown began; does not suspend.
void prepare_resident(resident& r);
/// Counts it among what is alive there; its worker may be another one by now. Throws usage_error after shutdown began.
void enlist_resident(resident& r);
/// The last that happens to an enlisted resident, from its `rest`.
void strike_resident(resident& r) noexcept;
/// make_resident_ready on the scheduler where it was enlisted.
void make_ready(resident& r) noexcept;
/// The runtime that the calling worker belongs to is shutting down.
[[nodiscard]] bool is_draining() noexcept;

}  // namespace ramie::detail
