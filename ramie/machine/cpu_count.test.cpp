// How many CPUs a control group leaves, read from made-up trees of /proc and /sys.
#include <ramie/machine/cpu_count.hpp>

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace ramie::detail {
namespace {

namespace fs = std::filesystem;

class cpu_counts : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "ramie_cpu_count_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root = name;
  }
  void TearDown() override { fs::remove_all(root); }

  void write(const std::string& path, const std::string& text) const {
    const fs::path full = root + path;
    fs::create_directories(full.parent_path());
    std::ofstream{full} << text;
  }
  [[nodiscard]] double quota() const { return cgroup_cpu_quota(root); }

  std::string root;
};

TEST_F(cpu_counts, without_control_groups_there_is_no_quota) {
  EXPECT_EQ(quota(), 0);
  EXPECT_EQ(cgroup_cpu_quota(root + "/nowhere"), 0);
  EXPECT_GE(usable_cpus(root), 1);
}

TEST_F(cpu_counts, version_2) {
  write("/proc/self/cgroup", "0::/app\n");
  write("/sys/fs/cgroup/app/cpu.max", "250000 100000\n");
  EXPECT_DOUBLE_EQ(quota(), 2.5);
}

TEST_F(cpu_counts, version_2_max_is_no_quota) {
  write("/proc/self/cgroup", "0::/app\n");
  write("/sys/fs/cgroup/app/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), 0);
}

TEST_F(cpu_counts, version_2_at_the_root) {
  // What a container sees of itself.
  write("/proc/self/cgroup", "0::/\n");
  write("/sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_DOUBLE_EQ(quota(), 0.5);
  EXPECT_EQ(usable_cpus(root), 1);
}

TEST_F(cpu_counts, version_2_the_tightest_of_all_groups_above_counts) {
  write("/proc/self/cgroup", "0::/a/b/c\n");
  write("/sys/fs/cgroup/a/b/c/cpu.max", "max 100000\n");
  write("/sys/fs/cgroup/a/b/cpu.max", "300000 100000\n");
  write("/sys/fs/cgroup/a/cpu.max", "700000 100000\n");
  EXPECT_DOUBLE_EQ(quota(), 3);
  write("/sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  EXPECT_DOUBLE_EQ(quota(), 1.5);
  write("/sys/fs/cgroup/a/b/c/cpu.max", "20000 10000\n");
  EXPECT_DOUBLE_EQ(quota(), 1.5);
  write("/sys/fs/cgroup/a/b/c/cpu.max", "5000 10000\n");
  EXPECT_DOUBLE_EQ(quota(), 0.5);
}

TEST_F(cpu_counts, version_2_beside_version_1) {
  write("/proc/self/cgroup", "4:memory:/m\n0::/app\n");
  write("/sys/fs/cgroup/unified/app/cpu.max", "400000 100000\n");
  EXPECT_DOUBLE_EQ(quota(), 4);
}

TEST_F(cpu_counts, version_1) {
  write("/proc/self/cgroup", "9:name=systemd:/x\n3:cpu:/app\n");
  write("/sys/fs/cgroup/cpu/app/cpu.cfs_quota_us", "150000\n");
  write("/sys/fs/cgroup/cpu/app/cpu.cfs_period_us", "100000\n");
  EXPECT_DOUBLE_EQ(quota(), 1.5);
}

TEST_F(cpu_counts, version_1_with_joined_controllers) {
  for (const char* names : {"cpu,cpuacct", "cpuacct,cpu"}) {
    fs::remove_all(root + "/sys");
    write("/proc/self/cgroup", std::string{"3:"} + names + ":/docker/abc\n");
    write(std::string{"/sys/fs/cgroup/"} + names + "/docker/abc/cpu.cfs_quota_us", "800000\n");
    write(std::string{"/sys/fs/cgroup/"} + names + "/docker/abc/cpu.cfs_period_us", "200000\n");
    write(std::string{"/sys/fs/cgroup/"} + names + "/docker/cpu.cfs_quota_us", "300000\n");
    write(std::string{"/sys/fs/cgroup/"} + names + "/docker/cpu.cfs_period_us", "100000\n");
    EXPECT_DOUBLE_EQ(quota(), 3) << names;
  }
}

TEST_F(cpu_counts, version_1_other_controllers_do_not_count) {
  write("/proc/self/cgroup", "3:cpuset:/app\n4:cpuacct:/app\n");
  for (const char* c : {"cpuset", "cpuacct", "cpu"}) {
    write(std::string{"/sys/fs/cgroup/"} + c + "/app/cpu.cfs_quota_us", "100000\n");
    write(std::string{"/sys/fs/cgroup/"} + c + "/app/cpu.cfs_period_us", "100000\n");
  }
  EXPECT_EQ(quota(), 0);
}

TEST_F(cpu_counts, version_1_minus_one_is_no_quota) {
  write("/proc/self/cgroup", "3:cpu:/app\n");
  write("/sys/fs/cgroup/cpu/app/cpu.cfs_quota_us", "-1\n");
  write("/sys/fs/cgroup/cpu/app/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 0);
}

TEST_F(cpu_counts, garbage_is_no_quota) {
  for (const char* text : {"", "\n", "max", "100000", "abc 100000", "100000 abc", "100000 0", "100000 -5", "-1 100000",
                           "0 100000", "nan 100000", "12x 100000", "max max", "100000 nan", "\x01\xff\n"}) {
    write("/proc/self/cgroup", "0::/app\n");
    write("/sys/fs/cgroup/app/cpu.max", text);
    EXPECT_EQ(quota(), 0) << '"' << text << '"';
    EXPECT_GE(usable_cpus(root), 1);
  }
  for (const char* text : {"", "\n", ":", "::", "0:", "0::", "no colons at all", "0::app", ":::::::", "3:cpu",
                           "3:,,cpu,:", "\x01\xff\n"}) {
    write("/proc/self/cgroup", text);
    EXPECT_EQ(quota(), 0) << '"' << text << '"';
  }
}

TEST_F(cpu_counts, huge_quotas_leave_all_cpus) {
  // A quota that no int can hold must not turn into a small one.
  const int all = usable_cpus(root);
  for (const char* text : {"9000000000000000 1000", "1e300 1", "inf 100000", "99999999999999999999999 1"}) {
    write("/proc/self/cgroup", "0::/app\n");
    write("/sys/fs/cgroup/app/cpu.max", text);
    EXPECT_EQ(usable_cpus(root), all) << '"' << text << '"';
  }
}

TEST_F(cpu_counts, parts_of_a_cpu_are_rounded_up) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  const int all = CPU_COUNT(&before);
  write("/proc/self/cgroup", "0::/\n");
  write("/sys/fs/cgroup/cpu.max", "1000 100000\n");
  EXPECT_EQ(usable_cpus(root), 1);
  write("/sys/fs/cgroup/cpu.max", "110000 100000\n");
  EXPECT_EQ(usable_cpus(root), std::min(all, 2));
  write("/sys/fs/cgroup/cpu.max", "100000 100000\n");
  EXPECT_EQ(usable_cpus(root), 1);
  write("/sys/fs/cgroup/cpu.max", "100000000 100000\n");
  EXPECT_EQ(usable_cpus(root), all);
}

TEST_F(cpu_counts, follow_the_affinity_mask) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &before)) {
      CPU_SET(i, &one);
      break;
    }
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_cpus(root), 1);
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(usable_cpus(root), CPU_COUNT(&before));
}

}  // namespace
}  // namespace ramie::detail
