// A file descriptor that fibers and plain threads wait for: its waiters, and when the number may be given back.
//
//  N1 The descriptor is non-blocking and in one epoll set, edge-triggered, for as long as it is open. It is added at
//     the first wait, by the one that claims `registered` in one step: fibers of two runtimes may wait first at once. If
//     the kernel refuses, `registered` is null again, and N6 is for those that waited for its edge meanwhile.
//     The caller makes every system call itself; the poller only says when it is worth another try.
//  N2 Each direction has an automatic event: `ready` is taken by the waiter that it releases. An edge sets it, or wakes
//     the waiter that has waited longest. A call that ends for another reason than EAGAIN, and may not have taken all
//     there is, sets it again. So an edge is never lost: it comes after the EAGAIN that it belongs to, and finds either
//     the waiter or a flag that the next wait takes. A flag that is set for nothing costs one more EAGAIN.
//     A write takes less than there is room for, so it sets the flag again if it has waited; a connection does, too.
//     Reads of TCP take all there is unless they are cut short by their size, or at the mark of urgent data: that has an
//     event of its own, after which a short read counts for nothing. Reads of others end early where the kernel likes: at
//     a line of a terminal, a packet of a pipe, descriptors that came with bytes.
//  N3 A stream's hang-up or error is set for more than one call: data and end may come in one edge. But it may pass (a
//     FIFO has a writer again, an error is in the error queue). So a call that finds nothing lowers it to `ready`: that
//     is taken before the next call, which therefore waits, or finds what came meanwhile. What was lowered may have been
//     newer than the call, and an edge that came while it was set has left no trace of its own. So from then on a short
//     read counts for nothing here either: the read after the last data finds the end.
//  N4 close() marks both directions closed and wakes all waiters; each gets io_errc::closed. The number is given back
//     by the last call under way (`users`), so no call reaches the kernel with a number that has become another file's.
//     A call that comes later is refused, and counts until it has left. The step that ends the last call also says that
//     this call finishes: after it the record may be another file's.
//  N5 A record is free when it has finished, its owner has given it back, and no call is left, refused ones included; the
//     step that makes the last of these true frees it. Records are never freed, but reused, and `generation` counts their uses. An event names record and generation;
//     one fetched before the record was given back finds another generation, under the direction's lock, and does
//     nothing. The descriptor leaves the epoll set explicitly before it is closed: a duplicate would keep it there.
//  N6 A poller that ends (its runtime ends) takes its descriptors out, wakes all waiters (of other runtimes) and sets
//     `ready`. A waiter that resumes and finds nothing registers with the poller of its own runtime at the next wait:
//     under the direction's lock, nothing begins to wait while `registered` is null.
//  N7 Instead of a fiber, a sink may wait for the next edge of the direction `in`. It takes its turn behind all fibers,
//     and is taken out, under the direction's lock, by its caller, or by its owner: so it is called once or not at
//     all. It is called without the lock. A hang-up and close() call it, too.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/sync/wait_queue.hpp>

#include <cstddef>
#include <cstdint>
#include <source_location>

namespace ramie::net::detail {

using ramie::detail::atomic;
using ramie::detail::wait_queue;

class poller;
struct socket_access;  // net/select.hpp

enum class direction : std::uint8_t { in, out };
/// A stream's hang-up lasts; an error of a datagram socket is over once reported.
enum class endings : bool { pass, last };

/// N7. `edge` is called on any thread: it runs no code of the user's, throws nothing, and does not suspend.
struct edge_sink {
  void (*edge)(edge_sink& self) noexcept;
};

struct alignas(128) descriptor {
  // The number of each queue.
  static constexpr std::uint64_t not_ready = 0, ready = 1, hung_up = 2, closed = 3;

  wait_queue in{closed}, out{closed};
  atomic<std::uint32_t> generation{0};
  static constexpr std::uint32_t generation_mask = (1u << 23) - 1;  // as much of it as an event can carry
  atomic<std::uint32_t> users{0};                                   // in user_units, and the flags
  static constexpr std::uint32_t closing = 1, finishing = 2, finished = 4, orphaned = 8, user_unit = 16;
  int fd = -1;
  atomic<endings> how_it_ends{endings::last};  // also read for an event of an earlier generation, which is then dropped
  atomic<bool> short_reads{true};              // N2, N3: a read may return less than there is
  atomic<bool> always_ready{false};            // a regular file: the kernel does not poll it. It orders nothing
  edge_sink* sink = nullptr;                   // the lock of `in`
  atomic<poller*> registered{nullptr};
  descriptor* next = nullptr;      // in the poller's list, or the list of free ones
  descriptor* previous = nullptr;  // in the poller's list

