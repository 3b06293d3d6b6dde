// How a worker that has nothing left looks for work: its inbox, the injection queue, the others' queues. What it
// remembers while it does is its thief (worker/thief.hpp).
//
// What a thief takes: the oldest fork job; new tasks; half of what is ready when that is worth it (a quarter where
// ready work has a home, and only if the thief is short of work: crew.hpp, spread.hpp); and what lies in the inbox of a
// worker that stands still.
#pragma once

#include <ramie/sched/crew.hpp>
#include <ramie/sched/placement.hpp>
#include <ramie/worker/event_source.hpp>
#include <ramie/worker/work.hpp>
#include <ramie/worker/worker.hpp>

#include <cstddef>
#include <cstdint>

namespace ramie::detail {

/// For each worker by its own thread.
class stealer {
 public:
  stealer(const crew& all, placer& placing, event_desk& events) noexcept
      : all_{all}, placing_{placing}, events_{events} {}

  /// Until there is something, or for as long as a search lasts (`woken`: thief::patience). Empty, too, if something
  /// was sent to `w`, or an event from outside has come.
  [[nodiscard]] work search(worker& w, bool woken) noexcept;
  /// For a worker that may not search because others do: watches its inbox and the injection queue for a while, where
  /// ready work goes home. True if it should look again.
  [[nodiscard]] bool lingers(worker& w, bool woken) noexcept;

 private:
  work look_around(worker& w, bool woken) noexcept;
  work try_victim(worker& w, std::uint32_t number) noexcept;
  work steal_fork_job(worker& w, worker& victim) noexcept;
  work steal_new_tasks(worker& w, worker& victim, bool stands_still) noexcept;
  work steal_ready(worker& w, worker& victim, bool stands_still) noexcept;
  work steal_sent(worker& w, worker& victim) noexcept;
  [[nodiscard]] std::size_t may_take(worker& by, const worker& victim, bool stands_still) noexcept;
  /// For thief::is_short_of_work.
  [[nodiscard]] auto searched_of() const noexcept {
    return [this](std::size_t i) { return all_.at(i).stealing.searched(); };
  }
  [[nodiscard]] std::uint64_t patience(const worker& w, bool woken) const noexcept;

  const crew& all_;
  placer& placing_;
  event_desk& events_;
};

}  // namespace ramie::detail
