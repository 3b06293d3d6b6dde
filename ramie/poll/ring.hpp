// io_uring, for files: reads and writes that have to wait for the disk. Sockets do not use it (docs/design/io.md).
//
//  U1 One ring a runtime, made when a fiber first needs it, with no flags: completions must come while the thread that
//     submitted computes or sleeps. Its descriptor is in the runtime's epoll set, level-triggered.
//  U2 A fiber fills a place of the submission queue, under `lock_`. If its worker has something else to run, which may
//     want to read as well, it leaves it to the next `flush`, which enters the kernel once for all that is there: by the
//     last such fiber, or by the next poll. A worker flushes when it runs out of work, before it sleeps, and at ticks, and
//     the monitor does after a millisecond (event_source.hpp, E1, E6). What the kernel does not take is taken back, and
//     its fibers use a helper thread.
//  U3 At most as many operations are under way as the completion queue has places (`under_way_`), so none overflows. One
//     more is refused, and its caller uses a helper thread.
//  U4 The fiber waits uninterruptibly: the kernel has its buffer. The operation lies on the fiber's stack.
//  U5 The holder of the role of the event source takes the completions: writes the result into the operation, takes it
//     out of `under_way_`, and wakes the fiber as the last thing.
//  U6 The ring ends with its runtime, which has no fibers then, so nothing is under way.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/poll/system.hpp>

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>

struct io_uring_sqe;
struct io_uring_cqe;

namespace ramie::net::detail {

using ramie::detail::atomic;

enum class ring_call : std::uint8_t { read, write, sync, sync_data };

class ring {
 public:
  /// 0, or minus the errno: EPERM by a sandbox or sysctl, ENOSYS by an old kernel, ENOMEM by a memlock limit.
  [[nodiscard]] static system::result make(std::unique_ptr<ring>& into);
  ring(const ring&) = delete;
  ring& operator=(const ring&) = delete;
  ~ring();

  [[nodiscard]] int fd() const noexcept { return fd_; }
  /// U2 to U4: makes the call for the calling fiber, which waits. False: it was not made; use another way. Suspends. If
  /// `cancels`, throws `cancelled` where the fiber has been asked to stop before; it is not interrupted after that.
  bool call(ring_call what, int fd, const iovec& part, off_t at, system::result& result, bool cancels,
            const std::source_location& where);
  /// U2. Any thread; does not suspend.
  void flush() noexcept {
    if (left_.load(std::memory_order_relaxed) != 0) enter();  // what this thread's fibers have left it sees
  }
  /// U5. With the role.
  void reap() noexcept;
  [[nodiscard]] bool is_waited_for() const noexcept { return under_way_.load(std::memory_order_relaxed) != 0; }

 private:
  struct operation;
  static constexpr std::uint32_t entries = 64;        // of the submission queue; a full one is flushed. A guess
  static constexpr std::int32_t refused = INT32_MIN;  // a result: the kernel did not take it

  ring() = default;
  system::result open() noexcept;
  void put(ring_call what, int fd, const iovec& part, off_t at, operation& o) noexcept;
  void enter() noexcept;
  void enter_locked() noexcept;

  int fd_ = -1;
  void* map_ = nullptr;  // both queues
  std::size_t map_size_ = 0;
  io_uring_sqe* places_ = nullptr;
  std::size_t places_size_ = 0;
  // In `map_`, shared with the kernel.
  std::uint32_t *submitted_head_ = nullptr, *submitted_tail_ = nullptr, *order_ = nullptr;
  std::uint32_t *completed_head_ = nullptr, *completed_tail_ = nullptr;
  io_uring_cqe* completions_ = nullptr;
  std::uint32_t submitted_mask_ = 0, completed_mask_ = 0, most_ = 0;
  ramie::detail::os_mutex lock_;   // the submission queue
  atomic<std::uint32_t> left_{0};  // places that the kernel has not taken yet; written under lock_
  atomic<std::uint32_t> under_way_{0};
};

}  // namespace ramie::net::detail
