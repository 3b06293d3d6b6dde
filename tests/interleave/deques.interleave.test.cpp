// The spawn deque by itself: an owner that pushes and pops, thieves that steal.
#include "simulator.hpp"

#include <ramie/machine/fence.hpp>
#include <ramie/queue/spawn_deque.hpp>
#include <ramie/task/task.hpp>

#include <gtest/gtest.h>

#include <array>
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

}  // namespace
}  // namespace ramie::interleave
