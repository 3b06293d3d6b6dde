// What a runtime's workers, fibers and actors are doing, as data: what a dump says as text.
#pragma once

#include <ramie/runtime/statistics.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ramie {

class runtime;

/// How much of a snapshot is listed. What is not listed is counted.
struct snapshot_options {
  std::size_t fibers = 200;   // those that do not wait, and then those that have waited longest
  std::size_t actors = 200;   // those with the longest mailboxes, and the supervisors above them
  std::uintptr_t follow = 0;  // the id of a fiber or actor: it is listed first, with its calls
  std::size_t calls = 32;     // of that one; at most 64
};

/// Where fibers wait. Empty strings and 0 are not known.
struct wait_place {
  std::string reason;  // "channel receive", "mutex", ...
  std::string file;
  std::string function;  // with parameters
  std::uint32_t line = 0;
};

/// A fiber, an actor in the middle of something, or a child of a scope or fork, that has begun and not ended.
struct fiber_view {
  enum class doing : std::uint8_t { runs, is_ready, waits, changes };  // changes: begins to wait, or is being woken
  std::uintptr_t id = 0;
  std::string name, kind;  // kind: "fiber", "child", or an actor's class
  doing state = doing::waits;
  wait_place where;                              // if it waits
  std::int64_t waits_ns = -1;                    // -1: not known
  std::uintptr_t spawned_by = 0, joined_by = 0;  // ids
  std::uintptr_t held_by = 0;                    // the holder of the mutex that it waits for
  int worker = -1;                               // that it ran on last
  int fd = -1;                                   // the descriptor that it waits for
  bool writes = false;                           // for room in it
  std::string peer;  // of that descriptor, as "127.0.0.1:80"; its own address if it has no peer
  bool is_stopping = false, is_actor = false;
  std::vector<std::string> calls;  // innermost first; of the one that is followed
};

struct actor_view {
  std::uintptr_t id = 0;
  std::string name, type, state;  // state: "idle", "is ready", ...
  std::uint64_t mail = 0;         // messages in its mailbox
  std::uintptr_t supervisor = 0;  // 0: none
};

struct worker_view {
  int number = 0;
  int thread = 0;                 // the kernel's id
  std::int64_t processor_ns = 0;  // that the thread has used since its start
  enum class doing : std::uint8_t { sleeps, searches, runs } state = doing::sleeps;
  std::uintptr_t runs = 0;          // the id of a fiber or actor
  std::string title;                // of that: its name, or its class
  std::size_t timers = 0;           // that were started here and have not fired
  std::int64_t next_timer_ns = -1;  // until the first of them fires; -1: there is none
  std::size_t fork_jobs = 0;        // offered to thieves
};

/// Fibers that wait at one place.
struct place_count {
  wait_place where;
  std::uint64_t count = 0;
  std::int64_t longest_ns = 0;
};

struct runtime_snapshot {
  runtime_statistics statistics;
  std::vector<worker_view> workers;  // in the order of statistics.workers
  std::uint64_t begun = 0;           // fibers, actors and children on a stack: they are running, ready or waiting
  std::uint64_t running = 0, ready = 0, waiting = 0;
  std::vector<place_count> places;  // the largest first; at most 100
  std::vector<fiber_view> fibers;
  std::uint64_t all_actors = 0;
  std::vector<actor_view> actors;
  std::int64_t cost_ns = 0;  // processor time that the snapshot took
};

/// Each fiber is held for the microsecond that it is looked at, and the others continue, so the whole is true of no
/// single moment. Takes some 8 microseconds a fiber. The 4,096 newest actors of each worker are looked at; older ones
/// are counted. For one thread or fiber at a time; others wait. Blocks, does not suspend. Any thread. Throws
/// std::bad_alloc.
[[nodiscard]] runtime_snapshot snapshot(runtime& of, const snapshot_options& options = {});

}  // namespace ramie
