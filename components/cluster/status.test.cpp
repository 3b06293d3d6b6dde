// What a node shows of itself.
#include "test_nodes.hpp"

#include <ramie/inspect.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace ramie {
namespace {

using namespace cluster_tests;

const status_table* table_of(const std::vector<status_table>& all, const std::string& name) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const status_table& t) { return t.name == name; });
  return found == all.end() ? nullptr : &*found;
}

/// Of the row whose first labels are these.
std::uint64_t figure(const std::vector<status_table>& all, const std::string& table,
                     const std::vector<std::string>& labels, const std::string& name) {
  const status_table* const t = table_of(all, table);
  if (t == nullptr) return 0;
  const auto column =
      static_cast<std::size_t>(std::find(t->figures.begin(), t->figures.end(), name) - t->figures.begin());
  for (const status_table::row& r : t->rows)
    if (std::equal(labels.begin(), labels.end(), r.labels.begin())) return r.figures.at(column);
  ADD_FAILURE() << "no such row";
  return 0;
}

std::string dump_text() {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return {};
  std::string text;
  std::thread reader{[&] {
    std::array<char, 4096> part{};
    for (ssize_t n = 0; (n = ::read(ends[0], part.data(), part.size())) > 0;)
      text.append(part.data(), static_cast<std::size_t>(n));
  }};
  EXPECT_TRUE(dump(ends[1]));
  ::close(ends[1]);
  reader.join();
  ::close(ends[0]);
  return text;
}

TEST(node_status, has_links_and_shards_while_the_node_lives) {
  run([] {
    {
      two_nodes n;
      for (std::uint64_t i = 0; i < 100; ++i) n.there.tell(number{i});
      ASSERT_EQ(n.there.ask(order_kept{}), 100);
      const auto set = n.a.shards<counter>("shown", {.count = 8, .lease = 1s});
      ASSERT_EQ(set.of("key").ask_for(60s, total{}).value, 0);

      const auto all = status_tables();
      const std::vector<std::string> link{"test", "a", "b"};
      EXPECT_EQ(figure(all, "cluster_link", link, "open"), 1u);
      EXPECT_GT(figure(all, "cluster_link", link, "sent_bytes_total"), 100u);
      EXPECT_GE(figure(all, "cluster_link", link, "proxies"), 1u);
      EXPECT_GT(figure(all, "cluster_link", link, "credit_bytes"), 0u);
      EXPECT_EQ(figure(all, "cluster_node", {"test", "b"}, "links"), 1u);
      EXPECT_EQ(figure(all, "cluster_shards", {"test", "a", "shown", "a"}, "shards"), 8u);
      const std::string metrics = to_prometheus(all);
      EXPECT_NE(
          metrics.find("ramie_cluster_link_sent_bytes_total{cluster=\"test\",node=\"a\",peer=\"b\",incarnation=\""),
          metrics.npos)
          << metrics;

      const std::string text = blocking([] { return dump_text(); });
      EXPECT_NE(text.find("cluster test, node a, incarnation "), text.npos) << text;
      EXPECT_NE(text.find("  link to b ("), text.npos) << text;
      EXPECT_NE(text.find("  shards shown: 8 of 8 here, 0 nobody's; the lease is held"), text.npos) << text;
    }
    EXPECT_EQ(table_of(status_tables(), "cluster_link"), nullptr);
  });
}

}  // namespace
}  // namespace ramie
