// The monitor of one scheduler, and the spare workers that it calls. monitor.cpp says what it does, reserve.cpp what
// the reserve is.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/sched/crew.hpp>
#include <ramie/sched/deadlock.hpp>
#include <ramie/sched/placement.hpp>
#include <ramie/sched/sleeping.hpp>
#include <ramie/sched/spread.hpp>

#include <signal.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace ramie::detail {

class scheduler;
struct worker;

class monitor {
 public:
  /// Throws std::bad_alloc. `of` is asked to hire spares, and whether it waits for itself.
  monitor(scheduler& of, crew& all, sleeper& sleeping, placer& placing);
  monitor(const monitor&) = delete;
  monitor& operator=(const monitor&) = delete;
  ~monitor();

  /// Starts its thread. Throws std::system_error.
  void start();
  /// The runtime ends: returns when its thread has.
  void end() noexcept;
  /// A worker works again: the monitor sleeps no more. Any worker.
  void rouse() noexcept;

  /// The spare `w` has nothing to do. True if it was not wanted any more, and has slept until it was called again, or
  /// the runtime ended. Its own thread.
  bool retire(worker& w) noexcept;
  /// The reserve `w` has given away what it had (V5). True if it had no timers either, and has slept until it was
  /// called again, or the runtime ended. Its own thread.
  bool release_reserve(worker& w) noexcept;

 private:
  /// What the monitor saw of a worker a round ago.
  struct last_look {
    std::uint64_t dispatches = 0;
    std::int64_t since_ns = 0;
    std::int64_t cpu_ns = 0;                                         // of the worker's thread, then
    std::uint64_t started = 0;                                       // fibers that it has spawned, a round ago
    std::int64_t spawned_ns = 0;                                     // when that was last seen to change
    std::uint64_t progress = 0;                                      // spread.hpp, a round ago
    std::uint64_t contended = 0, seized = 0, moved = 0, thefts = 0;  // the same
    bool stalled = false;
  };
  struct spread_look;
  void run() noexcept;
  bool round(std::int64_t now) noexcept;
  void look_at_spread(const spread_look& around) noexcept;
  void call_spare() noexcept;
  worker* call(bool as_reserve) noexcept;
  void call_back(worker& w, bool as_reserve) noexcept;
  void leave_duty(worker& w) noexcept;
  /// What a round finds out for the reserve.
  struct reserve_look {
    bool held_up = true;  // each worker but the reserve stands still, and spawns nothing
    bool somebody_sleeps = false;
    bool others_stalled = false;
    bool reserve_still = false;
  };
  void look_at_reserve(const reserve_look& around) noexcept;
  void rescue(worker& w) noexcept;
  void poll() noexcept;
  void rescue_inbox(worker& w) noexcept;

  scheduler& of_;
  crew& all_;
  sleeper& sleeping_;
  placer& placing_;
  std::vector<last_look> looks_;  // by number
  deadlock_detector deadlocks_;
  spread_control spread_control_;
  atomic<std::uint32_t> word_{0};  // futex: 0 sleeps forever, 1 ticks
  atomic<std::uint32_t> ends_{0};  // futex: on which it waits for a tick; 1 ends it
  atomic<std::uint32_t> spares_wanted_{0};
  atomic<std::uint32_t> spares_active_{0};              // without the reserve; a number, which orders nothing
  sigset_t usual_signals_{};                            // the mask that the runtime's threads inherit
  worker* reserve_ = nullptr;                           // the one on duty, as the monitor knows
  std::uint32_t calm_ = 0;                              // rounds since some worker was seen to dispatch
  std::vector<std::unique_ptr<worker>> never_started_;  // spares whose thread could not be started
  os_thread thread_;
};

}  // namespace ramie::detail
