// Scopes that are not nested: they do not end in the reverse order of their beginning.
#include <ramie/fiber/scope.hpp>

#include <ramie/fiber/testing.hpp>

#include <array>
#include <atomic>
#include <cstddef>

namespace ramie {
namespace {

using namespace fiber_tests;

class scopes_of_one_fiber : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, scopes_of_one_fiber, few_and_many());

TEST_P(scopes_of_one_fiber, may_be_joined_in_any_order) {
  in_runtime([] {
    std::array<std::atomic<int>, 6> runs{};
    const auto child = [&runs](std::size_t i) { return [&runs, i] { ++runs[i]; }; };
    for (int round = 1; round <= scaled(2000); ++round) {
      scope outer;
      outer.spawn(child(0));
      scope middle;
      middle.spawn(child(1));
      scope inner;
      inner.spawn(child(2));
      middle.join();
      inner.spawn(child(3));
      outer.join();
      outer.spawn(child(4));
      inner.join();
      middle.spawn(child(5));
      outer.join();
      middle.join();
      for (const std::atomic<int>& n : runs) ASSERT_EQ(n, round);
    }
  });
}

TEST_P(scopes_of_one_fiber, may_be_joined_inside_a_fork) {
  in_runtime([] {
    for (int round = 0; round < scaled(2000); ++round) {
      std::atomic<int> first{0}, second{0}, other{0};
      scope s;
      s.spawn([&] { ++first; });
      ramie::fork_join(
          [&] {
            s.join();
            s.spawn([&] { ++second; });
          },
          [&] { ++other; });
      s.join();
      ASSERT_EQ(first, 1);
      ASSERT_EQ(second, 1);
      ASSERT_EQ(other, 1);
    }
  });
}

TEST_P(scopes_of_one_fiber, know_without_children_what_was_below_them) {
  in_runtime([] {
    for (int round = 0; round < scaled(2000); ++round) {
      std::atomic<int> x{0}, y{0}, g{0};
      scope a;
      a.spawn([&] { ++x; });
      scope b;
      a.join();
      // The job of this fork is now where a's child was when b began.
      ramie::fork_join([&] { b.spawn([&] { ++y; }); }, [&] { ++g; });
      b.join();
      ASSERT_EQ(x, 1);
      ASSERT_EQ(y, 1);
      ASSERT_EQ(g, 1);
    }
  });
}

}  // namespace
}  // namespace ramie
