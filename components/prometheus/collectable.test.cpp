// The optional component: what it gives to prometheus-cpp, and that runtimes may come and go meanwhile.
#include <ramie/prometheus.hpp>
#include <ramie/ramie.hpp>

#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <atomic>
#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace ramie {
namespace {

using families = std::vector<::prometheus::MetricFamily>;

const ::prometheus::MetricFamily* find(const families& all, const std::string& name) {
  for (const ::prometheus::MetricFamily& family : all)
    if (family.name == name) return &family;
  return nullptr;
}

std::string label(const ::prometheus::ClientMetric& metric, const std::string& name) {
  for (const auto& l : metric.label)
    if (l.name == name) return l.value;
  return {};
}

void work(runtime& rt, int fibers) {
  rt.run([=] {
    for (int i = 1; i < fibers; ++i) spawn([] { this_fiber::yield(); }).join();
  });
}

TEST(prometheus_collectables, give_what_the_statistics_say) {
  runtime rt{{.workers = 2, .name = "shop", .spare_workers = 0}};
  prometheus_collectable all;
  const auto served = all.add(rt);
  work(rt, 100);
  const families now = all.Collect();
  const auto* spawned = find(now, "ramie_spawned_total");
  ASSERT_NE(spawned, nullptr);
  EXPECT_EQ(spawned->type, ::prometheus::MetricType::Counter);
  ASSERT_EQ(spawned->metric.size(), 1u);
  EXPECT_EQ(spawned->metric[0].counter.value, 100);
  EXPECT_EQ(label(spawned->metric[0], "runtime"), "shop");
  const auto* dispatches = find(now, "ramie_dispatches_total");
  ASSERT_NE(dispatches, nullptr);
  ASSERT_EQ(dispatches->metric.size(), 2u);
  EXPECT_EQ(label(dispatches->metric[1], "worker"), "1");
  EXPECT_GE(dispatches->metric[0].counter.value + dispatches->metric[1].counter.value, 100);
  const auto* workers = find(now, "ramie_workers");
  ASSERT_NE(workers, nullptr);
  EXPECT_EQ(workers->type, ::prometheus::MetricType::Gauge);
  EXPECT_EQ(workers->metric.at(0).gauge.value, 2);
  EXPECT_EQ(find(now, "ramie_run_seconds"), nullptr);  // not recorded
}

TEST(prometheus_collectables, give_histograms_that_add_up) {
  runtime rt{{.workers = 1, .name = "measured"}};
  rt.record({.trace = false, .histograms = true});
  prometheus_collectable all;
  const auto served = all.add(rt);
  work(rt, 200);
  const families now = all.Collect();
  const auto* run = find(now, "ramie_run_seconds");
  ASSERT_NE(run, nullptr);
  EXPECT_EQ(run->type, ::prometheus::MetricType::Histogram);
  const auto& h = run->metric.at(0).histogram;
  EXPECT_GE(h.sample_count, 200u);
  EXPECT_GT(h.sample_sum, 0);
  ASSERT_GT(h.bucket.size(), 2u);
  for (std::size_t i = 1; i < h.bucket.size(); ++i) {
    EXPECT_LT(h.bucket[i - 1].upper_bound, h.bucket[i].upper_bound);
    EXPECT_LE(h.bucket[i - 1].cumulative_count, h.bucket[i].cumulative_count);
  }
  EXPECT_TRUE(std::isinf(h.bucket.back().upper_bound));
  EXPECT_EQ(h.bucket.back().cumulative_count, h.sample_count);
}

/// Every line of samples from prometheus-cpp is in ramie's own text, except for the format of numbers.
TEST(prometheus_collectables, serve_the_names_of_to_prometheus) {
  runtime rt{{.workers = 2, .name = "same"}};
  rt.record({.trace = false, .histograms = true});
  prometheus_collectable all;
  const auto served = all.add(rt);
  work(rt, 50);
  const auto names = [](const std::string& text) {
    std::set<std::string> found;
    for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
      if (text[at] != '#') found.insert(text.substr(at, text.find('{', at) - at));
    return found;
  };
  const auto of_library = names(::prometheus::TextSerializer{}.Serialize(all.Collect()));
  EXPECT_EQ(of_library, names(to_prometheus(rt.statistics())));
  EXPECT_GT(of_library.size(), 15u);
}

TEST(prometheus_collectables, keep_runtimes_apart_in_one_family) {
  runtime a{{.workers = 1, .name = "a"}}, b{{.workers = 1, .name = "b"}}, c{{.workers = 1, .name = "b"}};
  prometheus_collectable all;
  const auto first = all.add(a), second = all.add(b), third = all.add(c, "c");
  work(c, 7);
  const families now = all.Collect();
  std::set<std::string> names;
  for (const auto& family : now) EXPECT_TRUE(names.insert(family.name).second) << family.name << " twice";
  const auto* spawned = find(now, "ramie_spawned_total");
  ASSERT_NE(spawned, nullptr);
  ASSERT_EQ(spawned->metric.size(), 3u);
  EXPECT_EQ(label(spawned->metric[2], "runtime"), "c");
  EXPECT_EQ(spawned->metric[2].counter.value, 7);
}

TEST(prometheus_collectables, refuse_what_would_be_served_twice) {
  runtime a{{.workers = 1, .name = "twin"}}, b{{.workers = 1, .name = "twin"}};
  prometheus_collectable all;
  const auto first = all.add(a);
  EXPECT_THROW(static_cast<void>(all.add(b)), usage_error);
  EXPECT_THROW(static_cast<void>(all.add(a, "other")), usage_error);
  EXPECT_EQ(find(all.Collect(), "ramie_live")->metric.size(), 1u);
}

TEST(prometheus_collectables, forget_a_runtime_with_its_registration) {
  prometheus_collectable all;
  EXPECT_TRUE(all.Collect().empty());
  prometheus_collectable::registration kept;
  runtime rt{{.workers = 1, .name = "short"}};
  {
    auto served = all.add(rt);
    EXPECT_FALSE(all.Collect().empty());
    kept = std::move(served);
  }
  EXPECT_FALSE(all.Collect().empty());
  kept = {};
  EXPECT_TRUE(all.Collect().empty());
  kept = all.add(rt);  // again, under the same name
  rt.shutdown();
  EXPECT_EQ(find(all.Collect(), "ramie_live")->metric.at(0).gauge.value, 0);
}

TEST(prometheus_collectables, may_go_before_registrations) {
  runtime rt{{.workers = 1}};
  std::optional<prometheus_collectable> all{std::in_place};
  const auto served = all->add(rt);
  all.reset();
}

TEST(prometheus_collectables, are_asked_while_runtimes_come_and_go) {
  const auto all = std::make_shared<prometheus_collectable>();
  std::atomic<bool> over{false};
  std::thread server{[&] {
    while (!over)
      for (const auto& family : all->Collect()) EXPECT_LE(family.metric.size(), 2u * 2u);
  }};
  std::vector<std::thread> users;
  for (const char* name : {"left", "right"})
    users.emplace_back([&, name] {
      for (int i = 0; i < 30; ++i) {
        runtime rt{{.workers = 2, .name = name, .spare_workers = 0}};
        const auto served = all->add(rt);
        work(rt, 20);
      }
    });
  for (std::thread& user : users) user.join();
  over = true;
  server.join();
  EXPECT_TRUE(all->Collect().empty());
}

}  // namespace
}  // namespace ramie
