// What one thread knows of the others' stores, and which old values its loads may return: the memory of the runs that
// are weaker than x86-TSO. Clocks of events tell what came before what.
//
//  K1 Each access of a thread is an event with a number, and knows[t] holds, for each thread, the latest of its events
//     that thread t cannot miss any more (`seen`), and the latest that happened before in the sense of C++20 (`before`).
//     The second is what plain data need (plain_memory.hpp); K5 is where they differ.
//  K2 Each location keeps its last few stores, in their order of modification, which is that of the run: stores to one
//     location are not exchanged, nor is a store seen before it is made (no load buffering).
//  K3 A load may return any kept store that is not older than the latest one that the thread knows of: its own, one that
//     happened before, or one that was read by what happened before (coherence). Old ones also expire after a number of
//     steps that the run chooses, since all hardware drains its buffers.
//  K4 A release store carries what its thread knows; an acquire load that reads it adds that to what its thread knows. A
//     relaxed store carries what was known at the thread's last fence; what a relaxed load reads is known from the next
//     fence on. A read-modify-write reads the newest value and passes on what that carries (release sequences).
//  K5 A full fence also adds what was seen at all full fences before it, and leaves what it sees for those after it.
//     Sequentially consistent accesses are taken as fenced, as the processors do them; C++ promises less. None of this
//     makes anything happen before anything else: nobody has read what another wrote.
//  K6 membarrier(2) is a full fence of each thread, and an order both ways between each and the caller: by interrupts.
//  K7 An atomic whose beginning did not happen before its use was handed over without an order; so was one that ends its
//     life while another thread's last access did not happen before. Both fail the run: this is how a missing release on
//     the way of an object is found, whatever its plain fields are.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ramie::interleave {

class engine;

inline constexpr std::uint32_t engine_threads_most = 24;
using event_clock = std::array<std::uint32_t, engine_threads_most>;
/// By each thread: the latest event (K1).
struct knowledge {
  event_clock seen;
  event_clock before;
};

class weak_memory {
 public:
  /// A run begins with one thread. `one_in`: how often a load looks for an old value; `lasts`: steps until it expires.
  void begin(std::uint32_t one_in, std::uint64_t lasts) noexcept;

  struct seen {
    std::uint64_t value;
    bool old;
  };
  /// `newest`: what is in the memory.
  seen load(engine& e, const void* at, std::uint64_t newest, std::memory_order o) noexcept;
  /// Before the memory is written.
  void store(engine& e, const void* at, std::uint64_t before, std::uint64_t after, std::memory_order o) noexcept;
  void modify(engine& e, const void* at, std::uint64_t before, std::uint64_t after, std::memory_order o) noexcept;
  /// A compare-and-swap that failed by the newest value.
  void read_newest(engine& e, const void* at, std::uint64_t newest, std::memory_order o) noexcept;
  void construct(engine& e, const void* at) noexcept;
  void destroy(engine& e, const void* at) noexcept;
  void fence(std::uint32_t thread) noexcept;
  /// membarrier's in `thread`, called by `by`.
  void interrupt(std::uint32_t by, std::uint32_t thread) noexcept;
  void started(std::uint32_t by, std::uint32_t thread) noexcept;
  void joined(std::uint32_t by, std::uint32_t thread) noexcept;

  // For accesses that are not atomic: they have the number of the next event of their thread.
  [[nodiscard]] std::uint32_t next_event(std::uint32_t thread) const noexcept {
    return knows_[thread].before[thread] + 1;
  }
  /// What `thread` does now comes after `event`.
  [[nodiscard]] bool happened_before(std::uint32_t thread, std::uint32_t by, std::uint32_t event) const noexcept {
    return knows_[thread].before[by] >= event;
  }

 private:
  static constexpr std::uint32_t nobody = UINT32_MAX;
  static constexpr unsigned kept_most = 5;

  struct written {
    std::uint64_t value;
    std::uint64_t step;
    std::uint32_t by;  // nobody: before all that any thread does
    std::uint32_t event;
    bool carries;
    knowledge carried;
    event_clock read;  // by each thread: the event of its first read; 0: none
  };
  struct location {
    const void* at = nullptr;
    std::uint64_t run = 0;  // of another run: empty
    std::uint32_t made_by = nobody;
    std::uint32_t made = 0;
    std::uint32_t count = 0;
    std::uint32_t first = 0;
    event_clock used;  // by each thread: its last access
    std::array<written, kept_most> kept;
    written& operator[](std::uint32_t i) noexcept { return kept[(first + i) % kept_most]; }
  };

  location& find(const void* at) noexcept;
  location& use(engine& e, const void* at, std::uint64_t newest) noexcept;
  void reset(location& l, const void* at) noexcept;
  written& append(location& l, std::uint64_t value, std::uint32_t by, std::uint32_t event, std::uint64_t step) noexcept;
  [[nodiscard]] bool is_known(const written& w, std::uint32_t thread) const noexcept;
  std::uint32_t begin_event(std::uint32_t thread) noexcept;
  void join(event_clock& to, const event_clock& from) const noexcept;
  void join(knowledge& to, const knowledge& from) const noexcept;
  void see_fences(std::uint32_t thread) noexcept;
  void acquire(std::uint32_t thread, const written& from, std::memory_order o) noexcept;

  std::uint64_t run_ = 0;
  std::uint32_t threads_ = 1;
  std::uint32_t one_in_ = 2;
  std::uint64_t lasts_ = 0;
  std::array<knowledge, engine_threads_most> knows_{};
  std::array<knowledge, engine_threads_most> will_know_{};  // from the next fence on
  std::array<knowledge, engine_threads_most> fenced_{};     // what was known at the last fence
  event_clock full_fences_{};
  // By malloc: a test may refuse memory to `new`.
  static constexpr std::size_t places_most = 1 << 16;
  location** table_ = nullptr;
  location** all_ = nullptr;
  std::size_t used_ = 0;  // of `all_`
};

}  // namespace ramie::interleave
