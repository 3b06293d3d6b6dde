// Where a new or a woken piece of work goes.
//
// The hot paths decide two cases by themselves: what a worker wakes and ran itself goes into its own ready queue
// (`worker::wakes_here`), and what it spawns goes into its own spawn deque (`worker::spawns_here`). All else comes
// here. By placement:
//
//   work_stealing         new: here. Woken: at its home or here, as spread.hpp has it; from outside: injected.
//   stealing_no_affinity  new and woken: here; from outside: injected.
//   dedicated             new: to the workers in turn; woken: to the same worker forever. There is no stealing.
//   a policy of the user's own: it gets all.
//
// Before all that: what is pinned goes to its worker. A thief that finds it in an inbox puts it back, and skips
// it in a ready queue.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/sched/crew.hpp>
#include <ramie/sched/recorder.hpp>
#include <ramie/sched/sleeping.hpp>
#include <ramie/task/ready_item.hpp>
#include <ramie/task/task.hpp>
#include <ramie/worker/work.hpp>
#include <ramie/worker/worker.hpp>

#include <cstddef>
#include <cstdint>

namespace ramie::detail {

class placer {
 public:
  placer(crew& all, sleeper& sleeping, recorder& seen) noexcept;

  /// What is ready, or new, goes where it should. `here`: the calling worker of this scheduler, or null, while the
  /// caller keeps the scheduler from ending.
  RAMIE_NOINLINE void place(worker* here, ready_item item) noexcept;
  /// What any worker may take. Any thread.
  void inject(ready_item item) noexcept;
  void inject_new(task* t) noexcept;
  /// To be run by `to`. Any thread.
  void post(worker& to, ready_item item) noexcept;
  /// Has to run on worker `to`. Before it is submitted. Throws invalid_argument, naming `option`.
  void pin(task& t, int to, const char* option) const;
  /// Sets the worker that a new resident belongs to.
  void give_home(task& t, worker* here) noexcept;

  // Taking it up again; `w` by its own thread.

  [[nodiscard]] work take_injected(worker& w, bool tasks_first) noexcept;
  [[nodiscard]] work take_by_policy(worker& w) noexcept;
  /// What woke and was injected.
  [[nodiscard]] work take_woken(worker& w) noexcept;
  /// All that `w` has queued goes where any worker finds it.
  void give_away(worker& w) noexcept;
  void open_inbox(worker& w) noexcept;
  /// All that was sent to `victim` and may be moved: take(item) for each. Any thread.
  template <class Take>
  void take_from_inbox(worker& victim, Take take) noexcept {
    for (ready_item item = victim.sent.take_all(); item;) {
      const ready_item next = item.next();
      if (is_movable(item)) take(item);
      else post(victim, item);  // its owner may have looked meanwhile, and have found nothing
      item = next;
    }
  }
  /// Puts it into the queues of `w`.
  static void accept(worker& w, ready_item item) noexcept;
  /// `to` has got these: their mailboxes belong to it from now on. Each that its former worker owned would cost a heavy
  /// fence at its first use.
  static void take_mailboxes(worker& to, const ready_item* items, std::size_t n) noexcept;
  /// Where one worker is to run all that is ready, it gets what `w` has.
  void hand_over(worker& w) noexcept;

  // What follows from the options, for new workers and for the monitor.

  [[nodiscard]] bool wakes_here() const noexcept { return wakes_here_; }
  [[nodiscard]] bool spawns_here() const noexcept { return spawns_here_; }
  /// The way in which ready work is shared is to be tried out.
  [[nodiscard]] bool adapts() const noexcept { return adapts_; }
  /// One worker runs all that is ready, for good.
  [[nodiscard]] bool begins_together() const noexcept { return begins_together_; }

 private:
  [[nodiscard]] bool goes_home(const worker& home) const noexcept;
  worker& next_in_turn(worker* here) noexcept;
  void keep(worker& here, ready_item item, const worker* home) noexcept;
  void send(worker* here, worker& to, ready_item item) noexcept;

  crew& all_;
  sleeper& sleeping_;
  recorder& seen_;
  bool wakes_here_, spawns_here_, adapts_, begins_together_;
  atomic<std::uint32_t> dealt_outside_{0};  // turns given out to other threads
};

}  // namespace ramie::detail
