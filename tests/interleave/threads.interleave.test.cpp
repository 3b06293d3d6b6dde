// What needs no runtime, because plain threads may use it too: locks, the wait word, timers, channels, select and the
// primitives of sync.
#include "simulator.hpp"

#include <ramie/queue/adaptive_lock.hpp>
#include <ramie/queue/ready_queue.hpp>
#include <ramie/ramie.hpp>
#include <ramie/task/timer_queue.hpp>
#include <ramie/task/wait.hpp>
#include <ramie/worker/worker.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace ramie::interleave {
namespace {

using namespace std::chrono_literals;
using detail::ready_item;
using detail::ready_queue;
using detail::task;

// ---- the ready queue and its biased lock ---------------------------------------------------------------------------

void contest_for_ready_items() {
  detail::init_fences();
  constexpr std::size_t n = 6;
  std::array<task, n> all;
  std::array<int, n> taken{};
  const auto queue = std::make_unique<ready_queue>();
  auto take = [&](ready_item item) { ++taken[static_cast<std::size_t>(item.as_resident() - all.data())]; };
  auto steal = [&] {
    std::array<ready_item, ready_queue::steal_most> loot;
    for (int i = 0; i < 2; ++i) {
      const std::size_t got = queue->steal_half(loot.data());
      for (std::size_t k = 0; k < got; ++k) take(loot[k]);
    }
  };
  {
    simulated_thread first{steal};
    simulated_thread second{steal};
    for (std::size_t in = 0; in < n;) {
      for (std::uint32_t burst = 1 + pick(2); burst > 0 && in < n; --burst, ++in)
        if (pick(2) == 0 || !queue->try_push(&all[in])) queue->push(&all[in]);
      for (std::uint32_t burst = pick(3); burst > 0; --burst) {
        check(queue->try_pop_stack() == nullptr, "a resident came as a stack");
        if (const ready_item item = queue->pop()) take(item);
      }
    }
  }
  while (const ready_item item = queue->pop()) take(item);
  for (const int times : taken) check(times == 1, "a ready item was lost or taken twice");
}
TEST(ready_queue, loses_and_doubles_nothing) {
  expect_sound("ready queue", {.seeds = 10'000}, contest_for_ready_items);
}
TEST(ready_queue, without_its_fence_is_found) {
  expect_found(plant::biased_lock_no_fence, "ready queue, no fence", {.seeds = 10'000}, contest_for_ready_items);
}

// ---- the adaptive lock ---------------------------------------------------------------------------------------------

void exclude_each_other() {
  detail::init_fences();
  detail::adaptive_lock lock{static_cast<std::uint8_t>(pick(2))};  // owned from the first or second use in a row on
  int inside = 0;
  int entered = 0;
  std::array<detail::worker_base, 3> workers;  // as if the threads were workers
  auto use = [&](detail::worker_base* as) {
    ramie_current_worker = as;
    for (int i = 0; i < 6; ++i) {
      const auto way = pick(4);
      const bool as_owner = way == 1 && lock.try_enter_as_owner(as);
      if (way == 0 && !lock.try_lock()) continue;
      if (way != 0 && !as_owner) lock.lock();
      check(++inside == 1, "two threads hold the lock");
      step();
      check(--inside == 0, "two threads hold the lock");
      ++entered;
      if (as_owner) lock.leave_as_owner();
      else lock.unlock();
    }
    ramie_current_worker = nullptr;
  };
  {
    simulated_thread first{[&] { use(&workers[0]); }};
    simulated_thread second{[&] { use(&workers[1]); }};
    simulated_thread third{[&] { use(&workers[2]); }};
    simulated_thread fourth{[&] { use(nullptr); }};
  }
  check(entered >= 1, "nobody got the lock");
}
TEST(adaptive_lock, excludes) { expect_sound("adaptive lock", {.seeds = 20'000}, exclude_each_other); }
/// A runtime ends, and the workers of the next one have its workers' memory, in another order.
void exclude_after_a_restart() {
  detail::init_fences();
  detail::adaptive_lock lock{static_cast<std::uint8_t>(pick(2))};
  std::array<detail::worker_base, 2> workers;
  int inside = 0;
  const auto use = [&](detail::worker_base* as) {
    ramie_current_worker = as;
    for (int i = 0; i < 4; ++i) {
      lock.lock();
      check(++inside == 1, "two threads hold the lock");
      step();
      check(--inside == 0, "two threads hold the lock");
      lock.unlock();
    }
    ramie_current_worker = nullptr;
  };
  for (int runtimes = 0; runtimes < 3; ++runtimes) {
    const std::size_t first = pick(2);
    if (pick(2) == 0) use(&workers[first]);
    simulated_thread a{[&] { use(&workers[first]); }};
    simulated_thread b{[&] { use(&workers[1 - first]); }};
  }
}
TEST(adaptive_lock, excludes_after_a_restart) {
  expect_sound("adaptive lock, restarts", {.seeds = 10'000}, exclude_after_a_restart);
}
TEST(adaptive_lock, without_its_fence_is_found) {
  expect_found(plant::adaptive_lock_no_fence, "adaptive lock, no fence", {.seeds = 20'000}, exclude_each_other);
}

/// Two locks, each used inside the other's critical section by its owners, and a thief that takes both at once.
void deprive_of_several() {
  detail::init_fences();
  std::array<detail::adaptive_lock, 2> locks;
  std::array<int, 2> inside{};
  std::array<detail::worker_base, 2> workers;
  auto enter = [&](std::size_t i) {
    locks[i].lock();
    check(++inside[i] == 1, "two threads hold the lock");
    step();
  };
  auto leave = [&](std::size_t i) {
    check(--inside[i] == 0, "two threads hold the lock");
    locks[i].unlock();
  };
  auto use = [&](detail::worker_base* as) {
    ramie_current_worker = as;
    for (int i = 0; i < 4; ++i) {
      const std::size_t which = pick(2);
      enter(which);
      // In one order only: otherwise they would deadlock whatever the lock does.
      if (const bool both = which == 0 && pick(2) == 0; both) {
        enter(1);
        leave(1);
      }
      leave(which);
    }
    ramie_current_worker = nullptr;
  };
  auto steal = [&](detail::worker_base* as) {
    const std::array<detail::adaptive_lock*, 3> all{locks.data(), nullptr, &locks[1]};
    for (int i = 0; i < 2; ++i) {
      detail::adaptive_lock::deprive_all(all.data(), all.size());
      use(as);
    }
  };
  {
    simulated_thread first{[&] { use(&workers[0]); }};
    simulated_thread second{[&] { steal(&workers[1]); }};
    simulated_thread third{[&] { steal(nullptr); }};
  }
}
TEST(adaptive_lock, excludes_when_taken_by_the_dozen) {
  expect_sound("adaptive locks, taken at once", {.seeds = 20'000}, deprive_of_several);
}
TEST(adaptive_lock, taken_by_the_dozen_without_a_fence_is_found) {
  expect_found(plant::deprive_all_no_fence, "adaptive locks, taken at once, no fence", {.seeds = 20'000},
               deprive_of_several);
}
TEST(adaptive_lock, with_a_second_owner_is_found) {
  expect_found(plant::adaptive_lock_second_owner, "adaptive lock, second owner", {.seeds = 50'000}, exclude_each_other);
}

void stay_without_an_owner() {
  detail::init_fences();
  detail::adaptive_lock lock;
  int inside = 0;
  detail::atomic<bool> shared{false};
  std::array<detail::worker_base, 2> workers;
  workers[0].alone = pick(2) == 0;
  const auto in_it = [&] {
    check(++inside == 1, "two threads hold the lock");
    step();
    --inside;
  };
  auto use = [&](detail::worker_base* as) {
    ramie_current_worker = as;
    for (int i = 0; i < 6; ++i) {
      const bool told = shared.load(std::memory_order_acquire);
      if (lock.try_enter_as_owner(as)) {
        check(!told, "a worker owns a lock that has no owner");
        in_it();
        lock.leave_as_owner();
      } else {
        lock.lock();
        in_it();
        lock.unlock();
      }
    }
    ramie_current_worker = nullptr;
  };
  {
    simulated_thread owner{[&] { use(&workers[0]); }};
    simulated_thread tracer{[&] {
      if (pick(2) == 0) ramie_current_worker = &workers[1];
      lock.have_no_owner();
      shared.store(true, std::memory_order_release);
      use(ramie_current_worker);
    }};
  }
}
TEST(adaptive_lock, can_be_without_an_owner) {
  expect_sound("adaptive lock, without an owner", {.seeds = 10'000}, stay_without_an_owner);
}

// ---- the word of a wait, as plain threads use it -------------------------------------------------------------------

void wake_once() {
  // One waiter and three wakers: in one step, in two steps, and too late. One wins each round.
  detail::atomic<std::uint64_t> reference{0};
  detail::atomic<int> wins{0};
  detail::atomic<bool> over{false};
  constexpr int rounds = 3;
  int handed = 0;
  auto waker = [&](bool in_two_steps) {
    std::uint64_t last = 0;
    while (!over.load(std::memory_order_acquire)) {
      const std::uint64_t now = reference.load(std::memory_order_acquire);
      if (now == 0 || (now == last && pick(2) == 0)) {
        detail::spin_pause();
        continue;
      }
      last = now;
      const auto ref = detail::waiter_ref::from_bits(now);
      if (!in_two_steps) {
        if (detail::wake(ref)) wins.fetch_add(1, std::memory_order_relaxed);
      } else if (detail::claimed_wait won = detail::claim(ref)) {
        ++handed;
        wins.fetch_add(1, std::memory_order_relaxed);
        won.go_on();
      }
    }
  };
  {
    simulated_thread plain{[&] { waker(false); }};
    simulated_thread first{[&] { waker(true); }};
    simulated_thread second{[&] { waker(true); }};
    int handed_seen = 0;
    for (int i = 0; i < rounds; ++i) {
      detail::wait pause{detail::wait::kind::uninterruptible};
      reference.store(pause.ref().bits(), std::memory_order_release);
      if (pick(3) == 0 && pause.withdraw()) {
        wins.fetch_add(1, std::memory_order_relaxed);
        continue;
      }
      pause.suspend();
      check(handed >= handed_seen, "handed over backwards");
      handed_seen = handed;
    }
    over.store(true, std::memory_order_release);
  }
  check(wins.load() == rounds, "a wait was won by nobody, or twice");
}
TEST(wait_word, is_won_once) { expect_sound("wait word", {.seeds = 10'000}, wake_once); }
TEST(wait_word, that_is_let_go_twice_is_found) {
  expect_found(plant::held_wait_let_go_twice, "wait let go twice", {.seeds = 10'000}, wake_once);
}

// ---- timers --------------------------------------------------------------------------------------------------------

void race_timers() {
  detail::timer_queue timers;
  detail::atomic<int> left{2};
  auto sleeper = [&](std::int64_t first_ns) {
    for (int i = 0; i < 2; ++i) {
      detail::timer_node mine;
      detail::wait pause{detail::wait::kind::uninterruptible};
      mine.waiter = pause.ref();
      timers.add(mine, first_ns + i * 100);
      if (pick(2) == 0 && timers.remove(mine)) {
        check(pause.withdraw(), "a timer that was removed fired");
        continue;
      }
      check(pause.suspend() == detail::wake_reason::timeout, "woken by something else");
      check(!timers.remove(mine), "a timer that fired is still there");
    }
    left.fetch_sub(1, std::memory_order_release);
  };
  {
    const std::int64_t begin = detail::now_ns();
    simulated_thread first{[&] { sleeper(begin + 200); }};
    simulated_thread second{[&] { sleeper(begin + 300); }};
    while (left.load(std::memory_order_acquire) != 0) {
      const std::int64_t next = timers.next_ns();
      const std::int64_t now = detail::now_ns();
      if (next <= now) timers.fire(now);
      else detail::spin_pause();
    }
  }
  check(timers.next_ns() == detail::timer_queue::never, "timers are left");
}
TEST(timer_queue, fires_or_removes) { expect_sound("timers", {.seeds = 10'000}, race_timers); }
/// More timers than a node of the heap has children: each fires in its turn, beside removals.
void fire_many_timers() {
  struct counted : detail::timer_node {
    int fired = 0;
    bool removed = false;
    std::int64_t deadline_ns = 0;
    static void fire(timer_node& n) noexcept { ++static_cast<counted&>(n).fired; }
  };
  detail::timer_queue timers;
  std::array<counted, 12> all;
  const auto add = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) {
      all[i].call = &counted::fire;
      all[i].deadline_ns = 1 + pick(20);
      timers.add(all[i], all[i].deadline_ns);
    }
  };
  {
    simulated_thread other{[&] {
      add(6, 12);
      for (std::size_t i = 6; i < 12; i += 3) all[i].removed = timers.remove(all[i]);
    }};
    add(0, 6);
    for (std::size_t i = 1; i < 6; i += 3) all[i].removed = timers.remove(all[i]);
  }
  for (std::int64_t now = 1; now <= 20; ++now) {
    timers.fire(now);
    for (const counted& t : all)
      check(t.fired == (!t.removed && t.deadline_ns <= now ? 1 : 0), "a timer did not fire in its turn, or twice");
  }
  check(timers.next_ns() == detail::timer_queue::never, "timers are left");
}
TEST(timer_queue, fires_in_turn) { expect_sound("many timers", {.seeds = 5000}, fire_many_timers); }
TEST(timer_queue, whose_heap_is_too_narrow_is_found) {
  expect_found(plant::timer_heap_narrow, "heap too narrow", {.seeds = 20'000}, fire_many_timers);
}
TEST(timer_queue, without_its_lock_is_found) {
  expect_found(plant::timer_removed_unlocked, "timer removed without the lock", {.seeds = 10'000}, race_timers);
}

// ---- channels and select -------------------------------------------------------------------------------------------

/// Two senders, two receivers, a close at the end: everything arrives once, in each sender's order.
void use_channel(std::size_t capacity) {
  constexpr int each = 3;
  channel<int> c{capacity};
  std::array<int, 2 * each> got{};
  auto send = [&](int who) {
    for (int i = 0; i < each; ++i) {
      const int value = who * each + i;
      if (pick(4) == 0) {
        while (c.send_for(value, 1us) == channel_status::timeout) {
        }
      } else {
        check(c.send(value) == channel_status::ok, "send on an open channel failed");
      }
    }
  };
  auto receive = [&] {
    std::array<int, 2> newest{-1, -1};
    while (const std::optional<int> value = c.recv()) {
      ++got[static_cast<std::size_t>(*value)];
      int& last = newest[static_cast<std::size_t>(*value / each)];
      check(*value > last, "one sender's elements changed places");
      last = *value;
    }
  };
  {
    simulated_thread first{receive};
    simulated_thread second{receive};
    {
      simulated_thread one{[&] { send(0); }};
      send(1);
    }
    c.close();
  }
  for (const int times : got) check(times == 1, "an element was lost or came twice");
}
TEST(channel, rendezvous_loses_nothing) {
  expect_sound("rendezvous", {.seeds = 5000}, [] { use_channel(0); });
}
TEST(channel, buffer_loses_nothing) {
  expect_sound("buffered", {.seeds = 5000}, [] { use_channel(2); });
}
TEST(channel, that_is_unlocked_early_is_found) {
  expect_found(plant::channel_unlocked_early, "channel unlocked early", {.seeds = 20'000}, [] { use_channel(1); });
}

void use_select() {
  constexpr int each = 3;
  channel<int> a;
  channel<int> b{1};
  int got = 0;
  auto send = [&](channel<int>& c) {
    for (int i = 0; i < each; ++i)
      if (pick(2) == 0) static_cast<void>(c.send(i));
      else select(on_send(c, i, [](channel_status s) { check(s == channel_status::ok, "send failed"); }));
  };
  {
    simulated_thread one{[&] { send(a); }};
    simulated_thread two{[&] { send(b); }};
    while (got < 2 * each) {
      auto count = [&](std::optional<int> v) { got += v.has_value() ? 1 : 0; };
      if (pick(3) == 0) select(on_recv(a, count), on_recv(b, count), on_timeout(2us, [] {}));
      else select(on_recv(a, count), on_recv(b, count));
    }
  }
  check(a.size() + b.size() == 0, "elements are left");
}
TEST(select, serves_one_case) { expect_sound("select", {.seeds = 5000}, use_select); }
TEST(select, without_its_second_look_is_found) {
  expect_found(plant::select_without_second_look, "select, no second look", {.seeds = 20'000}, use_select);
}

/// Selects that meet each other at both ends of two channels.
void cross_selects() {
  channel<int> a;
  channel<int> b;
  int sent = 0;
  int received = 0;
  auto both = [&] {
    for (int i = 0; i < 2; ++i)
      select(on_send(a, 1, [&](channel_status) { ++sent; }), on_recv(b, [&](std::optional<int>) { ++received; }));
  };
  auto opposite = [&] {
    for (int i = 0; i < 2; ++i)
      select(on_recv(a, [&](std::optional<int>) { ++received; }), on_send(b, 2, [&](channel_status) { ++sent; }));
  };
  {
    simulated_thread one{both};
    simulated_thread two{opposite};
  }
  check(sent == 2 && received == 2, "a select was served twice, or its counterpart not at all");
}
TEST(select, meets_select) { expect_sound("select against select", {.seeds = 10'000}, cross_selects); }

// ---- sync ----------------------------------------------------------------------------------------------------------

void use_mutex() {
  const auto m = std::make_unique<timed_mutex>();
  int inside = 0;
  auto use = [&] {
    for (int i = 0; i < 3; ++i) {
      if (pick(4) == 0) {
        if (!m->try_lock_for(3us)) continue;
      } else {
        m->lock();
      }
      check(++inside == 1, "two threads hold the mutex");
      if (pick(2) == 0) detail::os_sleep(1000 * pick(150));  // so that waiters give up spinning, or nearly
      check(--inside == 0, "two threads hold the mutex");
      m->unlock();
    }
  };
  {
    simulated_thread first{use};
    simulated_thread second{use};
    use();
  }
}
TEST(mutex, excludes_and_wakes) { expect_sound("mutex", {.seeds = 8000}, use_mutex); }
/// A waiter that was woken finds the mutex taken again and runs out of time, while another one is parked behind it.
void run_out_of_time_when_woken() {
  const auto m = std::make_unique<timed_mutex>();
  const auto hold = [&] {
    for (int i = 0; i < 3; ++i) {
      const std::lock_guard guard{*m};
      detail::os_sleep(1000 * pick(500));
    }
  };
  simulated_thread holder{hold};
  simulated_thread timed{[&] {
    for (int i = 0; i < 2; ++i)
      if (m->try_lock_for(1us * pick(600))) m->unlock();
  }};
  simulated_thread patient{[&] { const std::lock_guard guard{*m}; }};
}
TEST(mutex, wakes_another_when_one_runs_out_of_time) {
  expect_sound("mutex, out of time when woken", {.seeds = 3000}, run_out_of_time_when_woken);
}
TEST(mutex, whose_wake_up_ends_with_a_deadline_is_found) {
  expect_found(plant::mutex_woken_left_on, "mutex, woken left on", {.seeds = 20'000}, run_out_of_time_when_woken);
}
TEST(mutex, whose_unlock_is_missed_is_found) {
  expect_found(plant::mutex_unlock_unnoticed, "mutex, unlock missed", {.seeds = 20'000}, use_mutex);
}

void use_primitives() {
  counting_semaphore<> tokens{0};
  latch done{2};
  mutex m;
  condition_variable changed;
  int stage = 0;
  {
    simulated_thread one{[&] {
      tokens.acquire();
      {
        std::lock_guard guard{m};
        stage = 1;
      }
      changed.notify_one();
      done.count_down();
    }};
    simulated_thread two{[&] {
      {
        std::unique_lock guard{m};
        changed.wait(guard, [&] { return stage == 1; });
      }
      done.count_down();
    }};
    tokens.release();
    done.wait();
  }
  check(stage == 1, "out of order");
}
TEST(sync, primitives_lose_no_wake_up) { expect_sound("semaphore, latch, condition", {.seeds = 8000}, use_primitives); }
TEST(sync, a_node_linked_too_late_is_found) {
  expect_found(plant::word_lock_early, "node linked too late", {.seeds = 20'000}, use_primitives);
}

}  // namespace
}  // namespace ramie::interleave
