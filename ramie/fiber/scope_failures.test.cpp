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

}  // namespace
}  // namespace ramie
