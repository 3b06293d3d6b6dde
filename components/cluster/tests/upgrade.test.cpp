// A rolling upgrade: processes of an old and of a new version of a program in one cluster.
#include "../test_nodes.hpp"

#include <map>
#include <string>

namespace ramie {
namespace {

using namespace cluster_tests;

/// What a node of `version` says of its requests to node `other`.
std::map<std::string, std::string> said_by(const std::string& version, const std::string& other) {
  process p{{program("test_cluster_" + version), server().url(), "asker", other}, "-"};
  std::map<std::string, std::string> said;
  for (std::string line; !(line = p.line()).empty();) {
    const std::size_t colon = line.find(": ");
    said[line.substr(0, colon)] = line.substr(colon + 2, line.size() - colon - 3);
  }
  return said;
}

struct serving {
  process node;
  explicit serving(const std::string& version)
      : node{{program("test_cluster_" + version), server().url(), version}, "-"} {
    EXPECT_EQ(node.line(), "ready\n");
  }
};

TEST(upgrades, old_nodes_are_understood_by_new_ones_and_refused_where_they_would_not_be) {
  const serving here{"new"};
  auto said = said_by("old", "new");
  EXPECT_EQ(said["order"], "new desk: tea 3 none 0");  // what was not sent is as the initialisers say
  EXPECT_EQ(
      said["price"],
      R"(refused: ramie: actor down: failed: ramie: cluster: on node new a upgrade::desk takes upgrade.price as "1:t = t", not as )"
      R"("1:s = t")");
  EXPECT_EQ(said["parcel"].substr(0, 8), "refused:") << said["parcel"];
  EXPECT_NE(said["parcel"].find("upgrade.address"), std::string::npos) << said["parcel"];
  EXPECT_NE(said["invoice"].find(R"(takes upgrade.invoice as " = s", not as " = t")"), std::string::npos);
  EXPECT_EQ(said["after it"], "new desk: cake 1 none 0");
}

TEST(upgrades, new_nodes_are_understood_by_old_ones_and_refused_where_they_would_not_be) {
  const serving here{"old"};
  auto said = said_by("new", "old");
  EXPECT_EQ(said["order"], "old desk: tea 3, 7 days");  // what they do not know they skip
  EXPECT_EQ(
      said["price"],
      R"(refused: ramie: actor down: failed: ramie: cluster: on node old a upgrade::desk takes upgrade.price as "1:s = t", not as )"
      R"("1:t = t")");
  EXPECT_EQ(said["parcel"].substr(0, 8), "refused:") << said["parcel"];
  EXPECT_NE(said["invoice"].find(R"(takes upgrade.invoice as " = t", not as " = s")"), std::string::npos);
  EXPECT_EQ(
      said["refund"],
      "refused: ramie: actor down: failed: ramie: cluster: on node old a upgrade::desk does not take upgrade.refund");
  EXPECT_EQ(said["after it"], "old desk: cake 1, 7 days");
}

}  // namespace
}  // namespace ramie
