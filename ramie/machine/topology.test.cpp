// Which CPUs are near to each other, on made-up machines and made-up trees of /sys.
#include <ramie/machine/topology.hpp>

#include <ramie/machine/cpu_count.hpp>
#include <ramie/machine/topology_testing.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace ramie::detail {
namespace {

namespace fs = std::filesystem;

using testing::cpus_to;
using testing::level;
using testing::made_up;

TEST(made_up_topologies, has_the_groups_it_names) {
  const topology t = made_up{.nodes = 2, .caches = 8, .cores = 4, .threads = 2};
  EXPECT_EQ(t.cpus(), 128u);
  EXPECT_EQ(t.nodes(), 2u);
  EXPECT_TRUE(t.has_rings());
  EXPECT_EQ(level(t, 0, 1), topology::same_core);
  EXPECT_EQ(level(t, 0, 2), topology::same_cache);
  EXPECT_EQ(level(t, 0, 7), topology::same_cache);
  EXPECT_EQ(level(t, 0, 8), topology::same_node);
  EXPECT_EQ(level(t, 0, 63), topology::same_node);
  EXPECT_EQ(level(t, 0, 64), topology::other_node);
  EXPECT_EQ(level(t, 127, 64), topology::same_node);
  EXPECT_EQ(level(t, 127, 126), topology::same_core);
  for (int a = 0; a < 128; ++a)
    for (int b = 0; b < 128; ++b) ASSERT_EQ(level(t, a, b), level(t, b, a));
}

TEST(made_up_topologies, leaves_out_what_is_one) {
  EXPECT_FALSE((topology{made_up{.cores = 8}}.has_rings()));
  EXPECT_FALSE((topology{made_up{.threads = 2}}.has_rings()));
  EXPECT_FALSE((topology{made_up{.caches = 16}}.has_rings()));
  EXPECT_FALSE((topology{made_up{.nodes = 4}}.has_rings()));
  EXPECT_FALSE((topology{made_up{.cores = 1}}.has_rings()));
  EXPECT_TRUE((topology{made_up{.cores = 2, .threads = 2}}.has_rings()));
  EXPECT_TRUE((topology{made_up{.nodes = 2, .caches = 1, .cores = 64}}.has_rings()));
  EXPECT_EQ((level(made_up{.nodes = 2, .cores = 1}, 0, 1)), topology::other_node);
}

TEST(topologies, take_unknown_cpus_for_far_ones) {
  const topology t = made_up{.cores = 2, .threads = 2};
  EXPECT_FALSE(t.at(4).known());
  EXPECT_FALSE(t.at(-1).known());
  EXPECT_FALSE(t.at(1 << 30).known());
  EXPECT_EQ(level(t, 0, 4), static_cast<int>(topology::levels) - 1);
  EXPECT_EQ(level(t, 9, 9), static_cast<int>(topology::levels) - 1);
  EXPECT_FALSE(topology{}.has_rings());
}

TEST(topologies, order_nodes_by_distance) {
  topology t;
  for (int node = 0; node < 4; ++node)
    for (int i = 0; i < 4; ++i) t.add(node * 4 + i, node * 4 + i, node, node);
  // A ring of four: the opposite one is farther.
  for (int a = 0; a < 4; ++a)
    for (int b = 0; b < 4; ++b) t.set_distance(a, b, a == b ? 10 : (a - b) % 2 != 0 ? 16 : 22);
  t.finish();
  EXPECT_EQ(level(t, 0, 3), topology::same_cache);
  EXPECT_EQ(level(t, 0, 4), topology::other_node);
  EXPECT_EQ(level(t, 0, 12), topology::other_node);
  EXPECT_EQ(level(t, 0, 8), topology::other_node + 1);
}

TEST(topologies, have_room_for_many_distances) {
  topology t;
  for (int node = 0; node < 16; ++node) t.add(node, node, node, node);
  for (int to = 1; to < 16; ++to) t.set_distance(0, to, 10u + static_cast<unsigned>(to));
  t.finish();
  EXPECT_EQ(level(t, 0, 1), topology::other_node);
  for (int to = 2; to < 16; ++to) {
    EXPECT_GE(level(t, 0, to), level(t, 0, to - 1));
    EXPECT_LT(level(t, 0, to), static_cast<int>(topology::levels));
  }
}

/// A tree of /sys.
class topology_system : public ::testing::Test {
 protected:
  void SetUp() override {
    const fs::path memory = "/dev/shm";  // thousands of small files: slow on a disk
    std::string name =
        ((fs::is_directory(memory) ? memory : fs::temp_directory_path()) / "ramie_topology_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root = name;
  }
  void TearDown() override { fs::remove_all(root); }

  void write(const std::string& path, const std::string& text) const {
    const fs::path full = root + "/sys/devices/system/" + path;
    fs::create_directories(full.parent_path());
    std::ofstream{full} << text << "\n";
  }
  void cache(int cpu, int index, int cache_level, const char* type, const std::string& shared) const {
    const std::string at = "cpu/cpu" + std::to_string(cpu) + "/cache/index" + std::to_string(index);
    write(at + "/level", std::to_string(cache_level));
    write(at + "/type", type);
    write(at + "/shared_cpu_list", shared);
  }
  void cpu(int number, int package, const std::string& siblings) const {
    const std::string at = "cpu/cpu" + std::to_string(number) + "/topology/";
    write(at + "core_cpus_list", siblings);
    write(at + "physical_package_id", std::to_string(package));
  }
  /// As Linux numbers them: all first threads, then all second ones.
  void two_sockets(int cores, int cores_a_cache) const {
    const auto with_sibling = [&](int first, int n) {
      const auto range = [](int from, int count) {
        return count == 1 ? std::to_string(from) : std::to_string(from) + "-" + std::to_string(from + count - 1);
      };
      return range(first, n) + "," + range(first + 2 * cores, n);
    };
    write("node/online", "0-1");
    for (int node = 0; node < 2; ++node) {
      write("node/node" + std::to_string(node) + "/cpulist", with_sibling(node * cores, cores));
      write("node/node" + std::to_string(node) + "/distance", node == 0 ? "10 32" : "32 10");
    }
    for (int number = 0; number < 4 * cores; ++number) {
      const int core = number % (2 * cores);
      cpu(number, core / cores, with_sibling(core, 1));
      cache(number, 0, 1, "Data", with_sibling(core, 1));
      cache(number, 1, 1, "Instruction", with_sibling(core, 1));
      cache(number, 2, 2, "Unified", with_sibling(core, 1));
      cache(number, 3, 3, "Unified", with_sibling(core / cores_a_cache * cores_a_cache, cores_a_cache));
    }
  }
  [[nodiscard]] topology read(int cpus) const { return topology::of_system(cpus_to(cpus), root); }

  std::string root;
};

TEST_F(topology_system, reads_two_sockets_of_sixty_four_cores) {
  two_sockets(64, 8);
  const topology t = read(256);
  EXPECT_EQ(t.cpus(), 256u);
  EXPECT_EQ(t.nodes(), 2u);
  EXPECT_TRUE(t.has_rings());
  EXPECT_EQ(level(t, 0, 128), topology::same_core);
  EXPECT_EQ(level(t, 0, 7), topology::same_cache);
  EXPECT_EQ(level(t, 0, 135), topology::same_cache);
  EXPECT_EQ(level(t, 0, 8), topology::same_node);
  EXPECT_EQ(level(t, 0, 63), topology::same_node);
  EXPECT_EQ(level(t, 0, 191), topology::same_node);
  EXPECT_EQ(level(t, 0, 64), topology::other_node);
  EXPECT_EQ(level(t, 255, 127), topology::same_core);
}

TEST_F(topology_system, knows_of_the_cpus_that_a_container_leaves) {
  two_sockets(4, 4);
  const topology t = topology::of_system({1, 3, 9}, root);
  EXPECT_EQ(t.cpus(), 3u);
  EXPECT_EQ(level(t, 1, 9), topology::same_core);
  EXPECT_EQ(level(t, 1, 3), topology::same_cache);
  EXPECT_FALSE(t.at(0).known());
  EXPECT_FALSE(topology::of_system({1, 3}, root).has_rings());
}

TEST_F(topology_system, has_one_ring_without_any_files) {
  const topology t = read(8);
  EXPECT_EQ(t.cpus(), 8u);
  EXPECT_FALSE(t.has_rings());
  EXPECT_EQ(level(t, 0, 7), topology::same_cache);
}

TEST_F(topology_system, passes_over_what_makes_no_sense) {
  two_sockets(2, 2);
  for (const char* wrong :
       {"", "x", "0-", "-3", "3-1", "0,,1", "0-99999999", "99999999999999999999", "0 1", "5-6", "0x1"}) {
    for (int i = 0; i < 8; ++i) {
      cpu(i, 0, wrong);
      write("cpu/cpu" + std::to_string(i) + "/topology/physical_package_id", "-1");
      for (int index = 0; index < 4; ++index) cache(i, index, index, "Unified", wrong);
    }
    write("node/online", wrong);
    const topology t = read(4);
    EXPECT_EQ(t.cpus(), 4u);
    EXPECT_FALSE(t.has_rings()) << wrong;
  }
}

TEST_F(topology_system, groups_by_packages_without_nodes) {
  two_sockets(4, 4);
  fs::remove_all(root + "/sys/devices/system/node");
  const topology t = read(16);
  EXPECT_EQ(t.nodes(), 2u);
  EXPECT_EQ(level(t, 0, 3), topology::same_cache);
  EXPECT_EQ(level(t, 0, 4), topology::other_node);
}

TEST_F(topology_system, knows_the_parts_of_a_node_in_two_packages) {
  two_sockets(4, 4);
  write("node/online", "0");
  write("node/node0/cpulist", "0-15");
  const topology t = read(16);
  EXPECT_EQ(level(t, 0, 4), topology::other_node);
  EXPECT_EQ(level(t, 0, 3), topology::same_cache);
}

TEST_F(topology_system, reads_hybrid_machines) {
  // Two large cores with two threads each, eight small ones, four of which share a second level.
  for (int i = 0; i < 12; ++i) {
    const bool large = i < 4;
    const std::string siblings = large ? (i < 2 ? "0-1" : "2-3") : std::to_string(i);
    const std::string second = large ? siblings : i < 8 ? "4-7" : "8-11";
    cpu(i, 0, siblings);
    cache(i, 0, 1, "Data", siblings);
    cache(i, 1, 1, "Instruction", siblings);
    cache(i, 2, 2, "Unified", second);
    cache(i, 3, 3, "Unified", "0-11");
  }
  const topology t = read(12);
  EXPECT_TRUE(t.has_rings());
  EXPECT_EQ(level(t, 0, 1), topology::same_core);
  EXPECT_EQ(level(t, 0, 2), topology::same_cache);
  EXPECT_EQ(level(t, 4, 7), topology::same_core);
  EXPECT_EQ(level(t, 4, 8), topology::same_cache);
  EXPECT_EQ(level(t, 0, 11), topology::same_cache);
}

TEST_F(topology_system, does_without_those_that_are_offline) {
  two_sockets(4, 4);
  for (const int gone : {1, 9}) fs::remove_all(root + "/sys/devices/system/cpu/cpu" + std::to_string(gone));
  const topology t = read(16);  // asked for all the same, as if it had gone offline meanwhile
  EXPECT_EQ(t.cpus(), 16u);
  EXPECT_EQ(level(t, 0, 8), topology::same_core);
  EXPECT_EQ(level(t, 0, 2), topology::same_cache);
  EXPECT_EQ(level(t, 0, 4), topology::other_node);
}

TEST_F(topology_system, reads_older_kernels) {
  two_sockets(4, 4);
  for (int i = 0; i < 16; ++i) {
    const std::string at = root + "/sys/devices/system/cpu/cpu" + std::to_string(i) + "/topology/";
    fs::rename(at + "core_cpus_list", at + "thread_siblings_list");
    fs::remove_all(root + "/sys/devices/system/cpu/cpu" + std::to_string(i) + "/cache");
  }
  const topology t = read(16);
  EXPECT_EQ(level(t, 0, 8), topology::same_core);
  EXPECT_EQ(level(t, 0, 3), topology::same_cache);  // unknown, which separates no CPUs
  EXPECT_EQ(level(t, 0, 4), topology::other_node);
}

TEST(topology_machine, knows_each_cpu_of_this_process) {
  const topology t = topology::of_machine();
  for (const int cpu : allowed_cpus()) EXPECT_TRUE(t.at(cpu).known()) << cpu;
  EXPECT_EQ(t.cpus(), allowed_cpus().size());
}

}  // namespace
}  // namespace ramie::detail
