// Ramie's own plain data: what wakers, ends, queues and locks hand over. Each protocol with its order, and without,
// which the watch over plain data has to find (plain_memory.hpp): nothing else would, on a machine that keeps stores in
// order.
#include "programs.hpp"

#include <ramie/ramie.hpp>
#include <ramie/sync/mutex.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <optional>
#include <vector>

namespace ramie::interleave {
namespace {

constexpr exploration until_found{.seeds = 20'000};

/// A sender writes into the place of a receiver that waits, and wakes it.
void hand_a_value_to_a_waiter() {
  channel<int> c;
  simulated_thread sender{[&] {
    wait_a_little();
    static_cast<void>(c.send(5));
  }};
  check(c.recv() == 5, "a wrong value");
}
TEST(what_a_waker_hands_over, is_ordered) { expect_sound("a value", {.seeds = 3000}, hand_a_value_to_a_waiter); }
TEST(what_a_waker_hands_over, without_its_order_is_found) {
  expect_race_found(plant::claim_unordered, "a value, unordered", until_found, hand_a_value_to_a_waiter);
}

/// The result of a fiber lies in its task.
void join_for_a_result() {
  runtime rt{workers(1)};
  auto fiber = rt.spawn([] { return 5; });
  while (!fiber.has_ended()) detail::os_sleep(500);
  check(fiber.join() == 5, "a wrong result");
}
TEST(a_result, is_ordered_before_the_end) { expect_sound("a result", {.seeds = 2000}, join_for_a_result); }
TEST(a_result, without_its_order_is_found) {
  expect_race_found(plant::end_unordered, "a result, unordered", until_found, join_for_a_result);
}

/// The queue of a mutex lies on its waiters' stacks.
void queue_for_a_mutex() {
  mutex lock;
  int inside = 0;
  std::vector<simulated_thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 2; ++k) {
        const std::lock_guard guard{lock};
        ++inside;
        if (pick(2) == 0) detail::os_sleep(1000 * pick(30));
      }
    });
  for (auto& t : threads) t.join();
  check(inside == 6, "two were inside at once");
}
TEST(a_waiter_in_a_queue, is_ordered_before_its_turn) {
  expect_sound("a mutex's queue", {.seeds = 3000}, queue_for_a_mutex);
}
TEST(a_waiter_in_a_queue, without_its_order_is_found) {
  expect_race_found(plant::waiter_unordered, "a mutex's queue, unordered", until_found, queue_for_a_mutex);
}

/// A worker that owns the lock of a channel, and a plain thread that ends that.
void take_from_a_worker() {
  channel<int> c{4};
  runtime rt{workers(1)};
  auto fiber = rt.spawn([&] {
    for (int i = 0; i < 6; ++i)
      while (c.try_send(i) != channel_status::ok) this_fiber::sleep_for(std::chrono::microseconds{1});
  });
  int sum = 0;
  for (int got = 0; got < 6;) {
    if (const std::optional<int> v = c.try_recv()) {
      sum += *v;
      ++got;
    } else {
      detail::os_sleep(500);
    }
  }
  fiber.join();
  check(sum == 15, "a value was lost or came twice");
}
TEST(what_an_owned_lock_guards, is_ordered) { expect_sound("an owner's data", {.seeds = 2000}, take_from_a_worker); }
TEST(what_an_owned_lock_guards, without_its_order_is_found) {
  expect_race_found(plant::mail_unordered, "an owner's data, unordered", until_found, take_from_a_worker);
}

}  // namespace
}  // namespace ramie::interleave
