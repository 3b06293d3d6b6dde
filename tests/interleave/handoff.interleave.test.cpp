// Fibers that are spawned by the last act of another one, while an idle worker tries to steal: each has to run,
// although no worker is woken for a single new task.
#include "programs.hpp"

#include <ramie/ramie.hpp>

#include <gtest/gtest.h>

namespace ramie::interleave {
namespace {

void spawn_a_chain() {
  wait_group group;
  group.add(3);
  auto third = [&] { group.done(); };
  auto second = [&] {
    spawn(third).detach();
    group.done();
  };
  spawn([&] {
    spawn(second).detach();
    group.done();
  }).detach();
  group.wait();
}
TEST(late_spawns, are_run) { expect_sound("a chain of spawns", {.seeds = 3000}, in_runtime(spawn_a_chain)); }
TEST(late_spawns, left_in_a_deque_found_empty_are_found) {
  expect_found(plant::spawn_deque_empty_early, "a chain of spawns, deque empty too early", {.seeds = 20'000},
               in_runtime(spawn_a_chain));
}

}  // namespace
}  // namespace ramie::interleave
