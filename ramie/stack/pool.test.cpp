#include <ramie/stack/pool.hpp>

#include <ramie/base/error.hpp>
#include <ramie/stack/guard.hpp>
#include <ramie/stack/slab.hpp>
#include <ramie/stack/testing.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#if RAMIE_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace ramie::detail {
namespace {

using testing::acquire_many;
using testing::excursion;
using testing::kinds;
using testing::release_all;

constexpr std::size_t kib = 1024, mib = 1024 * kib, gib = 1024 * mib;
constexpr bool plain_build = RAMIE_ASAN == 0 && RAMIE_TSAN == 0;

/// Figures of this process, from /proc.
std::size_t resident() {
  std::size_t pages = 0;
  std::ifstream{"/proc/self/statm"}.ignore(64, ' ') >> pages;
  return pages * page_size();
}

std::size_t mappings() {
  std::ifstream maps{"/proc/self/maps"};
  std::size_t lines = 0;
  for (std::string line; std::getline(maps, line);) ++lines;
  return lines;
}

/// The VmFlags of the mapping that holds `address`, spelled as in proc(5).
std::string flags_of_mapping(const void* address) {
  std::ifstream maps{"/proc/self/smaps"};
  bool here = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t low = 0, high = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &low, &high) == 2)
      here = low <= reinterpret_cast<std::uintptr_t>(address) && reinterpret_cast<std::uintptr_t>(address) < high;
    else if (here && line.starts_with("VmFlags:")) return line + ' ';
  }
  return {};
}

std::string message_of_size(std::size_t size) {
  try {
    stack_class_of(size);
  } catch (const invalid_argument& e) {
    return e.what();
  }
  return "nothing thrown";
}

// Classes.

TEST(stack_class_of, rejects_sizes_out_of_range_and_says_which) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, stack_size_min - 1, stack_size_max + 1, SIZE_MAX}) {
    const std::string message = message_of_size(size);
    for (const std::string& part :
         {std::string{"stack_size"}, std::to_string(size), std::string{"16384"}, std::string{"1073741824"}})
      EXPECT_NE(message.find(part), std::string::npos) << message;
  }
}

