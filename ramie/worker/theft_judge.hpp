// Was it worth stealing new tasks?
//
// It is not where they are tiny and spawn no others: a task costs 15 ns on the worker that spawned it, and over 150 on
// another, which must fetch it from the first one's cache and interrupts it by a heavy fence for every 32 tasks. A loop
// that spawned them took 180 ns a task on two workers, and 14 on one. It cannot be seen beforehand: the oldest task of
// a tree of tasks looks the same, and leads to half of all the work. So a thief judges afterwards, when it has nothing
// left to do: did it run few more tasks than it stole, and did each take little time? Then all thieves leave the new
// tasks of that victim alone, and no worker is woken for them, for a while that doubles each time, until a theft by
// this thief was worth it. A victim that stands still is stolen from all the same, and that theft is not judged. When
// that time is over the monitor wakes a worker, if none comes by itself.
#pragma once

#include <ramie/machine/cycles.hpp>

#include <algorithm>
#include <cstdint>

namespace ramie::detail {

/// One for each worker, which alone uses it.
class theft_judge {
 public:
  static constexpr std::uint64_t tiny_task_ns = 250;  // including the 150 that it costs to fetch it
  static constexpr std::uint32_t in_vain_least = 2;   // thefts in a row, before tasks are left. A guess
  static constexpr std::uint64_t leave_us = 50;       // for this long, doubled up to 1.6 ms. Guesses
  static constexpr std::uint32_t leave_doublings_most = 5;

  /// This many tasks were stolen, now. `dispatches`: of the thief, ever.
  void stole(std::uint64_t now_cycles, std::uint64_t dispatches, std::size_t tasks) noexcept {
    at_ = now_cycles;
    dispatches_ = dispatches;
    tasks_ = tasks;
  }

  /// The thief looks for work again. Returns for how many cycles new tasks should be left alone; 0: they may be stolen.
  [[nodiscard]] std::uint64_t nothing_left(std::uint64_t now_cycles, std::uint64_t dispatches) noexcept {
    if (tasks_ == 0) return 0;
    const std::uint64_t done = dispatches - dispatches_;
    const bool led_to_more = done > 2 * tasks_;
    tasks_ = 0;
    if (led_to_more || now_cycles - at_ >= done * cycles_in_ns(tiny_task_ns)) {
      in_vain_ = 0;
      return 0;
    }
    if (++in_vain_ < in_vain_least) return 0;
    return cycles_in_us(leave_us) << std::min(in_vain_ - in_vain_least, leave_doublings_most);
  }

 private:
  std::uint64_t at_ = 0;
  std::uint64_t dispatches_ = 0;
  std::size_t tasks_ = 0;  // 0: already judged
  std::uint32_t in_vain_ = 0;
};

}  // namespace ramie::detail
