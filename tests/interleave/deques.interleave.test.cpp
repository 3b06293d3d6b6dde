// The deques by themselves: an owner that pushes and pops, thieves that steal.
#include "simulator.hpp"

#include <ramie/machine/fence.hpp>
#include <ramie/queue/fork_deque.hpp>
#include <ramie/queue/spawn_deque.hpp>
#include <ramie/task/scheduling.hpp>
#include <ramie/task/task.hpp>
#include <ramie/task/wait.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

namespace ramie::interleave {
namespace {

using detail::spawn_deque;
using detail::task;

void contest_for_tasks() {
  detail::init_fences();
  constexpr std::size_t n = 6;
  std::array<task, n> all;
  std::array<int, n> taken{};
  spawn_deque deque;
  auto take = [&](const task* t) { ++taken[static_cast<std::size_t>(t - all.data())]; };
  auto steal = [&] {
    std::array<task*, spawn_deque::steal_most> loot;
    for (int i = 0; i < 2; ++i) {
      const std::size_t got = deque.steal(loot.data());
      for (std::size_t k = 0; k < got; ++k) take(loot[k]);
    }
  };
  {
    simulated_thread first{steal};
    simulated_thread second{steal};
    std::size_t in = 0;
    while (in < n) {
      for (std::uint32_t burst = 1 + pick(2); burst > 0 && in < n; --burst) deque.push(&all[in++]);
      if (in != 0 && pick(3) == 0) {
        const std::size_t newest = in - 1;  // unless it is gone
        deque.alter_newest(&all[newest], [&] {
          check(taken[newest] == 0, "what was taken is altered");
          all[newest].completion.store(task::detached, std::memory_order_relaxed);
          check(taken[newest] == 0, "it is taken while it is altered");
        });
      }
      for (std::uint32_t burst = pick(3); burst > 0; --burst)
        if (const task* t = pick(4) == 0 ? deque.pop_oldest() : deque.pop(); t != nullptr) take(t);
    }
  }
  while (const task* t = deque.pop()) take(t);
  check(deque.size() == 0, "the deque is not empty");
  for (const int times : taken) check(times == 1, "a task was lost or taken twice");
}

TEST(spawn_deque, loses_and_doubles_nothing) { expect_sound("spawn deque", {.seeds = 20'000}, contest_for_tasks); }
TEST(spawn_deque, without_its_fence_is_found) {
  expect_found(plant::spawn_deque_no_fence, "spawn deque, no fence", {.seeds = 20'000}, contest_for_tasks);
}

TEST(spawn_deque, altered_without_a_look_is_found) {
  expect_found(plant::alter_newest_unchecked, "spawn deque, altered, unchecked", {.seeds = 20'000}, contest_for_tasks);
}

/// The thief comes for one task and finds it gone, while the owner pushes and pops the next.
void find_what_was_just_pushed() {
  detail::init_fences();
  std::array<task, 3> all;
  spawn_deque deque;
  {
    simulated_thread thief{[&] {
      std::array<task*, spawn_deque::steal_most> loot;
      deque.steal(loot.data());
    }};
    for (task& t : all) {
      deque.push(&t);
      deque.pop();  // unless the thief takes it
    }
  }
  check(deque.size() == 0, "the owner found its deque empty, but its task is there");
}
TEST(spawn_deque, is_empty_when_its_owner_finds_it_empty) {
  expect_sound("spawn deque, empty", {.seeds = 20'000}, find_what_was_just_pushed);
}
TEST(spawn_deque, believed_empty_too_early_is_found) {
  expect_found(plant::spawn_deque_empty_early, "spawn deque, empty too early", {.seeds = 20'000},
               find_what_was_just_pushed);
}

/// Two jobs at a time, the younger one joined first. Each is new, so that what a thief finds of it is from this fork.
/// The second two are forked while an exception is in flight.
void contest_for_jobs() {
  detail::init_fences();
  if (!detail::asymmetric_fences) return;  // joins then need the scheduler
  constexpr std::size_t rounds = 2;
  std::array<detail::fork_frame, 2 * rounds> all;
  std::array<detail::fork_slot, 4> slots;
  const detail::fork_frame::function run = [](detail::fork_frame&) noexcept {};
  detail::fork_deque deque;
  deque.base = slots.data();
  deque.end = slots.data() + slots.size();
  deque.limit.store_relaxed(deque.end);
  deque.top.store_relaxed(deque.base);
  deque.bottom.store_relaxed(deque.base);
  for (detail::fork_frame& f : all) f.state.store_relaxed(0);
  for (detail::fork_slot& s : slots) s.store_relaxed(nullptr);
  detail::exception_state exceptions{};
  deque.exceptions = &exceptions;
  std::size_t stolen = 0;
  std::size_t taken_back = 0;
  {
    simulated_thread thief{[&] {
      for (int tries = 0; tries < 2; ++tries) {
        detail::fork_frame* f = nullptr;
        std::uint64_t job = 0;
        {
          const std::lock_guard guard{deque.thieves};
          f = detail::fork_steal(deque);
          if (f == nullptr) continue;
          job = f->state.load_relaxed();
        }
        check(job == reinterpret_cast<std::uint64_t>(run), "a job is stolen before it is there");
        check(f < &all[2], "a job of a clean-up is stolen");
        ++stolen;
        const std::uint64_t waiting = f->shared_state().exchange(detail::fork_frame::done, std::memory_order_acq_rel);
        if (waiting != job) wake(detail::waiter_ref::from_bits(waiting));
      }
    }};
    const auto join = [&](detail::fork_frame& f, detail::fork_slot* slot) {
      if (fork_take_back(f, slot)) {
        ++taken_back;
        check(f.state.load_relaxed() > detail::fork_frame::done, "a job is taken back that a thief has run");
      } else {
        wait_for_thief(f);
      }
    };
    for (std::size_t i = 0; i < all.size(); i += 2) {
      exceptions.uncaught = i / 2;
      detail::fork_slot* const older = fork_push(deque, all[i], run);
      detail::fork_slot* const younger = fork_push(deque, all[i + 1], run);
      join(all[i + 1], younger);
      join(all[i], older);
    }
  }
  check(stolen + taken_back == all.size(), "a job was lost, or run twice");
}

TEST(fork_deque, loses_and_doubles_nothing) { expect_sound("fork deque", {.seeds = 200'000}, contest_for_jobs); }
TEST(fork_deque, without_its_fence_is_found) {
  expect_found(plant::fork_deque_no_fence, "fork deque, no fence", {.seeds = 20'000}, contest_for_jobs);
}
TEST(fork_deque, that_gives_jobs_of_a_clean_up_away_is_found) {
  expect_found(plant::fork_stolen_in_clean_up, "fork deque, stolen in clean-up", {.seeds = 20'000}, contest_for_jobs);
}
TEST(fork_deque, whose_joins_publish_nothing_is_found) {
  expect_found(plant::fork_join_unordered, "fork deque, unordered joins", {.seeds = 500'000}, contest_for_jobs);
}

}  // namespace
}  // namespace ramie::interleave
