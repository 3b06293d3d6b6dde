#include <ramie/future/packaged_task.hpp>

#include <ramie/future/async.hpp>
#include <ramie/sync/testing.hpp>

#include <atomic>
#include <memory>
#include <stdexcept>

namespace ramie {
namespace {

using namespace sync_tests;

class tasks : public everywhere {};
INSTANTIATE_TEST_SUITE_P(with, tasks, settings(), ::testing::PrintToStringParamName());

TEST_P(tasks, send_what_they_return_or_throw_to_a_future) {
  const auto use = [] {
    packaged_task<int(int, std::unique_ptr<int>)> add{
        [own = std::make_unique<int>(1)](int a, std::unique_ptr<int> b) { return a + *b + *own; }};
    auto sum = add.get_future();
    add(2, std::make_unique<int>(3));
    EXPECT_EQ(sum.get(), 6);

    packaged_task<void()> fail{[]() -> int { throw std::runtime_error{"no"}; }};
    auto failed = fail.get_future();
    fail();
    EXPECT_THROW(failed.get(), std::runtime_error);

    int object = 0;
    packaged_task<int&()> refer{[&]() -> int& { return object; }};
    refer();
    EXPECT_EQ(&refer.get_future().get(), &object);
  };
  use();
  in_runtime(use);
}

TEST_P(tasks, run_anywhere) {
  in_runtime([] {
    packaged_task<int()> task{[] { return this_fiber::yield(), 5; }};
    auto result = task.get_future();
    spawn(std::move(task)).join();
    EXPECT_EQ(result.get(), 5);
    packaged_task<int()> other{[] { return 6; }};
    result = other.get_future();
    std::thread{std::move(other)}.join();
    EXPECT_EQ(result.get(), 6);
  });
}

TEST_P(tasks, can_be_used_again) {
  in_runtime([] {
    int n = 0;
    packaged_task<int()> task{[&] { return ++n; }};
    auto first = task.get_future();
    task();
    EXPECT_THROW(task(), usage_error);
    EXPECT_EQ(first.get(), 1);
    task.reset();
    auto second = task.get_future();
    EXPECT_FALSE(second.is_ready());
    task();
    EXPECT_EQ(second.get(), 2);
    task.reset();
    auto third = task.get_future();
    task = packaged_task<int()>{};
    EXPECT_THROW(third.get(), broken_promise);
    EXPECT_FALSE(task.valid());
    EXPECT_THROW(task(), usage_error);
    EXPECT_THROW(task.reset(), usage_error);
    EXPECT_THROW(static_cast<void>(task.get_future()), usage_error);
  });
}

TEST_P(tasks, by_async_run_in_fibers_of_their_own) {
  in_runtime([] {
    auto value = async([](int a, int b) { return this_fiber::yield(), a + b; }, 1, 2);
    auto nothing = async([] {});
    auto failure = async([]() -> int { throw std::runtime_error{"no"}; });
    EXPECT_EQ(value.get(), 3);
    nothing.get();
    EXPECT_THROW(failure.get(), std::runtime_error);
    std::vector<future<int>> many;
    for (int i = 0; i < 100; ++i) many.push_back(async([i] { return i * i; }));
    for (int i = 0; i < 100; ++i) EXPECT_EQ(many[static_cast<std::size_t>(i)].get(), i * i);
  });
}

TEST_P(tasks, by_async_outside_of_a_runtime_are_refused) {
  EXPECT_THROW(static_cast<void>(async([] {})), usage_error);
}

TEST_P(tasks, by_async_go_on_when_their_future_goes) {
  std::atomic<bool> done{false};
  in_runtime([&] {
    static_cast<void>(async([&] {
      this_fiber::yield();
      done = true;
    }));
    await([&] { return done.load(); });
  });
}

TEST_P(tasks, by_async_say_so_when_the_runtime_ends_first) {
  future<void> f;
  in_runtime([&] { f = async([] { this_fiber::sleep_for(1h); }); });
  try {
    f.get();
    ADD_FAILURE();
  } catch (const cancelled&) {  // it had started
  } catch (const broken_promise&) {
  }
}

}  // namespace
}  // namespace ramie