  [[nodiscard]] wait_queue& at(direction d) noexcept { return d == direction::in ? in : out; }
};

/// A record for `fd`, which it then owns. Throws std::bad_alloc; then `fd` is still the caller's. Any thread.
[[nodiscard]] descriptor* open_descriptor(int fd, endings how);
/// N4. Any thread; does not suspend.
void close_descriptor(descriptor& d) noexcept;
/// Closes it if it is open; the record may be reused. No call may begin from now on. Any thread.
void give_back(descriptor& d) noexcept;
/// Takes the number out: the record ends as if closed, and the number stays open. The caller ensures that no call is
/// under way.
[[nodiscard]] int release_fd(descriptor& d) noexcept;

/// Takes `ready`, or waits for it; `what` is one of the io_reasons. True if it waited, and an edge came: unless another
/// caller is faster, there is something. False: it may be a guess. Throws io_error, `cancelled`, resource_error.
/// Suspends. During a use.
bool await_ready(descriptor& d, direction way, const char* what, const std::source_location& where);
/// N2, N3: `to` is ready or hung_up. With a generation (as much as an event carries), only if it is unchanged. Any
/// thread; does not suspend.
void signal(descriptor& d, direction way, std::uint64_t to, const std::uint32_t* generation = nullptr) noexcept;
/// N2: another call may succeed. Any thread; does not suspend.
inline void set_ready(descriptor& d, direction way) noexcept { signal(d, way, descriptor::ready); }
/// N3: a call found nothing, although `await_ready`, `take_ready` or `set_sink` said that something might be there. Any
/// thread; does not suspend.
void found_nothing(descriptor& d, direction way) noexcept;
/// N2: has a read that returned `n` of at most `size` bytes taken all there is?
[[nodiscard]] inline bool is_drained_by(const descriptor& d, std::int64_t n, std::size_t size) noexcept {
  return n > 0 && static_cast<std::size_t>(n) < size &&
         (!d.short_reads.load(std::memory_order_relaxed) || RAMIE_PLANT(short_read_drains));
}
/// N4: has it been closed? Any thread; does not suspend.
[[nodiscard]] inline bool is_closing(const descriptor& d) noexcept {
  return (d.users.load(std::memory_order_acquire) & descriptor::closing) != 0;
}
/// N6. Any thread; does not suspend.
void set_all_ready(descriptor& d) noexcept;

/// Takes `ready`, if it is set; hung_up and closed stay. Does not suspend.
[[nodiscard]] bool take_ready(descriptor& d, direction way) noexcept;

/// N7. False: something is there already, and `ready` was taken; `s` is still the caller's. Throws io_error,
/// resource_error, std::bad_alloc. Any thread; does not suspend. There is no other sink, and the record is in use.
[[nodiscard]] bool set_sink(descriptor& d, edge_sink& s);
/// False: it has been taken out, and was called or is about to be.
[[nodiscard]] bool take_sink_back(descriptor& d, edge_sink& s) noexcept;

/// N2: an edge that a call has taken. Sets `ready` again at its end, also by an exception, unless nothing is left.
class taken_edge {
 public:
  taken_edge(descriptor& d, direction way, bool taken = true) noexcept : d_{d}, way_{way}, taken_{taken} {}
  ~taken_edge() {
    if (taken_) set_ready(d_, way_);
  }
  taken_edge(const taken_edge&) = delete;
  taken_edge& operator=(const taken_edge&) = delete;
  void set(bool taken) noexcept { taken_ = taken; }

 private:
  descriptor& d_;
  direction way_;
  bool taken_;
};

/// A call under way, unless it is closed.
class possible_use {
 public:
  explicit possible_use(descriptor& d) noexcept;
  ~possible_use();
  possible_use(const possible_use&) = delete;
  possible_use& operator=(const possible_use&) = delete;
  explicit operator bool() const noexcept { return d_ != nullptr; }

 private:
  descriptor* d_;
};

/// A call under way. Throws io_error if it is closed.
class use {
 public:
  use(descriptor* d, const char* what);
  ~use();
  use(const use&) = delete;
  use& operator=(const use&) = delete;
  [[nodiscard]] int fd() const noexcept { return d_->fd; }

 private:
  descriptor* d_;
};

/// Owns a record. Movable; everything but moves and the destructor may be called from any thread at any time.
class handle {
 public:
  handle() noexcept = default;
  /// If this throws std::bad_alloc, `fd` is still the caller's.
  handle(int fd, endings how) : d_{open_descriptor(fd, how)} {}
  handle(handle&& other) noexcept : d_{other.d_} { other.d_ = nullptr; }
  handle& operator=(handle&& other) noexcept {
    if (this == &other) return *this;
    if (d_ != nullptr) give_back(*d_);
    d_ = other.d_;
    other.d_ = nullptr;
    return *this;
  }
  ~handle() {
    if (d_ != nullptr) give_back(*d_);
  }
  /// Owns `fd` at once: it is closed if this throws std::bad_alloc.
  [[nodiscard]] static handle owning(int fd, endings how);
  [[nodiscard]] descriptor* get() const noexcept { return d_; }
  [[nodiscard]] descriptor& operator*() const noexcept { return *d_; }
  [[nodiscard]] int fd() const noexcept { return d_ == nullptr ? -1 : d_->fd; }
  void close() const noexcept {
    if (d_ != nullptr) close_descriptor(*d_);
  }
  /// The number, which is the caller's now; -1 if there is none.
  [[nodiscard]] int release() noexcept;

 private:
  descriptor* d_ = nullptr;
};

}  // namespace ramie::net::detail
