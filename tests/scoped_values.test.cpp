// What is bound is seen below, in whatever runs there, and nowhere else.
#include <ramie/fiber/scoped_value.hpp>

#include <ramie/fiber/blocking.hpp>
#include <ramie/fiber/fork_join.hpp>
#include <ramie/fiber/in_scope.hpp>
#include <ramie/fiber/parallel.hpp>
#include <ramie/fiber/testing.hpp>
#include <ramie/machine/test_options.hpp>

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace ramie {
namespace {

using namespace fiber_tests;

class bound_values : public ::testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  static runtime_options options() {
    runtime_options o;
    o.workers = std::get<0>(GetParam());
    return o;
  }

 private:
  detail::with_test_options migrating_{{.migrate_always = std::get<1>(GetParam())}};
};
INSTANTIATE_TEST_SUITE_P(with, bound_values, ::testing::Combine(::testing::Values(1, 2, 8), ::testing::Bool()));

/// How many there are.
struct counted_value {
  static inline std::atomic<int> alive{0};
  int n;
  explicit counted_value(int i) : n{i} { ++alive; }
  counted_value(const counted_value& other) : n{other.n} { ++alive; }
  counted_value& operator=(const counted_value&) = delete;
  ~counted_value() { --alive; }
};

const scoped_value<std::string> name{"name"};
const scoped_value<counted_value> counted{"counted"};

TEST(bound_values_on_a_thread, are_seen_inside_and_only_there) {
  EXPECT_EQ(name.find(), nullptr);
  EXPECT_EQ(name.value_or("none"), "none");
  const int result = name.with("outer", [] {
    EXPECT_EQ(name.get(), "outer");
    const std::string* const before = name.find();
    name.with(std::string{"inner"}, [] { EXPECT_EQ(name.get(), "inner"); });
    EXPECT_EQ(name.find(), before);
    EXPECT_THROW(name.with("thrown", [] { throw std::runtime_error{"out"}; }), std::runtime_error);
    EXPECT_EQ(name.value_or("none"), "outer");
    std::thread{[] { EXPECT_EQ(name.find(), nullptr); }}.join();
    return 7;
  });
  EXPECT_EQ(result, 7);
  EXPECT_EQ(name.find(), nullptr);
}

TEST(bound_values_on_a_thread, say_what_is_missing) {
  try {
    static_cast<void>(name.get());
    ADD_FAILURE() << "nothing is bound";
  } catch (const usage_error& e) {
    EXPECT_STREQ(e.what(),
                 "ramie: scoped_value \"name\": no value is bound here: the call is not below a `with` of it");
  }
}

TEST(bound_values_on_a_thread, go_with_what_is_run_and_spawned) {
  runtime rt;
  name.with("main", [&] {
    rt.run([] { EXPECT_EQ(name.get(), "main"); });
    auto spawned = rt.spawn([] { return name.get(); });
    EXPECT_EQ(spawned.join(), "main");
  });
  rt.run([] { EXPECT_EQ(name.find(), nullptr); });
}

TEST_P(bound_values, outlive_the_function_in_fibers_that_it_spawned) {
  {
    runtime rt{options()};
    rt.run([] {
      std::vector<join_handle<void>> spawned;
      std::atomic<bool> go{false};
      for (int i = 0; i < 100; ++i)
        counted.with(i, [&] {
          spawned.push_back(spawn([&go, i] {
            while (!go.load()) this_fiber::sleep_for(100us);
            EXPECT_EQ(counted.get().n, i);
            fork_join([&] { EXPECT_EQ(counted.get().n, i); }, [&] { EXPECT_EQ(counted.get().n, i); });
          }));
        });
      EXPECT_EQ(counted.find(), nullptr);
      EXPECT_EQ(counted_value::alive.load(), 100);
      go = true;
      for (auto& s : spawned) s.join();
      EXPECT_EQ(counted_value::alive.load(), 0);
      // One that nobody asks for, and one that never runs.
      counted.with(1, [] { spawn([] { EXPECT_EQ(counted.get().n, 1); }).detach(); });
      counted.with(2, [] { spawn([] { this_fiber::sleep_for(1h); }).detach(); });
    });
  }
  EXPECT_EQ(counted_value::alive.load(), 0);
}

TEST_P(bound_values, do_not_pile_up_where_each_fiber_starts_the_next) {
  runtime rt{options()};
  struct step {
    static void take(int left, std::atomic<int>& most) {
      const int now = counted_value::alive.load();
      if (now > most.load()) most = now;
      if (left != 0) counted.with(left, [&] { spawn([left, &most] { take(left - 1, most); }).join(); });
    }
    static void go_on(int left, std::atomic<int>& most, std::atomic<bool>& over) {
      if (const int now = counted_value::alive.load(); now > most.load()) most = now;
      if (left == 0) over = true;
      else counted.with(left, [&] { spawn([left, &most, &over] { go_on(left - 1, most, over); }).detach(); });
    }
  };
  std::atomic<int> most{0};
  rt.run([&] { step::take(5, most); });
  EXPECT_EQ(most.load(), 5) << "each waits for the next, and keeps its own";
  most = 0;
  std::atomic<bool> over{false};
  rt.run([&] {
    step::go_on(2000, most, over);
    await([&] { return over.load() && counted_value::alive.load() == 0; });
  });
  EXPECT_LT(most.load(), 1000);
}

TEST_P(bound_values, do_not_pile_up_where_two_take_turns) {
  runtime rt{options()};
  static const scoped_value<counted_value> other{"other"};
  struct step {
    static void go_on(int left, std::atomic<int>& most, std::atomic<bool>& over) {
      if (const int now = counted_value::alive.load(); now > most.load()) most = now;
      if (left == 0) {
        over = true;
        return;
      }
      counted.with(left, [&] {
        other.with(left, [&] { spawn([left, &most, &over] { go_on(left - 1, most, over); }).detach(); });
      });
    }
  };
  std::atomic<int> most{0};
  std::atomic<bool> over{false};
  rt.run([&] {
    step::go_on(2000, most, over);
    await([&] { return over.load() && counted_value::alive.load() == 0; });
  });
  EXPECT_LT(most.load(), 1000);
}

TEST_P(bound_values, end_with_the_fiber_and_not_with_its_handle) {
  runtime rt{options()};
  rt.run([] {
    std::atomic<bool> runs{false};
    auto kept = counted.with(1, [&] { return spawn([&] { runs = true; }); });
    await([&] { return runs.load() && counted_value::alive.load() == 0; });
    kept.join();
  });
}

TEST_P(bound_values, may_look_and_wait_when_they_are_destroyed) {
  struct looks_back {
    std::atomic<int>* sees;
    explicit looks_back(std::atomic<int>* to) : sees{to} {}
    looks_back(const looks_back&) = delete;
    looks_back& operator=(const looks_back&) = delete;
    ~looks_back() {
      this_fiber::yield();
      fork_join([] { this_fiber::yield(); }, [] { this_fiber::yield(); });
      *sees = name.find() == nullptr ? 1 : 2;
    }
  };
  static const scoped_value<looks_back> looking{"looking"};
  runtime rt{options()};
  rt.run([] {
    std::atomic<int> sees{0};
    looking.with(&sees, [] { this_fiber::yield(); });
    EXPECT_EQ(sees.load(), 1);
    sees = 0;
    name.with("around", [&] {
      looking.with(&sees, [] { spawn([] { this_fiber::sleep_for(1ms); }).detach(); });
      EXPECT_EQ(sees.load(), 0);
    });
    await([&] { return sees.load() != 0; });
    EXPECT_EQ(sees.load(), 1);
  });
}

TEST_P(bound_values, can_be_left_behind) {
  runtime rt{options()};
  rt.run([] {
    counted.with(1, [] {
      auto other = without_scoped_values([] {
        EXPECT_EQ(counted.find(), nullptr);
        fork_join([] { EXPECT_EQ(counted.find(), nullptr); }, [] { EXPECT_EQ(counted.find(), nullptr); });
        counted.with(2, [] { EXPECT_EQ(counted.get().n, 2); });
        return spawn([] { EXPECT_EQ(counted.find(), nullptr); });
      });
      EXPECT_EQ(counted.get().n, 1);
      other.join();
    });
  });
}

/// A call as often as not, so that who runs it differs.
template <class F>
void in_turn(int i, F f) {
  if (i % 2 == 0) this_fiber::yield();
  f();
}

TEST_P(bound_values, of_a_scope_do_not_depend_on_where_it_is_joined) {
  runtime rt{options()};
  rt.run([] {
    name.with("around", [] {
      for (int i = 0; i < scaled(200); ++i) {
        scope s;
        const auto child = [&] {
          EXPECT_EQ(name.get(), "around");
          fork_join([] { EXPECT_EQ(name.get(), "around"); }, [] { EXPECT_EQ(name.get(), "around"); });
          name.with("inner", [] { EXPECT_EQ(name.get(), "inner"); });
        };
        in_turn(i, [&] { s.spawn(child); });
        name.with("spawning", [&] { s.spawn(child); });
        name.with("joining", [&] {
          s.spawn(child);
          s.join();
          EXPECT_EQ(name.get(), "joining");
        });
        fork_join([&] { name.with("half", [&] { s.spawn(child); }); }, [] {});
      }
    });
  });
  // A plain thread's children are calls, where they are spawned.
  name.with("around", [] {
    scope s;
    name.with("inside", [&] { s.spawn([] { EXPECT_EQ(name.get(), "around"); }); });
    s.join();
  });
}

// What opens a binding, a scope and a fork must not be laid out in one frame.
TEST_P(bound_values, are_told_apart_from_forks_beside_them) {
  runtime rt{options()};
  rt.run([] {
    for (int i = 0; i < scaled(200); ++i) {
      scope before;
      counted.with(i, [&] {
        scope inside;
        before.spawn(fiber_options{}, [] { EXPECT_EQ(counted.find(), nullptr); });
        inside.spawn(fiber_options{}, [i] { EXPECT_EQ(counted.get().n, i); });
        fork_join([&] { EXPECT_EQ(counted.get().n, i); },
                  [&] {
                    this_fiber::yield();
                    EXPECT_EQ(counted.get().n, i);
                  });
        inside.join();
      });
      scope after;
      after.spawn(fiber_options{}, [] { EXPECT_EQ(counted.find(), nullptr); });
      before.join();
      after.join();
    }
  });
  EXPECT_EQ(counted_value::alive.load(), 0);
}

TEST_P(bound_values, are_looked_up_while_the_owner_binds_others) {
  runtime rt{options()};
  rt.run([] {
    counted.with(7, [] {
      scope s;
      std::atomic<bool> over{false};
      for (int k = 0; k < 4; ++k)
        s.spawn(fiber_options{}, [&] {
          while (!over.load()) {
            fork_join([] { EXPECT_EQ(counted.get().n, 7); }, [] { EXPECT_EQ(counted.get().n, 7); });
            this_fiber::yield();
          }
        });
      for (int i = 0; i < scaled(5000); ++i) {
        counted.with(i, [&] { EXPECT_EQ(counted.get().n, i); });
        if (i % 16 == 0) this_fiber::yield();
      }
      over = true;
      s.join();
    });
  });
}

TEST_P(bound_values, of_a_scope_are_those_around_it) {
  runtime rt{options()};
  rt.run([] {
    name.with("around", [] {
      std::atomic<int> seen{0};
      {
        scope s;
        name.with("inside", [&] {
          for (int i = 0; i < 50; ++i)
            s.spawn(fiber_options{}, [&seen] {
              this_fiber::yield();
              EXPECT_EQ(name.get(), "around");
              ++seen;
            });
        });
        s.join();
      }
      EXPECT_EQ(seen.load(), 50);
    });
    // Nobody knows what stays around one on the heap.
    struct owner {
      scope children;
    };
    auto on_heap = std::make_unique<owner>();
    name.with("around", [&] {
      on_heap->children.spawn(fiber_options{}, [] { EXPECT_EQ(name.find(), nullptr); });
      on_heap->children.join();
    });
  });
}

TEST_P(bound_values, go_with_blocking_calls) {
  runtime rt{options()};
  rt.run([&] {
    counted.with(3, [&] {
      EXPECT_EQ(blocking([] { return counted.get().n; }), 3);
      blocking([&] {
        counted.with(4, [&] { rt.run([] { EXPECT_EQ(counted.get().n, 4); }); });
        EXPECT_EQ(counted.get().n, 3);
      });
    });
    blocking([] { EXPECT_EQ(counted.find(), nullptr); });
  });
  EXPECT_EQ(counted_value::alive.load(), 0);
}

// ---- random programs, which carry what they expect -----------------------------------------------------------------

constexpr int names = 3;
const std::array<scoped_value<counted_value>, names> values;
using expected = std::array<int, names>;

void check(const expected& want) {
  for (std::size_t i = 0; i < names; ++i) {
    const counted_value* const found = values[i].find();
    ASSERT_EQ(found == nullptr ? -1 : found->n, want[i]) << "value " << i;
  }
}

// NOLINTNEXTLINE(misc-no-recursion): that is what is tested
void wander(unsigned seed, int depth, expected want) {
  std::minstd_rand random{seed};
  check(want);
  if (depth == 0) return;
  const auto below = [&] { return static_cast<unsigned>(random()); };
  for (int i = 0; i < 3; ++i) {
    switch (random() % 8) {
      case 0:
      case 1: {
        const std::size_t which = random() % names;
        const int n = static_cast<int>(random() % 1000);
        expected inside = want;
        inside[which] = n;
        values[which].with(n, [&, s = below()] { wander(s, depth - 1, inside); });
        break;
      }
      case 2:
        fork_join([&, s = below()] { wander(s, depth - 1, want); }, [&, s = below()] { wander(s, depth - 1, want); });
        break;
      case 3: {
        scope all;
        const std::size_t which = random() % names;
        for (int k = 0; k < 3; ++k) all.spawn([&, s = below()] { wander(s, depth - 1, want); });
        if (random() % 2 == 0) all.spawn(fiber_options{}, [&, s = below()] { wander(s, depth - 1, want); });
        if (random() % 2 == 0) values[which].with(1001, [&] { all.join(); });
        else all.join();
        break;
      }
      case 4: {
        auto one = spawn([=, s = below()] { wander(s, depth - 1, want); });
        if (random() % 2 == 0) one.detach();
        else one.join();
        break;
      }
      case 5: blocking([&] { check(want); }); break;
      case 6:
        in_scope([&](scope& s) {
          s.spawn([&, next = below()] { wander(next, depth - 1, want); });
          s.spawn([&, next = below()] { wander(next, depth - 1, want); });
        });
        break;
      default: this_fiber::yield();
    }
    check(want);
  }
}

TEST_P(bound_values, are_what_random_programs_expect) {
  {
    runtime rt{options()};
    for (int round = 0; round < scaled(20); ++round)
      rt.run([&] { wander(17u + static_cast<unsigned>(round), 5, {-1, -1, -1}); });
    // Those that are detached have ended, too.
    rt.run([] { spawn([] {}).join(); });
  }
  EXPECT_EQ(counted_value::alive.load(), 0);
}

TEST_P(bound_values, are_seen_by_all_of_a_parallel_loop) {
  runtime rt{options()};
  rt.run([] {
    counted.with(5, [] {
      std::atomic<int> sum{0};
      parallel_for(0, 1000, [&](int) { sum += counted.get().n; });
      EXPECT_EQ(sum.load(), 5000);
    });
  });
}

}  // namespace
}  // namespace ramie
