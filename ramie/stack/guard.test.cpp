#include <ramie/stack/guard.hpp>

#include <ramie/base/error.hpp>
#include <ramie/stack/pool.hpp>
#include <ramie/stack/testing.hpp>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace ramie::detail {
namespace {

using testing::readable;
using testing::replaced_calls;

class guards : public ::testing::TestWithParam<guard_kind> {
 protected:
  void SetUp() override {
    if (GetParam() == guard_kind::madvise && !kernel_has_guard_advice()) GTEST_SKIP() << "no MADV_GUARD_INSTALL here";
  }
};

INSTANTIATE_TEST_SUITE_P(kinds, guards, ::testing::Values(guard_kind::madvise, guard_kind::mprotect),
                         [](const auto& parameter) {
                           return parameter.param == guard_kind::madvise ? "madvise" : "mprotect";
                         });

void expect_guarded(const stack& s) {
  const char* const low = lowest_usable(s);
  for (const char* page = slot_base(s); page < low; page += page_size()) EXPECT_FALSE(readable(page));
  EXPECT_FALSE(readable(low - 1));
  EXPECT_TRUE(readable(low));
  EXPECT_TRUE(readable(s.top - 1));
}

TEST_P(guards, are_below_every_stack) {
  for (const std::size_t size : {16u << 10, 32u << 10, 64u << 10, 256u << 10, 8u << 20}) {
    stack_class& c = stack_class_of(size, GetParam());
    std::vector<stack*> stacks;
    for (int i = 0; i < 40; ++i) stacks.push_back(acquire_stack(c));
    for (const stack* s : stacks) {
      expect_guarded(*s);
      EXPECT_EQ(lowest_usable(*s) - slot_base(*s),
                size >= 64 << 10 ? 16 << 10 : static_cast<std::ptrdiff_t>(page_size()));
    }
    for (stack* s : stacks) release_stack(s);
  }
}

TEST_P(guards, are_there_for_stacks_taken_through_a_cache) {
  stack_class& c = stack_class_of(128 << 10, GetParam());
  stack_cache cache{c};
  std::vector<stack*> stacks;
  for (int i = 0; i < 300; ++i) stacks.push_back(cache.try_acquire());
  for (stack* s : stacks) {
    ASSERT_NE(s, nullptr);
    expect_guarded(*s);
    cache.release(s);
  }
}

TEST_P(guards, know_their_bounds) {
  const stack* s = acquire_stack(stack_class_of(64 << 10, GetParam()));
  EXPECT_TRUE(in_guard(*s, slot_base(*s)));
  EXPECT_TRUE(in_guard(*s, lowest_usable(*s) - 1));
  EXPECT_FALSE(in_guard(*s, lowest_usable(*s)));
  EXPECT_FALSE(in_guard(*s, slot_base(*s) - 1));
  EXPECT_FALSE(in_guard(*s, s->top));
  EXPECT_FALSE(in_guard(*s, nullptr));
  release_stack(const_cast<stack*>(s));
}

TEST_P(guards, outlive_reuse_trim_and_advice_on_the_usable_part) {
  stack_class& c = stack_class_of(512 << 10, GetParam());
  std::vector<stack*> stacks;
  for (int i = 0; i < 200; ++i) stacks.push_back(acquire_stack(c));
  for (int round = 0; round < 3; ++round) {
    for (stack* s : stacks) {
      for (char* page = lowest_usable(*s); page < s->top; page += page_size()) *page = 1;
      const auto size = static_cast<std::size_t>(slot_base(*s) + slot_size(c) - lowest_usable(*s));
      if (round != 0) {
        ASSERT_EQ(::madvise(lowest_usable(*s), size, round == 1 ? MADV_DONTNEED : MADV_FREE), 0);
      }
    }
    for (stack* s : stacks) release_stack(s);
    trim(c);
    for (stack*& s : stacks) s = acquire_stack(c);
    for (const stack* s : stacks) expect_guarded(*s);
  }
  for (stack* s : stacks) release_stack(s);
}

TEST_P(guards, fault) {
  GTEST_FLAG_SET(death_test_style, testing::death_test_style());
  stack* s = acquire_stack(stack_class_of(256 << 10, GetParam()));
  char* const low = lowest_usable(*s);
  *low = 1;
  EXPECT_DEATH(*static_cast<volatile char*>(low - 1) = 1, "");
  EXPECT_DEATH(*static_cast<volatile char*>(slot_base(*s)) = 1, "");
  release_stack(s);
}

TEST(guard_none, has_no_guard) {
  stack_class& c = stack_class_of(64 << 10, guard_kind::none);
  stack* s = acquire_stack(c);
  EXPECT_EQ(lowest_usable(*s), slot_base(*s));
  EXPECT_FALSE(in_guard(*s, slot_base(*s)));
  *lowest_usable(*s) = 1;
  release_stack(s);
}

TEST(guard_probe, believes_only_a_fault) {
  memory_calls lying = kernel_calls;
  lying.advise = [](void*, std::size_t, int) noexcept { return 0; };
  EXPECT_FALSE(probe_guard_advice(lying));

  memory_calls refusing = kernel_calls;
  refusing.advise = [](void*, std::size_t, int) noexcept {
    errno = EINVAL;
    return -1;
  };
  EXPECT_FALSE(probe_guard_advice(refusing));

  memory_calls guarding = kernel_calls;
  guarding.advise = [](void* page, std::size_t size, int) noexcept { return ::mprotect(page, size, PROT_NONE); };
  EXPECT_TRUE(probe_guard_advice(guarding));

  EXPECT_EQ(probe_guard_advice(kernel_calls), kernel_has_guard_advice());
}

TEST(guard_budget, leaves_mappings_to_others) {
  EXPECT_EQ(mprotect_guards_max(65'530), (65'530u - 5'000u) / 2);
  EXPECT_EQ(mprotect_guards_max(1'000), 250u);
  EXPECT_EQ(mprotect_guards_max(0), 0u);
}

std::size_t mappings_max_for_test = 0;

/// The least vm.max_map_count that allows this many guards.
std::size_t mappings_max_for(std::size_t guards) {
  std::size_t most = 2 * guards;
  while (mprotect_guards_max(most) < guards) ++most;
  return most;
}

TEST(guard_budget, ends_in_an_error_that_names_the_sysctl_and_loses_nothing) {
  memory_calls few = kernel_calls;
  few.max_map_count = []() noexcept { return mappings_max_for_test; };
  const replaced_calls replaced{few};

  stack_class& c = stack_class_of(32 << 10, guard_kind::mprotect);
  // Room for ten more guards than exist now, whatever other tests have made.
  mappings_max_for_test = mappings_max_for(guards_by_mprotect() + 10);
  const std::size_t before = guards_by_mprotect();
  const std::size_t in_use = stats(c).slots_in_use;
  std::string message;
  std::vector<stack*> stacks;
  try {
    // Stacks that another test released need no new guard; there are fewer than this.
    while (stacks.size() < 1'000) stacks.push_back(acquire_stack(c));
  } catch (const resource_error& e) {
    message = e.what();
    EXPECT_EQ(e.code(), ENOMEM);
  }
  EXPECT_NE(message.find("vm.max_map_count = " + std::to_string(mappings_max_for_test)), std::string::npos) << message;
  EXPECT_NE(message.find("6.13"), std::string::npos) << message;
  EXPECT_EQ(guards_by_mprotect(), before + 10);
  EXPECT_EQ(stats(c).slots_in_use, in_use + stacks.size());
  EXPECT_EQ(try_acquire_stack(c), nullptr);
  stack_cache cache{c};
  EXPECT_EQ(cache.try_acquire(), nullptr);

  // Existing stacks stay usable.
  for (const stack* s : stacks) expect_guarded(*s);
  release_stack(stacks.back());
  ASSERT_EQ(cache.try_acquire(), stacks.back());

  // The remedy takes effect at once, on the very slots that were refused.
  mappings_max_for_test = mappings_max_for(guards_by_mprotect() + 5);
  const std::size_t reserved = stats(c).slots_reserved;
  for (int i = 0; i < 5; ++i) {
    stacks.push_back(acquire_stack(c));
    expect_guarded(*stacks.back());
  }
  EXPECT_EQ(try_acquire_stack(c), nullptr);
  EXPECT_EQ(stats(c).slots_reserved, reserved);
  for (stack* s : stacks) release_stack(s);
}

TEST(guard_budget, is_not_charged_for_a_guard_that_was_refused) {
  stack_class& c = stack_class_of(32 << 10, guard_kind::mprotect);
  std::vector<stack*> stacks;  // so that the next one is fresh
  while (stats(c).slots_in_use < stats(c).slots_reserved || stacks.empty()) stacks.push_back(acquire_stack(c));
  const std::size_t before = guards_by_mprotect();
  memory_calls refusing = kernel_calls;
  refusing.protect = [](void*, std::size_t, int) noexcept {
    errno = ENOMEM;
    return -1;
  };
  {
    const replaced_calls replaced{refusing};
    EXPECT_THROW(static_cast<void>(acquire_stack(c)), resource_error);
  }
  EXPECT_EQ(guards_by_mprotect(), before);
  stacks.push_back(acquire_stack(c));
  EXPECT_EQ(guards_by_mprotect(), before + 1);
  expect_guarded(*stacks.back());
  for (stack* s : stacks) release_stack(s);
}

#if !RAMIE_ASAN && !RAMIE_TSAN  // they have mappings of their own, and die without more
void use_up_the_mappings() {
  stack_class& c = stack_class_of(64 << 10, guard_kind::mprotect);
  try {
    for (int i = 0; i < 300'000; ++i) static_cast<void>(acquire_stack(c));
  } catch (const resource_error& e) {
    // The rest of the process still gets mappings: a thread, a large block.
    std::thread{[] {}}.join();
    std::vector<char> block(64u << 20);
    std::fprintf(stderr, "%s (%zu bytes to spare)\n", e.what(), block.size());
    std::exit(7);
  }
}

TEST(guard_budget, is_within_what_the_kernel_allows) {
  if (calls().max_map_count() > 300'000) GTEST_SKIP() << "vm.max_map_count is so large that this would take long";
  GTEST_FLAG_SET(death_test_style, testing::death_test_style());
  EXPECT_EXIT(use_up_the_mappings(), ::testing::ExitedWithCode(7),
              "no more stacks guarded by mprotect: .*vm.max_map_count");
}
#endif

}  // namespace
}  // namespace ramie::detail
