#include <lab/harness/machine.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace ramie::lab {
namespace {

TEST(allocator_among, finds_the_malloc_that_was_loaded) {
  EXPECT_EQ(allocator_among({"", "/usr/lib/libstdc++.so.6", "/usr/lib/libc.so.6"}), "glibc");
  EXPECT_EQ(allocator_among({"", "/usr/lib/libtcmalloc_minimal.so.4", "/usr/lib/libc.so.6"}), "tcmalloc");
  EXPECT_EQ(allocator_among({"/opt/libmimalloc.so.2.1"}), "mimalloc");
  EXPECT_EQ(allocator_among({"libjemalloc.so.2"}), "jemalloc");
}

TEST(allocator_among, is_not_misled_by_folders) { EXPECT_EQ(allocator_among({"/home/mimalloc/libc.so.6"}), "glibc"); }

TEST(bracketed, finds_the_word_in_brackets) {
  EXPECT_EQ(bracketed("always [madvise] never"), "madvise");
  EXPECT_EQ(bracketed("always madvise never"), "");
  EXPECT_EQ(bracketed("] ["), "");
  EXPECT_EQ(bracketed(""), "");
}

TEST(describe_machine, knows_what_every_linux_tells) {
  const machine m = describe_machine();
  EXPECT_GE(m.cores_allowed, 1);
  EXPECT_GE(m.cores_online, m.cores_allowed);
  EXPECT_GT(m.memory_gib, 0);
  EXPECT_TRUE(m.kernel.starts_with("Linux ")) << m.kernel;
  EXPECT_FALSE(m.architecture.empty());
  EXPECT_FALSE(m.compiler.empty());
  EXPECT_FALSE(m.build_type.empty());
  EXPECT_EQ(json_of(m)["kernel"], m.kernel);
}

}  // namespace
}  // namespace ramie::lab
