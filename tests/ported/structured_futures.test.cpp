// Behaviours of futures, deferred calls and values made once, after the tests of the standard library and Boost.Fiber
// (libstdc++ testsuite/30_threads/{async,promise,future,packaged_task,call_once}; Boost.Fiber test_async, test_promise,
// test_packaged_task; Go's sync.OnceValue tests), as programs for ramie.
#include <ramie/ramie.hpp>

#include <ramie/fiber/testing.hpp>

#include <future>
#include <memory>
#include <stdexcept>
#include <string>

namespace ramie {
namespace {

using namespace fiber_tests;

class futures : public with_workers {};
INSTANTIATE_TEST_SUITE_P(on, futures, few_and_many());

template <class F>
std::error_code code_of(F f) {
  try {
    f();
  } catch (const future_error& e) {
    return e.code();
  }
  return {};
}

// async/sync.cc: a deferred call is made by its waiter, in place.
TEST_P(futures, a_deferred_call_is_made_by_its_first_waiter) {
  in_runtime([] {
    const fiber_id me = this_fiber::get_id();
    int calls = 0;
    auto f = async(std::launch::deferred, [&] {
      ++calls;
      return this_fiber::get_id() == me;
    });
    this_fiber::yield();
    EXPECT_EQ(calls, 0);
    EXPECT_EQ(f.wait_for(0ms), std::future_status::deferred);
    EXPECT_EQ(f.wait_until(std::chrono::steady_clock::now() + 1ms), std::future_status::deferred);
    f.wait();
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(f.wait_for(0ms), std::future_status::ready);
    EXPECT_TRUE(f.get());
    EXPECT_EQ(calls, 1);
  });
}

// async/forced_unwind, async/any: what a deferred call throws is thrown by get; arguments are kept.
TEST_P(futures, deferred_calls_keep_arguments_and_pass_on_exceptions) {
  in_runtime([] {
    auto sum =
        async(std::launch::deferred, [](int a, std::unique_ptr<int> b) { return a + *b; }, 4, std::make_unique<int>(5));
    EXPECT_EQ(sum.get(), 9);
    auto bad = async(std::launch::deferred, [] { throw std::runtime_error{"deferred"}; });
    EXPECT_EQ(message_of<std::runtime_error>([&] { bad.get(); }), "deferred");
    static int place = 3;
    auto reference = async(std::launch::deferred, []() -> int& { return place; });
    EXPECT_EQ(&reference.get(), &place);
  });
}

// async/dr2100: a deferred call without a waiter is never made, and is dropped.
TEST_P(futures, a_deferred_call_without_a_waiter_is_dropped) {
  counted::reset();
  in_runtime([] {
    int calls = 0;
    {
      auto f = async(std::launch::deferred, [&, c = counted{1}] { ++calls; });
    }
    EXPECT_EQ(calls, 0);
  });
  EXPECT_EQ(counted::alive, 0);
}

// shared futures: many waiters, one call.
TEST_P(futures, a_deferred_call_with_many_waiters_is_made_once) {
  in_runtime([] {
    std::atomic<int> calls{0}, right{0};
    auto f = async(std::launch::deferred, [&] {
               ++calls;
               this_fiber::sleep_for(1ms);
               return 6;
             }).share();
    scope s;
    for (int i = 0; i < 8; ++i)
      s.spawn([&, mine = f] {
        this_fiber::yield();
        right += mine.get() == 6 ? 1 : 0;
      });
    s.join();
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(right, 8);
  });
}

// async/launch.cc: std::launch::async starts at once.
TEST_P(futures, launch_async_starts_without_a_waiter) {
  in_runtime([] {
    std::atomic<bool> ran{false};
    auto f = async(std::launch::async, [&] { ran = true; });
    await([&] { return ran.load(); });
    f.get();
    EXPECT_EQ(async(std::launch::async | std::launch::deferred, [] { return 3; }).get(), 3);
  });
}

// Boost.Fiber, fibers::async(policy, allocator, ...): options for the fiber.
TEST_P(futures, async_takes_options) {
  in_runtime([] {
    auto name = async(
        fiber_options{.name = "counter", .stack_size = 512 * 1024},
        [](int n) { return std::string{this_fiber::name()} + std::to_string(n); }, 4);
    EXPECT_EQ(name.get(), "counter4");
  });
}

// promise/members/{set_value2,get_future2,at_thread_exit}.cc: errors with the codes of the standard.
TEST_P(futures, errors_have_the_codes_of_the_standard) {
  in_runtime([] {
    promise<int> p;
    auto f = p.get_future();
    EXPECT_EQ(code_of([&] { static_cast<void>(p.get_future()); }), std::future_errc::future_already_retrieved);
    p.set_value(1);
    EXPECT_EQ(code_of([&] { p.set_value(2); }), std::future_errc::promise_already_satisfied);
    EXPECT_EQ(code_of([&] { p.set_exception(std::make_exception_ptr(1)); }),
              std::future_errc::promise_already_satisfied);
    EXPECT_EQ(f.get(), 1);
    EXPECT_EQ(code_of([&] { f.get(); }), std::future_errc::no_state);
    future<int> orphan;
    {
      promise<int> gone;
      orphan = gone.get_future();
    }
    EXPECT_EQ(code_of([&] { orphan.get(); }), std::future_errc::broken_promise);
    packaged_task<int()> none;
    EXPECT_EQ(code_of([&] { none(); }), std::future_errc::no_state);
    packaged_task twice{[] {}};
    twice();
    EXPECT_EQ(code_of([&] { twice(); }), std::future_errc::promise_already_satisfied);
  });
}

int doubled(int n) noexcept { return 2 * n; }

// packaged_task/cons/deduction.cc.
TEST_P(futures, packaged_tasks_deduce_their_signature) {
  static_assert(
      std::is_same_v<decltype(packaged_task{[](int, char) { return 1.0; }}), packaged_task<double(int, char)>>);
  static_assert(std::is_same_v<decltype(packaged_task{[]() mutable {}}), packaged_task<void()>>);
  in_runtime([] {
    packaged_task from_function{+[](int n) { return n + 1; }};
    auto f = from_function.get_future();
    from_function(4);
    EXPECT_EQ(f.get(), 5);
    packaged_task move_only{[p = std::make_unique<int>(doubled(2))] { return *p; }};
    auto g = move_only.get_future();
    move_only();
    EXPECT_EQ(g.get(), 4);
  });
}

// Go's TestOnceValue, TestOnceValuePanic: once for all callers; its exception is thrown to the caller.
TEST_P(futures, a_once_value_is_made_once) {
  in_runtime([] {
    std::atomic<int> calls{0};
    once_value number{[&] {
      this_fiber::sleep_for(1ms);
      return ++calls;
    }};
    std::atomic<int> sum{0};
    scope s;
    for (int i = 0; i < 10; ++i) s.spawn([&] { sum += number.get(); });
    s.join();
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(sum, 10);
    int attempts = 0;
    once_value bad{[&]() -> std::string {
      if (++attempts == 1) throw std::runtime_error{"first"};
      return "second";
    }};
    EXPECT_EQ(message_of<std::runtime_error>([&] { static_cast<void>(bad.get()); }), "first");
    EXPECT_EQ(*bad, "second");
    EXPECT_EQ(bad->size(), 6u);
    EXPECT_EQ(attempts, 2);
  });
}

// A cancelled call is distinguished from a cancelled waiter.
TEST_P(futures, a_cancelled_call_says_whose_cancellation_it_is) {
  future<void> f;
  {
    runtime rt{options()};
    std::atomic<bool> begun{false};
    f = rt.run([&] {
      auto started = async([&] {
        begun = true;
        this_fiber::sleep_for(1h);
      });
      await([&] { return begun.load(); });
      return started;
    });
  }
  EXPECT_THROW(f.get(), child_cancelled);
}

}  // namespace
}  // namespace ramie
