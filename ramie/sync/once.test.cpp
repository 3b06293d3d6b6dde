#include <ramie/sync/once.hpp>

#include <ramie/sync/testing.hpp>

#include <atomic>
#include <memory>
#include <stdexcept>

namespace ramie {
namespace {

using namespace sync_tests;

class once : public everywhere {};
INSTANTIATE_TEST_SUITE_P(with, once, settings(), ::testing::PrintToStringParamName());

TEST_P(once, is_once_for_all) {
  runtime rt{options()};
  for (int round = 0; round < rounds(200); ++round) {
    once_flag flag;
    int calls = 0;
    crowd(rt, 6, 2, [&](int who) {
      call_once(
          flag,
          [&](int n) {
            if (who % 2 == 0) this_fiber::yield();
            calls += n;
          },
          1);
      EXPECT_EQ(calls, 1);  // the others find it done, not under way
    });
  }
}

TEST_P(once, is_tried_again_after_an_exception) {
  runtime rt{options()};
  for (int round = 0; round < rounds(100); ++round) {
    once_flag flag;
    std::atomic<int> tries{0};
    std::atomic<int> failures{0};
    crowd(rt, 6, 2, [&](int) {
      try {
        call_once(flag, [&] {
          const int n = ++tries;
          this_fiber::yield();
          if (n < 4) throw std::runtime_error{"not yet"};
        });
      } catch (const std::runtime_error&) {
        ++failures;
      }
    });
    EXPECT_EQ(tries, 4);
    EXPECT_EQ(failures, 3);
  }
}

TEST_P(once, passes_arguments_and_calls_members) {
  in_runtime([] {
    struct counter {
      int value = 0;
      void add(std::unique_ptr<int> n) { value += *n; }
    } c;
    once_flag flag;
    call_once(flag, &counter::add, &c, std::make_unique<int>(5));
    call_once(flag, &counter::add, &c, std::make_unique<int>(5));
    EXPECT_EQ(c.value, 5);
  });
}

TEST_P(once, names_a_call_from_within) {
  const auto use = [] {
    once_flag flag;
    call_once(flag, [&] { EXPECT_THROW(call_once(flag, [] {}), usage_error); });
  };
  use();
  in_runtime(use);
}

TEST_P(once, is_not_waited_for_by_the_cancelled) {
  in_runtime([] {
    once_flag flag;
    call_once(flag, [&] { expect_cancelled([&] { call_once(flag, [] { ADD_FAILURE(); }); }); });
  });
}

TEST_P(once, is_tried_again_after_a_cancellation) {
  in_runtime([] {
    once_flag flag;
    std::atomic<bool> begun{false};
    auto h = spawn([&] {
      call_once(flag, [&] {
        begun = true;
        this_fiber::sleep_for(1h);
      });
    });
    await([&] { return begun.load(); });
    let_others_run();
    auto other = spawn([&] {
      bool mine = false;
      call_once(flag, [&] { mine = true; });
      return mine;
    });
    let_others_run();
    h.request_stop();
    EXPECT_THROW(h.join(), cancelled);
    EXPECT_TRUE(other.join());
  });
}

}  // namespace
}  // namespace ramie
