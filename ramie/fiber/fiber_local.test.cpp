// Every fiber has its own value, from its first use to its end.
#include <ramie/fiber/fiber_local.hpp>

#include <ramie/fiber/fork_join.hpp>
#include <ramie/fiber/testing.hpp>
#include <ramie/machine/test_options.hpp>

#include <memory>
#include <set>
#include <stdexcept>
#include <string>

namespace ramie {
namespace {

using namespace fiber_tests;

class locals : public ::testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  static runtime_options options() {
    runtime_options o;
    o.workers = std::get<0>(GetParam());
    return o;
  }

 private:
  detail::with_test_options migrating_{{.migrate_always = std::get<1>(GetParam())}};
};
INSTANTIATE_TEST_SUITE_P(with, locals, ::testing::Combine(::testing::Values(1, 2, 8), ::testing::Bool()));

TEST_P(locals, belong_to_one_fiber_each) {
  static fiber_local<int> number;
  static fiber_local<std::string> text{[] { return std::string{"new"}; }};
  runtime rt{options()};
  std::vector<join_handle<void>> handles;
  for (int i = 0; i < scaled(200); ++i)
    handles.push_back(rt.spawn([i] {
      EXPECT_FALSE(number.has_value());
      EXPECT_EQ(*number, 0);
      EXPECT_TRUE(number.has_value());
      EXPECT_EQ(text.get(), "new");
      int& kept = *number;
      for (int k = 0; k < 5; ++k) {
        *number = i + k;
        *text = std::to_string(i);
        this_fiber::yield();
        if (k % 2 == 0) this_fiber::sleep_for(1us);
        EXPECT_EQ(&*number, &kept);
        EXPECT_EQ(kept, i + k);
        EXPECT_EQ(text->size(), std::to_string(i).size());
      }
    }));
  for (auto& h : handles) h.join();
}

TEST_P(locals, belong_to_one_thread_each) {
  fiber_local<int> number;
  *number = 1;
  std::thread{[&] {
    EXPECT_FALSE(number.has_value());
    *number = 2;
  }}.join();
  EXPECT_EQ(*number, 1);
  runtime rt{options()};
  rt.run([&] {
    EXPECT_FALSE(number.has_value());
    *number = 3;
  });
  EXPECT_EQ(*number, 1);
}

TEST_P(locals, end_before_a_join_sees_the_fiber_end) {
  counted::reset();
  static fiber_local<counted> value;
  runtime rt{options()};
  for (int i = 0; i < scaled(100); ++i) {
    rt.spawn([] { value->value = 1; }).join();
    EXPECT_EQ(counted::alive, 0);
    EXPECT_THROW(rt.spawn([] {
                     value->value = 1;
                     this_fiber::yield();
                     throw std::runtime_error{"on the way out"};
                   }).join(),
                 std::runtime_error);
    EXPECT_EQ(counted::alive, 0);
    auto stopped = rt.spawn([] {
      value->value = 1;
      this_fiber::sleep_for(1h);
    });
    stopped.request_stop();
    EXPECT_THROW(stopped.join(), cancelled);
    EXPECT_EQ(counted::alive, 0);
    rt.spawn(fiber_options{.stack_size = 64 * 1024}, [] { value->value = 1; }).join();
    EXPECT_EQ(counted::alive, 0);
  }
  std::thread{[] { value->value = 1; }}.join();
  EXPECT_EQ(counted::alive, 0);
  rt.spawn([] { value->value = 1; }).detach();
  rt.shutdown();
  EXPECT_EQ(counted::alive, 0);
}

/// Records its destruction.
struct witness {
  std::vector<int>* journal = nullptr;
  int number = 0;
  witness() = default;
  witness(const witness&) = delete;
  ~witness() {
    if (journal != nullptr) journal->push_back(number);
  }
};

TEST_P(locals, end_in_the_reverse_order_of_their_making) {
  static fiber_local<std::unique_ptr<witness>> a;
  static fiber_local<std::unique_ptr<witness>> b;
  static fiber_local<std::unique_ptr<witness>> c;
  std::vector<int> journal;
  const auto make = [&](auto& local, int number) {
    *local = std::make_unique<witness>();
    (*local)->journal = &journal;
    (*local)->number = number;
  };
  runtime rt{options()};
  rt.run([&] {
    make(b, 1);
    make(a, 2);
    make(c, 3);
  });
  EXPECT_EQ(journal, (std::vector<int>{3, 2, 1}));
}

TEST_P(locals, may_suspend_and_use_others_when_they_end) {
  static fiber_local<int> plain;
  static fiber_local<int> late;
  struct busy {
    int* sum = nullptr;
    ~busy() {
      this_fiber::yield();
      *late = 5;  // made only now
      if (sum != nullptr) *sum = *plain + *late;
    }
  };
  static fiber_local<busy> last;
  runtime rt{options()};
  int sum = 0;
  rt.run([&] {
    *plain = 7;
    last->sum = &sum;
  });
  EXPECT_EQ(sum, 12);
}

TEST_P(locals, whose_making_fails_are_tried_again) {
  bool fail = true;
  fiber_local<int> value{[&] { return fail ? throw std::runtime_error{"not yet"} : 3; }};
  runtime rt{options()};
  rt.run([&] {
    EXPECT_THROW(static_cast<void>(value.get()), std::runtime_error);
    EXPECT_FALSE(value.has_value());
    fail = false;
    EXPECT_EQ(*value, 3);
  });
}

TEST_P(locals, are_shared_by_the_fork_jobs_of_a_fiber) {
  // A new one each time, so that the jobs race for its making.
  runtime rt{options()};
  for (int round = 0; round < scaled(300); ++round) {
    counted::reset();
    rt.run([] {
      fiber_local<counted> value;
      const auto where = [&] { return &*value; };
      auto [a, b, c] = fork_join(where, [&] { return this_fiber::yield(), where(); }, where);
      EXPECT_EQ(a, b);
      EXPECT_EQ(b, c);
    });
    EXPECT_EQ(counted::alive, 0);
  }
}

TEST_P(locals, may_outlive_their_variable) {
  counted::reset();
  runtime rt{options()};
  rt.run([] {
    for (int i = 0; i < 10; ++i) {
      fiber_local<counted> brief;
      brief->value = i;
    }
    EXPECT_EQ(counted::alive, 10);
  });
  EXPECT_EQ(counted::alive, 0);
}

TEST_P(locals, that_make_each_other_for_ever_come_to_an_end) {
  struct reborn {
    fiber_local<reborn>* own = nullptr;
    ~reborn() {
      if (own != nullptr) (*own)->own = own;
    }
  };
  static fiber_local<reborn> value;
  runtime rt{options()};
  if (sanitized) GTEST_SKIP() << "loses what it must";
  rt.run([] { value->own = &value; });
}

}  // namespace
}  // namespace ramie