TEST(stack_class_of, rounds_up_to_a_power_of_two_and_gives_the_same_class_again) {
  EXPECT_EQ(slot_size(stack_class_of(stack_size_min)), 16 * kib);
  EXPECT_EQ(slot_size(stack_class_of(16 * kib + 1)), 32 * kib);
  EXPECT_EQ(slot_size(stack_class_of(200'000)), 256 * kib);
  EXPECT_EQ(slot_size(stack_class_of(stack_size_max)), gib);
  EXPECT_EQ(&stack_class_of(200'000), &stack_class_of(256 * kib));
  EXPECT_NE(&stack_class_of(256 * kib, guard_kind::none), &stack_class_of(256 * kib, guard_kind::mprotect));
  const guard_kind expected = kernel_has_guard_advice() ? guard_kind::madvise : guard_kind::mprotect;
  EXPECT_EQ(&stack_class_of(256 * kib), &stack_class_of(256 * kib, expected));
}

TEST(stack_class_of, creates_one_class_however_many_ask_at_once) {
  std::vector<stack_class*> got(8);
  std::vector<std::thread> threads;
  for (stack_class*& c : got) threads.emplace_back([&c] { c = &stack_class_of(2 * mib, guard_kind::none); });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(std::set<stack_class*>(got.begin(), got.end()).size(), 1u);
}

// One stack.

TEST(stacks, are_distinct_aligned_and_writable_from_guard_to_top) {
  for (const guard_kind kind : kinds()) {
    for (const std::size_t size : {16 * kib, 32 * kib, 64 * kib, 256 * kib, mib}) {
      stack_class& c = stack_class_of(size, kind);
      std::vector<stack*> stacks = acquire_many(c, 40);
      std::set<char*> bases;
      for (std::size_t i = 0; i < stacks.size(); ++i) {
        const stack& s = *stacks[i];
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&s) % 64, 0u);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(s.top) % 64, 0u);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(slot_base(s)) % size, 0u);
        EXPECT_EQ(s.owner, &c);
        EXPECT_LE(s.top, slot_base(s) + size);
        EXPECT_GT(s.top, slot_base(s) + size - kib);
        EXPECT_EQ(lowest_usable(s) + usable_size(s), s.top);
        EXPECT_GE(usable_size(s), usable_size(c));
        bases.insert(slot_base(s));
        std::memset(lowest_usable(s), static_cast<int>(i), usable_size(s));
      }
      EXPECT_EQ(bases.size(), stacks.size());
      for (std::size_t i = 0; i < stacks.size(); ++i) {
        const stack& s = *stacks[i];
        EXPECT_TRUE(std::all_of(lowest_usable(s), s.top, [i](char byte) { return byte == static_cast<char>(i); }));
      }
      release_all(stacks);
      trim(c);
    }
  }
}

TEST(stacks, of_the_largest_size_can_be_had) {
  stack_class& c = stack_class_of(stack_size_max);
  std::vector<stack*> stacks = acquire_many(c, 20);
  for (stack* s : stacks) {
    *lowest_usable(*s) = 1;
    s->top[-1] = 1;
  }
  release_all(stacks);
  trim(c);
}

TEST(stacks, do_not_all_lie_on_the_same_cache_sets) {
  std::vector<stack*> stacks = acquire_many(stack_class_of(128 * kib, guard_kind::none), 64);
  std::set<std::uintptr_t> places;
  for (const stack* s : stacks) places.insert(reinterpret_cast<std::uintptr_t>(s->top) % page_size());
  EXPECT_EQ(places.size(), colours);
  release_all(stacks);
}

TEST(stacks, can_be_run_on) {
  stack_class& c = stack_class_of(64 * kib);
  stack* s = acquire_stack(c);
  const char* where = nullptr;
  excursion{*s}.run([&] {
    char local = 0;
    where = &local;
  });
#if !RAMIE_ASAN  // it may keep locals elsewhere
  EXPECT_EQ(find_stack(where), s);
#endif
  EXPECT_NE(where, nullptr);
  release_stack(s);
}

TEST(stacks, have_no_huge_pages_and_reserve_no_memory) {
  stack* s = acquire_stack(stack_class_of(256 * kib));
  const std::string flags = flags_of_mapping(s->top - 1);
  EXPECT_NE(flags.find(" nr "), std::string::npos) << flags;  // MAP_NORESERVE
  if (::access("/sys/kernel/mm/transparent_hugepage", F_OK) == 0 && !testing::emulated()) {
    EXPECT_NE(flags.find(" nh "), std::string::npos) << flags;
  }
  release_stack(s);
}

TEST(stacks, keep_their_descriptor_and_its_epoch_over_reuse) {
  stack_class& c = stack_class_of(32 * kib, guard_kind::none);
  // Fresh ones begin with zero, and reused ones still hold it: nothing else writes this word.
  std::vector<stack*> stacks = acquire_many(c, 50);
  const auto own = [](const stack* s) { return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(s)); };
  for (stack* s : stacks) {
    EXPECT_EQ(s->wait_word.load(), 0u);
    EXPECT_EQ(s->parked.load(), 0u);
    s->wait_word = own(s);
    s->parked = ~own(s);
  }
  const std::set<stack*> known(stacks.begin(), stacks.end());
  release_all(stacks);
  trim(c);
  for (const bool cached : {false, true}) {
    stack_cache cache{c};
    for (int i = 0; i < 50; ++i) stacks.push_back(cached ? cache.try_acquire() : acquire_stack(c));
    for (stack* s : stacks) {
      EXPECT_TRUE(known.contains(s));
      EXPECT_EQ(s->wait_word.load(), own(s));
      EXPECT_EQ(s->parked.load(), ~own(s));
      if (cached) s->wait_word = s->parked = 0;
    }
    release_all(stacks);
  }
}

// Looking for stacks.

TEST(find_stack, knows_every_byte_of_a_slot_and_nothing_else) {
  stack_class& c = stack_class_of(64 * kib);
  std::vector<stack*> stacks = acquire_many(c, 100);
  for (stack* s : stacks) {
    char* const base = slot_base(*s);
    for (const char* address : {base, lowest_usable(*s) - 1, lowest_usable(*s), s->top - 1, base + slot_size(c) - 1})
      EXPECT_EQ(find_stack(address), s);
    EXPECT_NE(find_stack(base - 1), s);
    EXPECT_NE(find_stack(base + slot_size(c)), s);
  }
  int here = 0;
  EXPECT_EQ(find_stack(&here), nullptr);
  EXPECT_EQ(find_stack(nullptr), nullptr);
  EXPECT_EQ(find_stack(reinterpret_cast<const void*>(UINTPTR_MAX)), nullptr);
  release_all(stacks);
}

