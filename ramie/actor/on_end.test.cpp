#include <ramie/actor/on_end.hpp>

#include <ramie/actor/actor.hpp>
#include <ramie/actor/testing.hpp>
#include <ramie/channel/select.hpp>

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace ramie {
namespace {

using namespace actor_tests;

class idle : public actor<idle> {
 public:
  void on(int) {}
};

class ends_of_actors : public ::testing::TestWithParam<int> {
 protected:
  template <class F>
  static void run(F f) {
    runtime rt{{.workers = GetParam()}};
    rt.run(std::move(f));
  }
};
INSTANTIATE_TEST_SUITE_P(on, ends_of_actors, ::testing::Values(1, 2, 8));

TEST_P(ends_of_actors, are_cases_of_a_select) {
  run([] {
    channel<int> c{1}, never;
    const auto one = spawn_actor<idle>(), other = spawn_actor<idle>();
    static_cast<void>(c.send(1));
    EXPECT_EQ(select(on_ready(one), on_recv(c, [](auto) {})), 1u);
    EXPECT_EQ(
        select(on_ready(one), on_ready(other), on_recv(never, [](auto) {}), on_timeout(std::chrono::microseconds{50})),
        3u);
    auto killer = spawn([&] { other.kill(); });
    EXPECT_EQ(select(on_ready(one), on_recv(never, [](auto) {}), on_ready(other), on_ready(other)) & ~std::size_t{1},
              2u);
    EXPECT_FALSE(other.alive());
    EXPECT_EQ(other.join().kind(), exit_kind::killed);
    killer.join();
    one.stop();
    select(on_ready(any_actor{one}));
    EXPECT_FALSE(one.alive());
    EXPECT_THROW(select(on_ready(any_actor{}), otherwise()), usage_error);
  });
}

TEST_P(ends_of_actors, reach_all_selects) {
  run([] {
    const auto a = spawn_actor<idle>();
    channel<int> never;
    std::vector<join_handle<std::size_t>> all;
    for (int i = 0; i < 20; ++i) all.push_back(spawn([&] { return select(on_recv(never, [](auto) {}), on_ready(a)); }));
    a.stop();
    for (auto& h : all) EXPECT_EQ(h.join(), 1u);
  });
}

}  // namespace
}  // namespace ramie
