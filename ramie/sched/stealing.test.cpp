// What a worker finds that has nothing to do, with workers that have no runtime.
#include <ramie/sched/stealing.hpp>

#include <ramie/sched/testing.hpp>

#include <gtest/gtest.h>

namespace ramie::detail {
namespace {

using testing::idle_crew;
using testing::idle_tasks;

class steals : public ::testing::Test {
 protected:
  /// What worker 0 finds, in as many searches as it takes to see that another one stands still.
  work find() {
    for (;;)
      if (work found = stealing.search(workers[0], true)) return found;
  }

  idle_crew workers{2};
  idle_tasks tasks{8};
  event_desk events;
  sleeper sleeping{workers.all, events};
  recorder seen{workers.all.workers};
  placer placing{workers.all, sleeping, seen};
  stealer stealing{workers.all, placing, events};
};

TEST_F(steals, nothing_from_nobody) {
  EXPECT_FALSE(stealing.search(workers[0], true));
  EXPECT_GE(workers[0].stealing.searched(), cycles_in_us(thief::search_us));
  EXPECT_EQ(workers[0].steals_tried.value(), 0u);
}

TEST_F(steals, the_oldest_new_task_and_more) {
  for (std::size_t i = 0; i < 8; ++i) workers[1].spawned.push(&tasks[i]);
  EXPECT_EQ(find().start, &tasks[0]);
  EXPECT_EQ(workers[0].spawned.size(), 3u);
  EXPECT_EQ(workers[0].spawned.pop(), &tasks[3]);
  EXPECT_EQ(workers[1].spawned.size(), 4u);
  EXPECT_EQ(workers[0].steals_done.value(), 1u);
}

TEST_F(steals, half_of_what_is_ready_if_pairs_move) {
  workers.all.way.set(spread_control::mode::spread, nullptr);
  for (std::size_t i = 0; i < 6; ++i) workers[1].ready.push(&tasks[i]);
  EXPECT_EQ(find().start, &tasks[0]);
  EXPECT_EQ(workers[0].ready.size(), 2u);
  EXPECT_EQ(workers[1].ready.size(), 3u);
}

TEST_F(steals, what_lies_before_a_worker_that_stands_still) {
  workers[1].ready.push(&tasks[0]);
  EXPECT_EQ(find().start, &tasks[0]);
  workers[1].spawned.push(&tasks[1]);
  EXPECT_EQ(find().start, &tasks[1]);
  workers[1].sent.push(&tasks[2]);
  EXPECT_EQ(find().start, &tasks[2]);
}

TEST_F(steals, not_what_is_pinned) {
  placing.pin(tasks[0], 1, "option");
  workers[1].ready.push(&tasks[0]);
  placing.pin(tasks[1], 1, "option");
  workers[1].sent.push(&tasks[1]);
  workers[1].spawned.push(&tasks[2]);
  EXPECT_EQ(find().start, &tasks[2]);
  EXPECT_EQ(workers[1].ready.size(), 1u);
  EXPECT_FALSE(workers[1].sent.empty());
}

TEST_F(steals, what_is_queued_behind_pinned_work) {
  for (const std::size_t i : {0u, 2u}) placing.pin(tasks[i], 1, "option");
  for (std::size_t i = 0; i < 6; ++i) workers[1].ready.push(&tasks[i]);
  EXPECT_EQ(find().start, &tasks[1]);
  EXPECT_EQ(workers[0].ready.pop().as_resident(), &tasks[3]);
  EXPECT_EQ(workers[0].ready.pop().as_resident(), &tasks[4]);
  for (const std::size_t i : {0u, 2u, 5u}) EXPECT_EQ(workers[1].ready.pop().as_resident(), &tasks[i]);
}

TEST_F(steals, what_any_worker_may_take_first) {
  workers.all.injected.push_new(&tasks[0]);
  for (std::size_t i = 1; i < 4; ++i) workers[1].spawned.push(&tasks[i]);
  EXPECT_EQ(find().start, &tasks[0]);
}

TEST_F(steals, nothing_while_its_own_inbox_waits) {
  for (std::size_t i = 1; i < 4; ++i) workers[1].spawned.push(&tasks[i]);
  workers[0].sent.push(&tasks[0]);
  EXPECT_FALSE(stealing.search(workers[0], true));
}

}  // namespace
}  // namespace ramie::detail
