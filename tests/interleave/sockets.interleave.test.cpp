// Records of descriptors by themselves (poll/descriptor.hpp, N3 to N5): edges come from a simulated thread, also those
// that the simulated kernel does not make (network.interleave.test.cpp).
#include "programs.hpp"

#include <ramie/channel/select.hpp>
#include <ramie/fiber/this_fiber.hpp>
#include <ramie/net/select.hpp>
#include <ramie/poll/descriptor.hpp>
#include <ramie/poll/retry.hpp>
#include <ramie/sync/event.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <optional>
#include <source_location>

namespace ramie::interleave {
namespace {

using namespace std::chrono_literals;
using net::detail::direction;

/// A record in a set that nobody looks at.
struct watched_record {
  explicit watched_record(net::detail::endings how) : record{*net::detail::open_descriptor(-1, how)} {
    record.registered.store(reinterpret_cast<net::detail::poller*>(alignof(std::max_align_t)),
                            std::memory_order_relaxed);
  }
  watched_record(const watched_record&) = delete;
  watched_record& operator=(const watched_record&) = delete;
  ~watched_record() {
    record.registered.store(nullptr, std::memory_order_relaxed);
    give_back(record);
  }
  net::detail::descriptor& record;
};

/// TCP: a read that takes less than it may has taken all. The last data and the end come with one edge, and so may an
/// error that passes, before them.
void data_and_end_with_one_edge() {
  watched_record s{net::detail::endings::last};
  s.record.short_reads.store(false, std::memory_order_relaxed);
  detail::atomic<std::uint32_t> bytes{0};
  detail::atomic<bool> over{false};
  constexpr std::size_t most = 2;
  {
    simulated_thread reader{[&] {
      for (bool ended = false; !ended;)
        ended = net::detail::retry_reading(
                    s.record, "read", std::source_location::current(),
                    [&](int) -> net::detail::system::result {
                      const bool last = over.load(std::memory_order_acquire);
                      if (const std::uint32_t n = bytes.exchange(0, std::memory_order_acq_rel); n != 0) return n;
                      return last ? 0 : -EAGAIN;
                    },
                    [&](net::detail::system::result n) { return is_drained_by(s.record, n, most); }) == 0;
    }};
    if (pick(2) == 1) {
      wait_a_little();
      signal(s.record, direction::in, net::detail::descriptor::hung_up);
    }
    wait_a_little();
    bytes.store(1, std::memory_order_release);
    over.store(true, std::memory_order_release);
    signal(s.record, direction::in, net::detail::descriptor::hung_up);
  }
}
TEST(sockets, whose_end_comes_with_data_are_read_to_it) {
  expect_sound("data and end with one edge", {.seeds = 20'000, .steps_most = 40'000}, data_and_end_with_one_edge);
}
TEST(sockets, whose_end_is_lost_with_the_hang_up_are_found) {
  expect_found(plant::hang_up_drained, "an end that is lost", {.seeds = 20'000, .steps_most = 40'000},
               data_and_end_with_one_edge);
}

/// An owner closes a record and gives it back while calls that began before end, refused or not; the record is reused
/// at once, by the owner or another thread. Those that still leave must do nothing to the next file. A call uses the
/// number, which nobody else may write meanwhile, and a call that is refused sees what was done before the close.
void give_back_amid_calls() {
  using namespace net::detail;
  descriptor* const d = open_descriptor(-1, endings::pass);
  descriptor* next = nullptr;
  detail::atomic<int> begun{0};
  int before_the_close = 0;
  {
    const auto call = [&] {
      wait_a_little();
      const possible_use during{*d};
      begun.fetch_add(1, std::memory_order_relaxed);
      if (during) check(d->fd == -1, "a strange number");
      else check(before_the_close == 1, "refused, and what was done before the close is not seen");
    };
    simulated_thread one{call};
    simulated_thread two{call};
    simulated_thread other{[] {
      wait_a_little();
      give_back(*open_descriptor(-1, endings::pass));
    }};
    simulated_thread owner{[&] {
      before_the_close = 1;
      close_descriptor(*d);
      while (begun.load(std::memory_order_relaxed) != 2) wait_a_little();
      give_back(*d);
      next = open_descriptor(-1, endings::pass);
    }};
  }
  check(static_cast<bool>(possible_use{*next}), "the next file was closed by a call of the one before");
  check(next->users.load(std::memory_order_relaxed) == 0, "a call of the file before was counted for the next");
  give_back(*next);
  descriptor* const a = open_descriptor(-1, endings::pass);
  descriptor* const b = open_descriptor(-1, endings::pass);
  check(a != b, "a record is free twice");
  give_back(*a);
  give_back(*b);
}
TEST(sockets, given_back_amid_calls) {
  expect_sound("given back amid calls", {.seeds = 30'000, .steps_most = 20'000}, give_back_amid_calls);
}
TEST(sockets, freed_amid_a_call_are_found) {
  expect_found(plant::record_freed_amid_call, "a record that is freed early", {.seeds = 30'000, .steps_most = 20'000},
               give_back_amid_calls);
}

/// N5: an event that was fetched before its record was given back comes late, and says that the peer has hung up.
void event_of_a_recycled_record() {
  using namespace net::detail;
  descriptor* const d = open_descriptor(-1, endings::last);
  const std::uint32_t fetched = d->generation.load(std::memory_order_relaxed) & descriptor::generation_mask;
  descriptor* next = nullptr;
  {
    simulated_thread poller{[&] {
      wait_a_little();
      signal(*d, direction::in, descriptor::hung_up, &fetched);
    }};
    wait_a_little();
    give_back(*d);
    next = open_descriptor(-1, endings::last);
  }
  check(next == d, "the record was not reused");
  check(next->in.is(descriptor::ready), "a new file counts as hung up");
  give_back(*next);
}
TEST(sockets, of_a_recycled_record_hear_of_no_event_before) {
  expect_sound("an event of a recycled record", {.seeds = 5000, .steps_most = 20'000}, event_of_a_recycled_record);
}
TEST(sockets, told_of_an_event_before_are_found) {
  expect_found(plant::generation_ignored, "an event whose generation is ignored", {.seeds = 5000, .steps_most = 20'000},
               event_of_a_recycled_record);
}

}  // namespace
}  // namespace ramie::interleave
