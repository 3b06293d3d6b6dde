// What the simulator itself has to find: races on plain data (plain_memory.hpp). Each program is right or has one
// mistake.
#include "simulator.hpp"

#include <ramie/machine/fence.hpp>

#include <gtest/gtest.h>

#include <array>
#include <memory>

namespace ramie::interleave {
namespace {

using detail::atomic;

void expect_race(const char* name, const exploration& how, const std::function<void()>& body) {
  const finding f = explore(with_margin(how), body);
  EXPECT_TRUE(f.failed) << name;
  EXPECT_TRUE(f.replayed) << name << ", seed " << f.seed;
  EXPECT_NE(f.what.find("plain.interleave.test.cpp"), std::string::npos) << f.what;
  EXPECT_TRUE(f.what.starts_with("race on plain data") || f.what.starts_with("memory is given back")) << f.what;
}

/// One thread hands a word over to another.
auto handed_over(std::memory_order store, std::memory_order load) {
  return [store, load] {
    int data = 0;
    atomic<bool> ready{false};
    simulated_thread writer{[&] {
      data = 1;
      ready.store(true, store);
    }};
    while (!ready.load(load)) detail::spin_pause();
    check(data == 1, "the newest value was not read");
  };
}
TEST(plain_data, is_handed_over_by_release_and_acquire) {
  expect_sound("handed over", {}, handed_over(std::memory_order_release, std::memory_order_acquire));
  expect_race("relaxed store", {}, handed_over(std::memory_order_relaxed, std::memory_order_acquire));
  expect_race("relaxed load", {}, handed_over(std::memory_order_release, std::memory_order_relaxed));
}

/// The same by fences: a release fence before a relaxed store, an acquire fence after a relaxed load.
auto handed_over_by_fences(bool before, bool after) {
  return [before, after] {
    int data = 0;
    atomic<bool> ready{false};
    simulated_thread writer{[&] {
      data = 1;
      if (before) detail::full_fence();
      ready.store(true, std::memory_order_relaxed);
    }};
    while (!ready.load(std::memory_order_relaxed)) detail::spin_pause();
    if (after) detail::full_fence();
    check(data == 1, "the newest value was not read");
  };
}
TEST(plain_data, is_handed_over_by_fences) {
  expect_sound("fences", {}, handed_over_by_fences(true, true));
  expect_race("no fence before", {}, handed_over_by_fences(false, true));
  expect_race("no fence after", {}, handed_over_by_fences(true, false));
}

/// A chain of read-modify-writes carries what its first store released; a plain store in between does not, not even one
/// of the same thread.
auto handed_on(bool by_modification) {
  return [by_modification] {
    int data = 0;
    atomic<int> stage{0};
    simulated_thread writer{[&] {
      data = 1;
      stage.store(1, std::memory_order_release);
      if (by_modification) stage.fetch_add(1, std::memory_order_relaxed);
      else stage.store(2, std::memory_order_relaxed);
    }};
    while (stage.load(std::memory_order_acquire) != 2) detail::spin_pause();
    check(data == 1, "the newest value was not read");
  };
}
TEST(plain_data, is_handed_on_by_modifications) {
  expect_sound("modified", {}, handed_on(true));
  expect_race("stored again", {}, handed_on(false));
}

/// Fences of two threads that read nothing of each other put nothing in order; a membarrier does.
void pass_between_fences() {
  int data = 0;
  atomic<int> turn{0};
  simulated_thread writer{[&] {
    data = 1;
    detail::full_fence();
  }};
  detail::os_sleep(1'000'000);
  detail::full_fence();
  data = 2;
}
TEST(plain_data, is_not_ordered_by_time) { expect_race("two fences", {.time_flies = false}, pass_between_fences); }

/// Other bytes of a word are other data; the same ones are not, in whatever size.
auto write_bytes(std::size_t first, std::size_t second, std::size_t size) {
  return [=] {
    alignas(8) std::array<volatile unsigned char, 16> bytes{};
    simulated_thread writer{[&] { bytes[first] = 1; }};
    for (std::size_t i = second; i < second + size; ++i) bytes[i] = 2;
  };
}
TEST(plain_data, is_told_apart_by_bytes) {
  expect_sound("other bytes", {}, write_bytes(3, 4, 8));
  expect_sound("other bytes", {}, write_bytes(7, 0, 7));
  expect_race("same bytes", {}, write_bytes(3, 0, 4));
  expect_race("the last byte", {}, write_bytes(9, 4, 6));
}

/// Two that only read, and a third that writes after one of them.
auto read_by_two(bool waits_for_both) {
  return [waits_for_both] {
    int data = 1;
    atomic<int> done{0};
    simulated_thread first{[&] {
      check(data == 1, "the newest value was not read");
      if (waits_for_both) done.fetch_add(1, std::memory_order_release);
      else done.fetch_add(1, std::memory_order_relaxed);
    }};
    simulated_thread second{[&] {
      check(data == 1, "the newest value was not read");
      done.fetch_add(1, std::memory_order_release);
    }};
    while (done.load(std::memory_order_acquire) != 2) detail::spin_pause();
    data = 2;
  };
}
TEST(plain_data, may_be_read_by_many) {
  expect_sound("two readers", {}, read_by_two(true));
  expect_race("a reader that is forgotten", {}, read_by_two(false));
}

/// Memory that is freed while another thread has read it; and memory that was used before by another thread.
auto freed(std::memory_order last) {
  return [last] {
    auto data = std::make_unique<int>(1);
    atomic<bool> over{false};
    simulated_thread reader{[&, at = data.get()] {
      check(*at == 1, "the newest value was not read");
      over.store(true, last);
    }};
    while (!over.load(std::memory_order_acquire)) detail::spin_pause();
    data.reset();
  };
}
void use_anew() {
  simulated_thread other{[] {
    for (int i = 0; i < 3; ++i) check(*std::make_unique<int>(i) == i, "a wrong number");
  }};
  for (int i = 0; i < 3; ++i) check(*std::make_unique<int>(i) == i, "a wrong number");
}
TEST(plain_data, ends_with_its_memory) {
  expect_sound("freed", {}, freed(std::memory_order_release));
  expect_race("freed too early", {}, freed(std::memory_order_relaxed));
  expect_sound("used anew", {}, use_anew);
}

}  // namespace
}  // namespace ramie::interleave
