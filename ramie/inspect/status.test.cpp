#include <ramie/inspect/status.hpp>

#include <ramie/inspect/dump.hpp>

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <unistd.h>
#include <vector>

namespace ramie {
namespace {

struct pumps final : status_source {
  explicit pumps(std::string where) : place{std::move(where)} {}
  [[nodiscard]] std::vector<status_table> tables() const override {
    return {{"pump", "A pump.", {"place"}, {"litres_total", "speed"}, {{{place}, {7, 2}}}}};
  }
  void dump(status_text& to) const noexcept override { to << "pump " << place << ": " << std::uint64_t{7} << " l\n"; }
  std::string place;
};

const status_table* find(const std::vector<status_table>& all, const std::string& name) {
  for (const status_table& t : all)
    if (t.name == name) return &t;
  return nullptr;
}

std::string dumped() {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return {};
  EXPECT_TRUE(dump(ends[1]));
  ::close(ends[1]);
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t n = 0; (n = ::read(ends[0], part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<std::size_t>(n));
  ::close(ends[0]);
  return text;
}

TEST(status, has_one_table_for_all_sources_of_a_name_while_they_are_registered) {
  EXPECT_EQ(find(status_tables(), "pump"), nullptr);
  const pumps cellar{"cellar"}, roof{"roof"};
  {
    const status_registration one{cellar}, two{roof};
    const std::vector<status_table> all = status_tables();
    const status_table* const t = find(all, "pump");
    ASSERT_NE(t, nullptr);
    ASSERT_EQ(t->rows.size(), 2U);
    EXPECT_EQ(t->rows[0].labels, std::vector<std::string>{"cellar"});
    EXPECT_EQ(t->rows[1].labels, std::vector<std::string>{"roof"});
  }
  EXPECT_EQ(find(status_tables(), "pump"), nullptr);
}

TEST(status, is_prometheus_text) {
  const std::vector<status_table> all{
      {"pump", "A pump.", {"place", "by"}, {"litres_total", "speed"}, {{{"a \"b\"\\\n", "x"}, {7, 2}}}}};
  EXPECT_EQ(to_prometheus(all),
            "# HELP ramie_pump_litres_total A pump.\n# TYPE ramie_pump_litres_total counter\n"
            "ramie_pump_litres_total{place=\"a \\\"b\\\"\\\\\\n\",by=\"x\"} 7\n"
            "# HELP ramie_pump_speed A pump.\n# TYPE ramie_pump_speed gauge\n"
            "ramie_pump_speed{place=\"a \\\"b\\\"\\\\\\n\",by=\"x\"} 2\n");
}

TEST(status, is_in_dumps) {
  const pumps cellar{"cellar"};
  {
    const status_registration one{cellar};
    const std::string text = dumped();
    EXPECT_NE(text.find("\npump cellar: 7 l\n"), text.npos) << text;
  }
  EXPECT_EQ(dumped().find("pump"), std::string::npos);
}

/// Looks at what is shown while it is asked.
struct curious final : status_source {
  [[nodiscard]] std::vector<status_table> tables() const override {
    text = dumped();
    return {};
  }
  void dump(status_text& to) const noexcept override { to << "never\n"; }
  mutable std::string text;
};

TEST(status, does_not_keep_a_dump_waiting) {
  const curious c;
  const status_registration one{c};
  static_cast<void>(status_tables());
  EXPECT_NE(c.text.find("looked at by others"), c.text.npos) << c.text;
  EXPECT_EQ(c.text.find("never"), c.text.npos);
}

}  // namespace
}  // namespace ramie
