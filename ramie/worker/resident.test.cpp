#include <ramie/worker/resident.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <vector>

namespace ramie::detail {
namespace {

struct subject : resident {
  int told = 0;
};

const resident_type type_of_subjects{
    {.run = nullptr, .skip = nullptr, .drop = nullptr, .kind = task_kind::resident, .turn = nullptr, .rest = nullptr},
    [](task& t) noexcept { ++static_cast<subject&>(t).told; }};

class resident_lists : public ::testing::Test {
 protected:
  void SetUp() override {
    for (subject& s : all) s.type = &type_of_subjects;
  }
  std::vector<const resident*> listed() {
    std::vector<const resident*> found;
    EXPECT_GE(list.try_for_each(1000, [&](const resident& r) { found.push_back(&r); }), 0);
    EXPECT_EQ(found.size(), list.size());
    return found;
  }
  std::array<subject, 100> all;
  resident_list list;
};

TEST_F(resident_lists, are_listed_newest_first) {
  for (subject& s : all) list.add(s);
  list.remove(all[99]);
  list.remove(all[0]);
  list.remove(all[50]);
  const auto found = listed();
  ASSERT_EQ(found.size(), 97u);
  EXPECT_EQ(found.front(), &all[98]);
  EXPECT_EQ(found.back(), &all[1]);
  for (const resident* r : found) EXPECT_NE(r, &all[50]);
}

/// So a round that tells some gets to each of them, in time.
TEST_F(resident_lists, tell_those_that_have_waited_longest) {
  for (subject& s : all) list.add(s);
  list.shut_down(70);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].told, i < 30 ? 0 : 1) << i;
  list.shut_down(70);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].told, i < 60 ? 1 : 2) << i;
  EXPECT_EQ(listed().size(), all.size());
}

TEST_F(resident_lists, tell_new_ones_first) {
  for (std::size_t i = 0; i < 50; ++i) list.add(all[i]);
  list.shut_down(list.size());
  for (std::size_t i = 50; i < 100; ++i) list.add(all[i]);
  list.shut_down(50);
  for (const subject& s : all) EXPECT_EQ(s.told, 1);
  for (std::size_t i = 0; i < 100; i += 2) list.remove(all[i]);
  list.shut_down(50);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(all[i].told, i % 2 == 0 ? 1 : 2);
  for (std::size_t i = 1; i < 100; i += 2) list.remove(all[i]);
  list.shut_down(50);
  EXPECT_EQ(list.size(), 0u);
}

TEST_F(resident_lists, tell_one_alone) {
  list.add(all[0]);
  list.shut_down(10);
  list.shut_down(10);
  EXPECT_EQ(all[0].told, 2);
  EXPECT_EQ(listed().size(), 1u);
}

}  // namespace
}  // namespace ramie::detail
