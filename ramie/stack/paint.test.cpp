#include <ramie/stack/paint.hpp>

#include <ramie/stack/testing.hpp>

#include <gtest/gtest.h>

#include <sys/mman.h>

#include <cstring>
#include <vector>

namespace ramie::detail {
namespace {

class painting : public ::testing::Test {
 protected:
  painting() : s_{acquire_stack(stack_class_of(256 * 1024))} {
    // As if fresh from the system.
    ::madvise(lowest_usable(*s_), usable_size(*s_) / page_size() * page_size(), MADV_DONTNEED);
    std::memset(s_->top - page_size(), 0, page_size());
    paint(*s_);
  }
  ~painting() override { release_stack(s_); }
  [[nodiscard]] std::size_t resident() const {
    std::vector<unsigned char> pages(usable_size(*s_) / page_size() + 1);
    EXPECT_EQ(::mincore(lowest_usable(*s_), pages.size() * page_size(), pages.data()), 0);
    std::size_t n = 0;
    for (const unsigned char p : pages) n += p & 1;
    return n;
  }
  stack* s_;
};

TEST_F(painting, finds_the_lowest_byte_that_was_written) {
  for (const std::size_t depth : {8u, 64u, 1000u, 4096u, 10'000u, 100'000u}) {
    s_->top[-static_cast<std::ptrdiff_t>(depth)] = 'x';
    EXPECT_EQ(painted_depth(*s_), (depth + 7) / 8 * 8);
  }
}

TEST_F(painting, covers_what_was_there) {
  std::memset(s_->top - 50'000, 'x', 50'000);
  paint(*s_);
  EXPECT_EQ(painted_depth(*s_), 0u);
  s_->top[-20'000] = 'x';
  EXPECT_EQ(painted_depth(*s_), 20'000u);
}

TEST_F(painting, sees_a_page_of_zeros) {
  std::memset(s_->top - 40'000, 0, 30'000);
  EXPECT_GE(painted_depth(*s_), 40'000u - page_size());
  EXPECT_LE(painted_depth(*s_), 40'000u + page_size());
}

TEST_F(painting, touches_no_page_that_nobody_touched) {
  s_->top[-100'000] = 'x';
  const std::size_t before = resident();
  paint(*s_);
  static_cast<void>(painted_depth(*s_));
  EXPECT_EQ(resident(), before);
  EXPECT_LE(before, 4u);
}

RAMIE_NOINLINE void use(std::size_t bytes) {
  volatile char* const memory = static_cast<char*>(__builtin_alloca(bytes));
  for (std::size_t i = 0; i < bytes; i += 64) memory[i] = 'x';
}

TEST_F(painting, is_done_from_the_stack_itself) {
  std::size_t before = 0, after = 0;
  int kept = 4711;
  testing::excursion trip{*s_};
  trip.run([&] {
    use(60'000);
    paint(*s_);
    before = painted_depth(*s_);
    use(30'000);
    after = painted_depth(*s_);
    ++kept;
  });
  EXPECT_EQ(kept, 4712);
  EXPECT_LT(before, 20'000u);
#if !RAMIE_ASAN  // it may keep such memory elsewhere
  EXPECT_GE(after, 30'000u);
#endif
  EXPECT_LT(after, 60'000u);
}

}  // namespace
}  // namespace ramie::detail
