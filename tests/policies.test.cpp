// Programs that once went wrong under other ways to place work than the default, under all of them: the built-in ones,
// and policies as a user would write them.
#include <ramie/ramie.hpp>

#include <lab/harness/policies.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace ramie {
namespace {

using namespace std::chrono_literals;

enum class way { work_stealing, no_affinity, dedicated, shared_queue, round_robin };

class placed : public ::testing::TestWithParam<std::tuple<way, int>> {
 protected:
  runtime_options options() const {
    const auto [how, workers] = GetParam();
    runtime_options o{.workers = workers, .name = "placed"};
    if (how == way::no_affinity) o.placement = placement::stealing_no_affinity;
    if (how == way::dedicated) o.placement = placement::dedicated;
    if (how == way::shared_queue) o.policy = std::make_shared<lab::shared_queue>();
    if (how == way::round_robin) o.policy = std::make_shared<lab::round_robin>(workers);
    return o;
  }
};

std::string name_of(const ::testing::TestParamInfo<std::tuple<way, int>>& of) {
  constexpr const char* names[] = {"work_stealing", "no_affinity", "dedicated", "shared_queue", "round_robin"};
  return std::string{names[static_cast<int>(std::get<0>(of.param))]} + "_" + std::to_string(std::get<1>(of.param));
}

INSTANTIATE_TEST_SUITE_P(by, placed,
                         ::testing::Combine(::testing::Values(way::work_stealing, way::no_affinity, way::dedicated,
                                                              way::shared_queue, way::round_robin),
                                            ::testing::Values(1, 2, 8)),
                         name_of);

// Many selects on both sides of several channels: each number is delivered once.
TEST_P(placed, selects_deliver_exactly_once) {
  constexpr int pairs = 20, each = RAMIE_TSAN || RAMIE_ASAN ? 100 : 500, total = pairs * each;
  std::vector<std::atomic<int>> seen(total);
  runtime rt{options()};
  rt.run([&] {
    channel<int> first, second{1}, third{16};
    event over;
    scope senders, receivers;
    for (int r = 0; r < pairs; ++r)
      receivers.spawn([&] {
        for (bool more = true; more;) {
          const auto take = [&](std::optional<int> x) { ++seen[static_cast<std::size_t>(*x)]; };
          select(on_recv(first, take), on_recv(second, take), on_recv(third, take),
                 on_ready(over, [&] { more = false; }));
        }
      });
    for (int s = 0; s < pairs; ++s)
      senders.spawn([&, s] {
        for (int i = 0; i < each; ++i) {
          const int x = s * each + i;
          const auto sent = [](channel_status how) { EXPECT_EQ(how, channel_status::ok); };
          select(on_send(first, x, sent), on_send(second, x, sent), on_send(third, x, sent));
          if (i % 64 == 0) this_fiber::yield();
        }
      });
    senders.join();
    while (second.size() + third.size() != 0) this_fiber::yield();
    over.set();
    receivers.join();
  });
  EXPECT_EQ(std::count_if(seen.begin(), seen.end(), [](const auto& n) { return n != 1; }), 0);
}

struct waits_at_its_end {
  std::atomic<int>* ended = nullptr;
  ~waits_at_its_end() {
    if (ended == nullptr) return;
    channel<int> never;
    select(on_recv(never, [](std::optional<int>) {}), on_timeout(1ms, [] {}));
    ++*ended;
  }
};

// A select with a timeout in the destructor of a fiber_local, while the runtime ends.
TEST_P(placed, destructors_of_fiber_locals_may_select_while_the_runtime_ends) {
  constexpr int fibers = 50;
  std::atomic<int> ended{0};
  static fiber_local<waits_at_its_end> local;
  {
    runtime rt{options()};
    wait_group begun;
    begun.add(fibers);
    for (int i = 0; i < fibers; ++i)
      rt.spawn([&] {
          local->ended = &ended;
          begun.done();
          this_fiber::sleep_for(1h);
        }).detach();
    begun.wait();
    rt.shutdown();
  }
  EXPECT_EQ(ended, fibers);
}

}  // namespace
}  // namespace ramie
