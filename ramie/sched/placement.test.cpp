// Where work goes, by what is asked for, with workers that have no runtime.
#include <ramie/sched/placement.hpp>

#include <ramie/sched/policy.hpp>
#include <ramie/sched/testing.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace ramie::detail {
namespace {

using testing::idle_crew;
using testing::idle_tasks;

runtime_options placed(placement p, int workers = 3) {
  runtime_options o = testing::with_workers(workers);
  o.placement = p;
  return o;
}

/// A crew, and what it takes to place something.
struct placing_crew {
  explicit placing_crew(const runtime_options& options) : workers{options} {}
  explicit placing_crew(placement p = placement::work_stealing) : placing_crew{placed(p)} {}

  /// A task that ran on worker `home`.
  task& ran(std::size_t i, std::size_t home) {
    tasks[i].home.store(&workers[home]);
    tasks[i].where.store(reinterpret_cast<stack*>(&tasks[i]));  // it has begun
    return tasks[i];
  }

  idle_crew workers;
  idle_tasks tasks{8};
  event_desk events;
  sleeper sleeping{workers.all, events};
  recorder seen{workers.all.workers};
  placer placing{workers.all, sleeping, seen};
};

TEST(placement, from_outside_is_for_any_worker) {
  placing_crew c;
  c.placing.place(nullptr, &c.tasks[0]);
  c.placing.place(nullptr, &c.ran(1, 2));
  EXPECT_EQ(c.workers.all.injected.size(), 2u);
  EXPECT_EQ(c.placing.take_injected(c.workers[0], true).start, &c.tasks[0]) << "new tasks first";
  EXPECT_EQ(c.placing.take_injected(c.workers[0], true).start, &c.tasks[1]);
  EXPECT_FALSE(c.placing.take_injected(c.workers[0], true));
}

TEST(placement, of_what_is_woken_is_with_its_waker) {
  placing_crew c;
  c.placing.place(&c.workers[0], &c.ran(0, 2));
  EXPECT_EQ(c.workers[0].ready.size(), 1u);
  EXPECT_EQ(c.workers[0].migrations.value(), 1u);
}

TEST(placement, of_what_is_woken_is_at_home_if_that_is_the_way) {
  placing_crew c;
  c.workers.all.way.set(spread_control::mode::at_home, nullptr);
  c.placing.place(&c.workers[0], &c.ran(0, 2));
  EXPECT_FALSE(c.workers[2].sent.empty());
  c.workers[2].still.store(true);
  c.placing.place(&c.workers[0], &c.ran(1, 2));
  EXPECT_EQ(c.workers[0].ready.size(), 1u) << "the other one stands still";
  task& homeless = c.ran(2, 1);
  homeless.flags.fetch_or(task::homeless_flag);
  c.placing.place(&c.workers[0], &homeless);
  EXPECT_EQ(c.workers[0].ready.size(), 2u);
}

TEST(placement, of_what_is_pinned_is_with_its_worker) {
  placing_crew c;
  c.placing.pin(c.tasks[0], 1, "option");
  c.placing.place(&c.workers[0], &c.tasks[0]);
  c.placing.open_inbox(c.workers[1]);
  EXPECT_EQ(c.workers[1].ready.size(), 1u);
  EXPECT_EQ(c.workers[1].spawned.size(), 0u) << "it must not be stolen as a new task";
  EXPECT_THROW(c.placing.pin(c.tasks[1], 3, "option"), invalid_argument);
  EXPECT_THROW(c.placing.pin(c.tasks[1], -1, "option"), invalid_argument);
}

TEST(placement, dedicated_goes_round_and_stays) {
  placing_crew c{placement::dedicated};
  EXPECT_FALSE(c.workers.all.steals);
  for (std::size_t i = 0; i < 6; ++i) c.placing.place(nullptr, &c.tasks[i]);
  for (std::size_t i = 0; i < 3; ++i) {
    c.placing.open_inbox(c.workers[i]);
    EXPECT_EQ(c.workers[i].spawned.size(), 2u) << i;
  }
  EXPECT_EQ(home_of(c.tasks[4]), &c.workers[1]);
  c.tasks[4].where.store(reinterpret_cast<stack*>(&c.tasks[4]));
  c.placing.place(&c.workers[0], &c.tasks[4]);
  EXPECT_FALSE(c.workers[1].sent.empty());
}

TEST(placement, by_a_policy_asks_it_for_all_but_what_is_pinned) {
  struct remembering : scheduling_policy {
    void put(runnable r, int worker) noexcept override {
      from.push_back(worker);
      queue.push(r);
    }
    runnable take(int) noexcept override { return queue.pop(); }
    bool has_work(int) const noexcept override { return !queue.empty(); }
    runnable_queue queue;
    std::vector<int> from;
  };
  const auto policy = std::make_shared<remembering>();
  runtime_options o = placed(placement::work_stealing);
  o.policy = policy;
  placing_crew c{o};
  EXPECT_FALSE(c.placing.wakes_here());
  EXPECT_FALSE(c.placing.spawns_here());
  c.placing.place(nullptr, &c.tasks[0]);
  c.placing.place(&c.workers[2], &c.ran(1, 1));
  c.placing.pin(c.tasks[2], 1, "option");
  c.placing.place(nullptr, &c.tasks[2]);
  EXPECT_EQ(policy->from, (std::vector<int>{-1, 2}));
  EXPECT_EQ(c.placing.take_by_policy(c.workers[0]).start, &c.tasks[0]);
  EXPECT_EQ(c.placing.take_by_policy(c.workers[0]).start, &c.tasks[1]);
  EXPECT_FALSE(c.placing.take_by_policy(c.workers[0]));
}

TEST(placement, hands_all_but_what_is_pinned_to_the_worker_that_runs_all) {
  placing_crew c;
  c.workers.all.way.set(spread_control::mode::together, &c.workers[1]);
  c.workers[0].ready.push(&c.ran(0, 0));
  c.placing.pin(c.tasks[1], 0, "option");
  c.workers[0].ready.push(&c.tasks[1]);
  c.workers[0].sent.push(&c.ran(2, 0));
  c.placing.hand_over(c.workers[0]);
  EXPECT_EQ(c.workers[0].ready.size(), 1u);
  c.placing.open_inbox(c.workers[1]);
  EXPECT_EQ(c.workers[1].ready.size(), 2u);
}

TEST(placement, lets_others_take_what_was_sent_but_pinned_work) {
  placing_crew c;
  c.placing.pin(c.tasks[0], 1, "option");
  c.workers[1].sent.push(&c.tasks[0]);
  c.workers[1].sent.push(&c.ran(1, 1));
  std::vector<ready_item> taken;
  c.placing.take_from_inbox(c.workers[1], [&](ready_item item) { taken.push_back(item); });
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].as_resident(), &c.tasks[1]);
  EXPECT_FALSE(c.workers[1].sent.empty());
}

}  // namespace
}  // namespace ramie::detail
