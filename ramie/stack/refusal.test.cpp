// What happens when the system refuses memory: an error at the call that asked, and nothing else.
#include <ramie/stack/refusal.hpp>

#include <ramie/base/error.hpp>
#include <ramie/stack/pool.hpp>
#include <ramie/stack/system.hpp>
#include <ramie/stack/testing.hpp>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace ramie::detail {
namespace {

using testing::acquire_many;
using testing::failing_calls;
using testing::kinds;
using testing::readable;
using testing::release_all;

constexpr std::size_t kib = 1024, mib = 1024 * kib;

/// Takes stacks in every way and releases them; returns how many system calls that took. Each failure in between is
/// an error at that call, and nothing else.
std::size_t exercise(stack_class& c, std::vector<stack*>& drained, std::size_t first_failing,
                     std::size_t last_failing) {
  // Takes all there are, so that the next one needs a new slab, new descriptors and new guards.
  while (stats(c).slots_in_use < stats(c).slots_reserved) drained.push_back(acquire_stack(c));

  constexpr std::size_t wanted = 60;
  const std::size_t in_use = stats(c).slots_in_use;
  std::set<stack*> held;
  std::size_t errors = 0, calls_made = 0;
  {
    const failing_calls failing{first_failing, last_failing};
    stack_cache cache{c};
    for (std::size_t i = 0; i < wanted; ++i) {
      stack* s = nullptr;
      if (i % 3 == 0) {
        s = cache.try_acquire();
      } else if (i % 20 != 5) {
        s = try_acquire_stack(c);
      } else {
        try {
          s = acquire_stack(c);
        } catch (const resource_error& e) {
          EXPECT_EQ(e.code(), ENOMEM) << e.what();
        }
      }
      if (s == nullptr) {
        ++errors;
        continue;
      }
      EXPECT_TRUE(held.insert(s).second) << "handed out twice";
      s->top[-1] = 1;
      EXPECT_TRUE(slot_base(*s) == lowest_usable(*s) || !readable(lowest_usable(*s) - 1)) << "no guard";
    }
    std::size_t i = 0;
    for (stack* s : held) {
      if (++i % 2 == 0) {
        cache.release(s);
      } else {
        release_stack(s);
      }
    }
    trim(c);
    calls_made = failing_calls::made();
  }
  EXPECT_EQ(held.size() + errors, wanted);
  EXPECT_EQ(stats(c).slots_in_use, in_use);
  return calls_made;
}

void expect_all_there(stack_class& c, std::vector<stack*>& drained) {
  EXPECT_EQ(std::set<stack*>(drained.begin(), drained.end()).size(), drained.size());
  release_all(drained);
  EXPECT_EQ(stats(c).slots_in_use, 0u);
}

TEST(refusals, of_any_one_call_lose_nothing) {
  // Under ASan each stack that is handed out has the shadow of all its 16 MiB searched for poison.
  constexpr std::size_t step = RAMIE_ASAN ? 3 : 1;
  for (const guard_kind kind : kinds()) {
    stack_class& c = stack_class_of(16 * mib, kind);
    std::vector<stack*> drained;
    std::size_t n = 0;
    while (exercise(c, drained, n, n) > n && !HasFailure()) n += step;
    EXPECT_GT(n, 5u) << "this tests less than it should";
    expect_all_there(c, drained);
  }
}

TEST(refusals, of_everything_from_some_call_on_lose_nothing) {
  for (const guard_kind kind : kinds()) {
    stack_class& c = stack_class_of(8 * mib, kind);
    std::vector<stack*> drained;
    for (std::size_t n = 0; n < 40 && !HasFailure(); n += n < 10 ? 1 : 6) exercise(c, drained, n, SIZE_MAX);
    // When the system grants memory again, all works.
    exercise(c, drained, SIZE_MAX, SIZE_MAX);
    expect_all_there(c, drained);
  }
}

TEST(refusals, make_do_with_a_smaller_slab) {
  stack_class& c = stack_class_of(128 * kib, guard_kind::none);
  std::vector<stack*> stacks;
  while (stats(c).slots_in_use < stats(c).slots_reserved || stacks.empty()) stacks.push_back(acquire_stack(c));
  const std::size_t reserved = stats(c).slots_reserved;
  static std::size_t large;
  large = 5 * mib;
  memory_calls small_only = kernel_calls;
  small_only.map = [](std::size_t size) noexcept -> void* {
    if (size < large) return kernel_calls.map(size);
    errno = ENOMEM;
    return nullptr;
  };
  const testing::replaced_calls replaced{small_only};
  stacks.push_back(acquire_stack(c));
  EXPECT_GT(stats(c).slots_reserved, reserved);
  EXPECT_LE((stats(c).slots_reserved - reserved) * slot_size(c), 5 * mib);
  release_all(stacks);
}

TEST(refusals, say_what_was_refused_and_why) {
  stack_class& c = stack_class_of(32 * mib, guard_kind::none);
  const failing_calls failing{0, SIZE_MAX};
  try {
    acquire_stack(c);
    ADD_FAILURE() << "nothing thrown";
  } catch (const resource_error& e) {
    EXPECT_EQ(e.code(), ENOMEM);
    const std::string message = e.what();
    for (const char* part : {"mmap", "Cannot allocate memory", "vm.max_map_count", "RLIMIT_AS", "vm.overcommit_memory"})
      EXPECT_NE(message.find(part), std::string::npos) << message;
  }
}

#if !RAMIE_ASAN && !RAMIE_TSAN  // their shadow is address space, too
void run_into(__rlimit_resource resource) {
  stack_class& c = stack_class_of(256 * kib, guard_kind::none);
  std::vector<stack*> stacks = acquire_many(c, 10);
  stacks.reserve(1'000'000);
  std::size_t used = 0;
  std::ifstream{"/proc/self/statm"} >> used;
  const rlimit limit{used * page_size() + 300 * mib, RLIM_INFINITY};
  ::setrlimit(resource, &limit);
  std::string message;
  try {
    while (stacks.size() < 100'000) stacks.push_back(acquire_stack(c));
  } catch (const resource_error& e) {
    message = e.what();
  }
  // The rest is unaffected: the stacks are there, and those released are handed out again.
  for (stack* s : stacks) s->top[-1] = 1;
  const std::size_t count = stacks.size();
  release_all(stacks);
  stacks = acquire_many(c, count);
  const bool all = stacks.size() == count && count > 500;
  // Also when there is room again.
  const rlimit none{RLIM_INFINITY, RLIM_INFINITY};
  ::setrlimit(resource, &none);
  for (int i = 0; i < 1'000; ++i) acquire_stack(c)->top[-1] = 1;
  std::fprintf(stderr, "%s\n", message.c_str());
  ::_exit(all ? 7 : 8);
}

TEST(refusals, name_the_limit_of_address_space) {
  if (testing::emulated()) GTEST_SKIP() << "an emulator keeps such limits to itself";
  GTEST_FLAG_SET(death_test_style, testing::death_test_style());
  EXPECT_EXIT(run_into(RLIMIT_AS), ::testing::ExitedWithCode(7),
              "mmap of stack.* failed .*: Cannot allocate memory; RLIMIT_AS is [0-9]+ ");
  EXPECT_EXIT(run_into(RLIMIT_DATA), ::testing::ExitedWithCode(7),
              "mmap of stack.* failed .*: Cannot allocate memory; RLIMIT_DATA is [0-9]+ ");
}
#endif

}  // namespace
}  // namespace ramie::detail