TEST(find_stack, does_not_know_slots_that_nobody_had_yet) {
  stack_class& c =
      stack_class_of(4 * mib, guard_kind::none);  // a class that no other test uses, so in order of address
  stack* s = acquire_stack(c);
  EXPECT_EQ(find_stack(s->top), nullptr);
  EXPECT_EQ(find_stack(slot_base(*s) + slot_size(c)), nullptr);
  stack* second = acquire_stack(c);
  EXPECT_EQ(find_stack(slot_base(*s) + slot_size(c)), second);
  release_stack(s);
  release_stack(second);
}

TEST(is_made, is_true_of_stacks_that_somebody_had) {
  stack_class& c = stack_class_of(2 * mib, guard_kind::none);  // the same
  stack* s = acquire_stack(c);
  EXPECT_TRUE(is_made(s));
  EXPECT_FALSE(is_made(s + 1)) << "the next that will be";
  stack* second = acquire_stack(c);
  EXPECT_EQ(second, s + 1);
  EXPECT_TRUE(is_made(second));
  release_stack(s);
  release_stack(second);
  EXPECT_TRUE(is_made(s));
  EXPECT_FALSE(is_made(nullptr));
  stack on_its_own{};
  EXPECT_FALSE(is_made(&on_its_own));
}

TEST(for_each_stack, visits_all_that_were_handed_out_once) {
  std::vector<stack*> stacks = acquire_many(stack_class_of(16 * kib), 3'000);
  std::vector<stack*> others = acquire_many(stack_class_of(512 * kib), 10);
  release_all(others);  // pooled ones are visited too
  std::multiset<stack*> visited;
  for_each_stack([](void* all, stack& s) { static_cast<std::multiset<stack*>*>(all)->insert(&s); }, &visited);
  EXPECT_EQ(std::set<stack*>(visited.begin(), visited.end()).size(), visited.size());
  for (stack* s : stacks) EXPECT_EQ(visited.count(s), 1u);
  EXPECT_GE(visited.size(), stacks.size() + 10);
  for (stack* s : visited) EXPECT_EQ(find_stack(s->top - 1), s);
  release_all(stacks);
}

// Depot and cache.

TEST(depot, gives_back_what_it_got_before_anything_new) {
  stack_class& c = stack_class_of(128 * kib, guard_kind::mprotect);
  std::vector<stack*> stacks = acquire_many(c, 500);
  const std::set<stack*> known(stacks.begin(), stacks.end());
  const stack_pool_stats before = stats(c);
  EXPECT_EQ(before.slots_in_use, 500u);
  for (int round = 0; round < 4; ++round) {
    release_all(stacks);
    EXPECT_EQ(stats(c).slots_in_use, 0u);
    if (round % 2 == 1) trim(c);
    stacks = acquire_many(c, 500);
    for (stack* s : stacks) EXPECT_TRUE(known.contains(s));
    EXPECT_EQ(stats(c).slots_reserved, before.slots_reserved);
    EXPECT_EQ(stats(c).slots_in_use, 500u);
  }
  release_all(stacks);
}

TEST(depot, takes_warm_ones_before_cold_ones) {
  stack_class& c = stack_class_of(mib, guard_kind::none);
  trim(c);
  std::vector<stack*> warm = acquire_many(c, 8);
  std::vector<stack*> cold = acquire_many(c, 8);
  release_all(cold);
  trim(c);
  const std::set<stack*> expected(warm.begin(), warm.end());
  release_all(warm);
  EXPECT_EQ(stats(c).slots_warm, 8u);
  warm = acquire_many(c, 8);
  EXPECT_EQ(std::set<stack*>(warm.begin(), warm.end()), expected);
  EXPECT_EQ(stats(c).slots_warm, 0u);
  release_all(warm);
}

TEST(depot, gives_pages_back_when_too_many_are_warm) {
  stack_class& c = stack_class_of(256 * kib, guard_kind::none);
  constexpr std::size_t count = 20'000;
  std::vector<stack*> stacks = acquire_many(c, count);
  for (stack* s : stacks) s->top[-1] = 1;
  const std::size_t touched = resident();
  release_all(stacks);
  EXPECT_GT(stats(c).slots_warm, 0u);
  EXPECT_LE(stats(c).slots_warm, 1'024u);
  EXPECT_LT(resident() + (count - 2'000) * page_size(), touched);
  trim(c);
  EXPECT_EQ(stats(c).slots_warm, 0u);
}

TEST(cache, is_last_in_first_out) {
  stack_cache cache{stack_class_of(64 * kib)};
  stack* a = cache.try_acquire();
  stack* b = cache.try_acquire();
  EXPECT_NE(a, b);
  cache.release(a);
  cache.release(b);
  EXPECT_EQ(cache.try_acquire(), b);
  EXPECT_EQ(cache.try_acquire(), a);
  cache.release(a);
  cache.release(b);
}

TEST(cache, keeps_the_hotter_half_when_it_spills) {
  stack_class& c = stack_class_of(64 * kib, guard_kind::none);
  stack_cache cache{c};
  std::vector<stack*> stacks = acquire_many(c, 65);
  const std::size_t in_use = stats(c).slots_in_use;
  for (stack* s : stacks) cache.release(s);
  EXPECT_EQ(stats(c).slots_in_use, in_use - 33);
  for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(cache.try_acquire(), stacks[64 - i]);
  for (std::size_t i = 0; i < 32; ++i) release_stack(stacks[64 - i]);
}

TEST(cache, takes_several_at_once_but_never_more_than_a_slab) {
  stack_class& c =
      stack_class_of(512 * mib, guard_kind::none);  // a class of its own, with slots so large that slabs are small
  std::vector<stack*> stacks;
  {
    stack_cache cache{c};
    for (std::size_t reserved = 0; stacks.size() < 20;) {
      stacks.push_back(cache.try_acquire());
      ASSERT_NE(stacks.back(), nullptr);
      const std::size_t now = stats(c).slots_reserved;
      EXPECT_LE(stats(c).slots_in_use, now);
      // A new slab only when the old ones are used up.
      if (now != reserved) {
        EXPECT_EQ(stacks.size(), reserved + 1);
      }
      reserved = now;
    }
  }
  EXPECT_EQ(stats(c).slots_in_use, 20u);
  release_all(stacks);
}

TEST(cache, flushes_all_to_the_depot) {
  stack_class& c = stack_class_of(2 * mib);
  const std::size_t in_use = stats(c).slots_in_use;
  {
    stack_cache cache{c};
    cache.release(cache.try_acquire());
    EXPECT_GT(stats(c).slots_in_use, in_use);
    cache.flush();
    EXPECT_EQ(stats(c).slots_in_use, in_use);
    cache.release(cache.try_acquire());
  }
  EXPECT_EQ(stats(c).slots_in_use, in_use);
}

// Many.

void hand_out_and_take_back(std::size_t count) {
  stack_class& c = stack_class_of(256 * kib);
  trim(c);
  const std::size_t before = resident();
  const std::size_t mappings_before = mappings();
  std::vector<stack*> stacks(count);
  {
    stack_cache cache{c};
    for (stack*& s : stacks) {
      s = cache.try_acquire();
      ASSERT_NE(s, nullptr);
      s->top[-1] = 1;
    }
  }
  const std::size_t touched = resident();
  EXPECT_GT(touched, before + count * page_size() * 9 / 10);
  if (kernel_has_guard_advice()) {
    EXPECT_LT(mappings(), mappings_before + 100 + count / 1'000);
  }
  release_all(stacks);
  trim(c);
  const std::size_t trimmed = resident();
  EXPECT_GT(touched, trimmed + count * page_size() * 9 / 10);
  if (plain_build) {
    EXPECT_LT(trimmed, before + count * 2 * sizeof(stack) + 16 * mib);
    const auto each = [count](std::size_t size) { return static_cast<double>(size) / static_cast<double>(count); };
    std::printf("    %zu stacks: %.0f bytes each, %.0f when trimmed\n", count, each(touched - before),
                each(trimmed - before));
  }
  EXPECT_EQ(stats(c).slots_warm, 0u);
}

TEST(many, a_hundred_thousand_at_once) {
  if (!kernel_has_guard_advice()) GTEST_SKIP() << "vm.max_map_count does not allow so many guards";
  hand_out_and_take_back(100'000);
}

TEST(many, a_million_at_once) {
  if (std::getenv("RAMIE_TEST_LARGE") == nullptr) GTEST_SKIP() << "set RAMIE_TEST_LARGE=1: takes 5 GiB";
  if (!kernel_has_guard_advice()) GTEST_SKIP() << "vm.max_map_count does not allow so many guards";
  hand_out_and_take_back(1'000'000);
}

// Threads.

TEST(threads, share_a_class_through_caches_and_depot) {
  for (const guard_kind kind : kinds()) {
    stack_class& c = stack_class_of(64 * kib, kind);
    const std::size_t in_use = stats(c).slots_in_use;
    constexpr int workers = 4, rounds = 80;
    std::mutex lock;
    std::vector<stack*> passed_on;  // from thread to thread
    std::atomic<bool> over{false};
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < workers; ++t) {
      threads.emplace_back([&, t] {
        stack_cache cache{c};
        unsigned seed = 12'345u + static_cast<unsigned>(t);
        std::vector<stack*> own;
        const auto take = [&](stack* s) {
          // No other thread may hold it: each holder marks it.
          if (s == nullptr || s->occupant.exchange(&cache) != nullptr || s->owner != &c)
            return static_cast<void>(++wrong);
          *reinterpret_cast<int*>(s->top - 64) = t;  // a plain write: a race if two have it
          own.push_back(s);
        };
        for (int round = 0; round < rounds; ++round) {
          seed = seed * 1'664'525 + 1'013'904'223;
          const unsigned many = seed >> 24;
          for (unsigned i = 0; i < many; ++i) take(seed >> 20 & 1 ? cache.try_acquire() : acquire_stack(c));
          if (round % 7 == 0) {
            const std::lock_guard guard{lock};
            own.swap(passed_on);
          }
          if (round % 50 == 0) trim(c);
          while (own.size() > (seed >> 16 & 0xff)) {
            stack* s = own.back();
            own.pop_back();
            if (s->occupant.exchange(nullptr) == nullptr) ++wrong;
            if (seed >> 19 & 1) {
              cache.release(s);
            } else {
              release_stack(s);
            }
          }
        }
        for (stack* s : own) {
          s->occupant = nullptr;
          cache.release(s);
        }
      });
    }
    // One more thread looks at everything all the while, as a signal handler would.
    std::thread observer{[&] {
      while (!over) {
        for_each_stack(
            [](void* count, stack& s) {
              if (find_stack(s.top - 1) != &s || in_guard(s, s.top - 1)) ++*static_cast<std::atomic<int>*>(count);
            },
            &wrong);
        if (const auto now = stats(c); now.slots_in_use > now.slots_reserved) ++wrong;
      }
    }};
    for (std::thread& t : threads) t.join();
    over = true;
    observer.join();
    for (stack* s : passed_on) {
      s->occupant = nullptr;
      release_stack(s);
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(stats(c).slots_in_use, in_use);
  }
}

// Sanitizers.

void leave_frames_behind(excursion& out, int depth);
void (*volatile deeper)(excursion&, int) = leave_frames_behind;  // opaque to the compiler

void leave_frames_behind(excursion& out, int depth) {
  char with_redzones[200];
  asm volatile("" : : "r"(with_redzones) : "memory");
  if (depth == 0) out.abandon();
  deeper(out, depth - 1);
  asm volatile("" : : "r"(with_redzones) : "memory");
}

TEST(abandoned_frames, leave_no_poison_for_the_next_user) {
  stack_class& c = stack_class_of(256 * kib, guard_kind::none);
  for (int way = 0; way < 3; ++way) {
    stack_cache cache{c};
    stack* s = acquire_stack(c);
    excursion out{*s};
    out.run([&out] { leave_frames_behind(out, 50); });
    if (way == 0) {
      release_stack(s);
      EXPECT_EQ(acquire_stack(c), s);
    } else if (way == 1) {
      cache.release(s);
      EXPECT_EQ(cache.try_acquire(), s);
    } else {
      release_stack(s);
      EXPECT_EQ(try_acquire_stack(c), s);
    }
#if RAMIE_ASAN
    EXPECT_EQ(__asan_region_is_poisoned(lowest_usable(*s), usable_size(*s)), nullptr);
#endif
    std::memset(lowest_usable(*s), 1, usable_size(*s));
    release_stack(s);
    trim(c);
  }
}

}  // namespace
}  // namespace ramie::detail
