#include <ramie/inspect/dump_facts.hpp>

#include <ramie/task/task.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <random>

namespace ramie::detail {
namespace {

// Reports look at tasks that may have ended, whose memory then holds anything. Sanitizers see what is taken for
// granted.
TEST(facts, of_memory_that_holds_no_task_any_more) {
  alignas(64) static std::array<std::byte, 4096> memory;
  std::mt19937_64 random(53);
  const auto word_at = [&](std::size_t offset, std::uint64_t value) {
    std::memcpy(memory.data() + offset, &value, sizeof value);
  };
  for (int round = 0; round < 2'000; ++round) {
    // Small numbers, addresses in here with and without alignment, and addresses of nothing.
    for (std::size_t at = 0; at < memory.size(); at += 8) {
      const std::uint64_t drawn = random();
      const auto inside = reinterpret_cast<std::uintptr_t>(memory.data()) + drawn / 8 % (memory.size() - 1024);
      word_at(at, drawn % 4 == 0 ? drawn / 4 % 64 : drawn % 4 == 1 ? drawn : inside & ~(drawn % 4 == 2 ? 7UL : 0UL));
    }
    task_facts found;
    look_at_task(memory.data() + random() % 8 * 64, found);
    EXPECT_LE(std::strlen(found.name.data()), found.name.size());
  }
}

TEST(facts, of_bytes_that_are_neither_true_nor_false) {
  bool flag = false;
  for (const std::byte byte : {std::byte{0}, std::byte{1}, std::byte{2}, std::byte{255}}) {
    std::memcpy(&flag, &byte, 1);
    EXPECT_EQ(is_set(flag), byte != std::byte{0}) << std::to_integer<int>(byte);
  }
}

TEST(facts, of_memory_that_is_not_there) {
  task_facts found;
  for (const std::uintptr_t address : {0UL, 8UL, 0x7fff'ffff'f000UL, ~0UL - 7}) {
    look_at_task(reinterpret_cast<const void*>(address), found);
    EXPECT_FALSE(found.known) << address;
    EXPECT_FALSE(copied<task>(reinterpret_cast<const void*>(address))) << address;
  }
}

}  // namespace
}  // namespace ramie::detail
