// Which of several failures comes out of a scope.
#include <ramie/fiber/cancellation.hpp>
#include <ramie/fiber/scope.hpp>
#include <ramie/fiber/testing.hpp>

#include <atomic>
#include <stdexcept>

namespace ramie {
namespace {

using namespace fiber_tests;

class failures_in_a_scope : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, failures_in_a_scope, few_and_many());

/// A stop ends one child, and another fails while it saves its work.
TEST_P(failures_in_a_scope, outrank_a_cancellation) {
  in_runtime([] {
    captured_stderr output;
    for (const bool saves_first : {false, true}) {
      event never;
      std::atomic<int> begun{0};
      auto owner = spawn([&] {
        scope s;
        for (const bool saves : {saves_first, !saves_first})
          s.spawn(fiber_options{}, [&, saves] {
            try {
              ++begun;
              never.wait();
            } catch (const cancelled&) {
              if (!saves) throw;
              shield([] { this_fiber::yield(); });
              throw std::runtime_error{"could not be saved"};
            }
          });
        s.join();
      });
      while (begun != 2) this_fiber::yield();
      owner.request_stop();
      EXPECT_EQ(message_of<std::runtime_error>([&] { owner.join(); }), "could not be saved");
    }
    EXPECT_EQ(output.text(), "");
  });
}

TEST_P(failures_in_a_scope, stop_the_rest_also_if_they_come_from_elsewhere) {
  in_runtime([] {
    scope s;
    event began;
    s.spawn([&] {
      began.set();
      this_fiber::yield();
      throw std::runtime_error{"elsewhere"};
    });
    began.wait();
    const auto go_on = [&] {  // it has waited: a child that comes after the failure tells of it
      for (int i = 0; i < 10; ++i) s.spawn([] { this_fiber::yield(); });
      s.join();
    };
    EXPECT_EQ(message_of<std::runtime_error>(go_on), "elsewhere");
  });
}

}  // namespace
}  // namespace ramie
