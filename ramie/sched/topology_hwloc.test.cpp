// What hwloc tells, on this machine and on made-up ones. Without RAMIE_HWLOC only that it does no harm.
#include <ramie/sched/topology_testing.hpp>

#include <ramie/sched/cpu_count.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

namespace ramie::detail {
namespace {

using testing::level;

TEST(topology_hwloc, agrees_with_the_system) {
  // Without hwloc it is the same by itself.
  const std::vector<int> cpus = allowed_cpus();
  const topology by_hwloc = topology::of_hwloc(cpus);
  const topology by_system = topology::of_system(cpus);
  ASSERT_EQ(by_hwloc.cpus(), by_system.cpus());
  for (const int a : cpus)
    for (const int b : cpus)
      EXPECT_EQ(level(by_hwloc, a, b) == topology::same_core, level(by_system, a, b) == topology::same_core);
}

#if defined(RAMIE_HWLOC)

/// What hwloc makes of its own description of a machine.
topology synthetic(const char* description, int cpus) {
  EXPECT_EQ(::setenv("HWLOC_SYNTHETIC", description, 1), 0);
  topology t = topology::of_hwloc(testing::cpus_to(cpus));
  EXPECT_EQ(::unsetenv("HWLOC_SYNTHETIC"), 0);
  return t;
}

TEST(topology_hwloc, knows_two_packages_of_sixty_four_cores) {
  const topology t = synthetic("pack:2 [numa] l3:8 l2:8 core:1 pu:2", 256);
  EXPECT_EQ(t.cpus(), 256u);
  EXPECT_EQ(t.nodes(), 2u);
  EXPECT_TRUE(t.has_rings());
  EXPECT_EQ(level(t, 0, 1), topology::same_core);
  EXPECT_EQ(level(t, 0, 2), topology::same_cache);
  EXPECT_EQ(level(t, 0, 15), topology::same_cache);
  EXPECT_EQ(level(t, 0, 16), topology::same_node);
  EXPECT_EQ(level(t, 0, 127), topology::same_node);
  EXPECT_EQ(level(t, 0, 128), topology::other_node);
  EXPECT_EQ(level(t, 255, 128), topology::same_node);
  for (int a = 0; a < 256; ++a)
    for (int b = 0; b < 256; ++b) ASSERT_EQ(level(t, a, b), level(t, b, a));
}

TEST(topology_hwloc, tells_packages_apart_that_share_a_node) {
  const topology t = synthetic("numa:1 pack:2 l3:8 core:8 pu:1", 128);
  EXPECT_EQ(t.cpus(), 128u);
  EXPECT_EQ(level(t, 0, 7), topology::same_cache);
  EXPECT_EQ(level(t, 0, 63), topology::same_node);
  EXPECT_EQ(level(t, 0, 64), topology::other_node);
}

TEST(topology_hwloc, knows_the_cpus_that_are_there) {
  const topology t = synthetic("pack:1 l3:1 core:4 pu:1", 8);
  EXPECT_EQ(t.cpus(), 4u);
  EXPECT_TRUE(t.at(3).known());
  EXPECT_FALSE(t.at(4).known());
  EXPECT_FALSE(t.has_rings());
}

TEST(topology_hwloc, knows_small_cores_that_share_a_second_level) {
  const topology t = synthetic("pack:1 l3:1 l2:2 core:4 pu:1", 8);
  EXPECT_EQ(level(t, 0, 3), topology::same_core);
  EXPECT_EQ(level(t, 0, 4), topology::same_cache);
}

TEST(topology_hwloc, does_without_a_third_level) {
  const topology t = synthetic("pack:2 [numa] l2:2 core:2 pu:2", 16);
  EXPECT_EQ(level(t, 0, 1), topology::same_core);
  EXPECT_EQ(level(t, 0, 3), topology::same_cache);
  EXPECT_EQ(level(t, 0, 4), topology::same_node);
  EXPECT_EQ(level(t, 0, 8), topology::other_node);
}

TEST(topology_hwloc, that_understands_nothing_leaves_it_to_the_system) {
  const std::vector<int> cpus = allowed_cpus();
  ASSERT_EQ(::setenv("HWLOC_XMLFILE", "/no/such/file.xml", 1), 0);
  const topology t = topology::of_hwloc(cpus);
  ASSERT_EQ(::unsetenv("HWLOC_XMLFILE"), 0);
  EXPECT_EQ(t.cpus(), cpus.size());
}

#endif

}  // namespace
}  // namespace ramie::detail
