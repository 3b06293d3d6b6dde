// Many fibers parked at once by nothing but spawn and join: a chain in which each link joins the one before it.
//
//  1. The driver spawns a link, hands it the handle of the link before it (the first link gets the driver's), and
//     yields until the link says that it has started.
//  2. The link joins what it was handed. It has to park: its predecessor has started too (otherwise join might run it
//     in place) and cannot end before the driver does. So there is one park a link, and never more than one runnable
//     fiber besides the new link.
//  3. When a batch is complete the driver ends. That wakes the first link, whose end wakes the second, and so on.
//  4. The last link of a batch, once woken, is the driver of the next one. The last of all stops the clock.
//
// A link costs one spawn, one park, one wake-up, one end, and one yield of the driver.
#pragma once

#include <ramie/ramie.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>

namespace ramie::lab {

class fiber_chain {
 public:
  /// `all_parked` is called by the driver whenever all links of a batch are parked.
  fiber_chain(std::int64_t batches, std::int64_t links_each, std::function<void()> all_parked = {});

  /// Runs all batches. Call once, from a fiber: suspends. Returns the number of links, counted from one link's
  /// result to the next. Throws what spawning or `all_parked` threw, after the links that exist have ended.
  std::int64_t run();

  /// From the first spawn to the end of the last link.
  [[nodiscard]] double seconds() const { return std::chrono::duration<double>(stop_ - start_).count(); }
  /// The part of it in which the links of the last batch were made and parked, and the part in which they were woken
  /// and ended. Neither contains the time of `all_parked`.
  [[nodiscard]] double parking_seconds() const { return std::chrono::duration<double>(parked_ - batch_start_).count(); }
  [[nodiscard]] double ending_seconds() const { return std::chrono::duration<double>(stop_ - release_).count(); }

 private:
  using clock = std::chrono::steady_clock;
  using handle = ramie::join_handle<std::int64_t>;

  void drive();
  void extend(bool drives_next);
  std::int64_t live_as_link(bool drives_next);
  void finish();

  std::int64_t batches_left_;
  std::int64_t links_each_;
  std::function<void()> all_parked_;
  clock::time_point start_;
  clock::time_point batch_start_;
  clock::time_point parked_;   // all links of the batch
  clock::time_point release_;  // of the batch
  clock::time_point stop_;
  std::exception_ptr failure_;
  handle last_;         // of the newest link, or of the driver if it has made none
  handle handed_over_;  // what the next link is to join
  std::atomic<bool> link_started_{false};
  std::atomic<bool> driver_may_start_{false};
  std::atomic<bool> finished_{false};
};

}  // namespace ramie::lab
