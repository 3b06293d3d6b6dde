// Which of several failures comes out of a scope.
#include <ramie/fiber/cancellation.hpp>
#include <ramie/fiber/scope.hpp>
#include <ramie/fiber/spawn.hpp>
#include <ramie/fiber/testing.hpp>

#include <atomic>
#include <memory>
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

struct server {
  scope children;
};

/// A child that waits, until it is cancelled.
auto waits(std::atomic<int>& begun, std::atomic<int>& cut_off) {
  return [&] {
    ++begun;
    try {
      this_fiber::sleep_for(1h);
    } catch (const cancelled&) {
      ++cut_off;
      throw;
    }
  };
}

// A scope in an object on the heap has no owner: what ends the one who waits for its children reaches them by it.
TEST_P(failures_in_a_scope, that_is_not_on_a_stack_are_those_of_its_joiner) {
  in_runtime([] {
    for (const bool joins : {true, false}) {
      std::atomic<int> begun{0}, cut_off{0};
      const auto serve = [&] {
        const auto s = std::make_unique<server>();
        s->children.spawn(fiber_options{}, waits(begun, cut_off));
        s->children.spawn(fiber_options{}, waits(begun, cut_off));
        await([&] { return begun == 2; });
        if (joins) s->children.join();
      };
      if (joins) EXPECT_THROW(with_timeout(1ms, serve), timeout_error);
      else with_timeout(1ms, serve);
      EXPECT_EQ(cut_off, 2);

      std::atomic<int> again{0};
      auto h = spawn([&] {
        const auto s = std::make_unique<server>();
        s->children.spawn(fiber_options{}, waits(again, cut_off));
        s->children.join();
      });
      await([&] { return again == 1; });
      h.request_stop();
      EXPECT_THROW(h.join(), child_cancelled);
      EXPECT_EQ(cut_off, 3);
    }
  });
}

TEST_P(failures_in_a_scope, that_is_not_on_a_stack_come_from_whoever_joins_it) {
  in_runtime([] {
    const auto s = std::make_unique<server>();
    std::atomic<int> begun{0}, cut_off{0};
    event end;
    auto adding = spawn([&] {
      s->children.spawn(fiber_options{}, waits(begun, cut_off));
      s->children.spawn(fiber_options{}, [&] {
        ++begun;
        shield([&] { end.wait(); });
      });
    });
    adding.join();
    await([&] { return begun == 2; });
    auto joining = spawn([&] { s->children.join(); });
    this_fiber::yield();
    joining.request_stop();
    await([&] { return cut_off == 1; });
    EXPECT_FALSE(joining.has_ended()) << "it waits for all of them, also if it is stopped";
    end.set();
    EXPECT_THROW(joining.join(), child_cancelled);
    s->children.spawn(fiber_options{}, [&] { throw std::runtime_error{"no"}; });
    EXPECT_THROW(s->children.join(), std::runtime_error);
    std::atomic<int> ran{0};
    s->children.spawn(fiber_options{}, [&] { ++ran; });
    s->children.spawn([&] { ++ran; });
    s->children.join();
    EXPECT_EQ(ran, 2);
  });
}

}  // namespace
}  // namespace ramie
