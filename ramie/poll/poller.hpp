// The epoll set of a runtime and the handling of its events. The protocol is in descriptor.hpp.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/poll/descriptor.hpp>
#include <ramie/poll/ring.hpp>
#include <ramie/worker/event_source.hpp>

#include <sys/epoll.h>

#include <array>
#include <cstdint>
#include <memory>

namespace ramie::net::detail {

/// Never freed, but reused by the next runtime that needs one: a descriptor may name a poller that ends meanwhile.
class poller final : public ramie::detail::event_source {
 public:
  /// Throws io_error if the kernel refuses an epoll set, std::bad_alloc.
  [[nodiscard]] static poller* make();

  int look(std::int64_t timeout_ns) noexcept override;
  void dispatch() noexcept override;
  void interrupt() noexcept override;
  void flush() noexcept override;
  [[nodiscard]] bool is_waited_for() noexcept override;
  void end() noexcept override;

  /// Puts `d` into the set, unless it is in one. Throws io_error; marks it always_ready if the kernel does not poll
  /// such files. Any thread.
  void add(descriptor& d);
  /// Takes it out. Any thread.
  void remove(descriptor& d) noexcept;
  [[nodiscard]] ramie::detail::event_counts counts() noexcept override;
  [[nodiscard]] ramie::detail::file_facts files() noexcept override;
  /// The ring of this poller's runtime, made at the first call; null if the kernel refuses it, which is asked once.
  /// Any fiber of the runtime.
  [[nodiscard]] ring* ring_for_files() noexcept;

 private:
  static constexpr int events_most = 128;  // at a time, so that timers and queues get their turn

  poller() = default;
  ~poller() override = default;
  void open();
  void put_back() noexcept;
  void unlink(descriptor& d) noexcept;  // with the lock held

  int epoll_ = -1;
  int interrupt_ = -1;
  int found_ = 0;
  std::array<epoll_event, events_most> events_{};
  ramie::detail::os_mutex lock_;
  descriptor* first_ = nullptr;    // lock_
  std::uint64_t descriptors_ = 0;  // lock_
  poller* next_free_ = nullptr;
  std::unique_ptr<ring> owned_ring_;      // lock_
  atomic<ring*> ring_{nullptr};           // the same, once it is in the set
  atomic<std::int32_t> ring_refused_{0};  // errno; -1: not tried yet
  atomic<std::uint64_t> looks_{0}, seen_{0};
};

/// The poller of the calling fiber's runtime, made at the first call; on a plain thread, one with a dedicated thread.
/// Throws io_error, resource_error, std::bad_alloc.
[[nodiscard]] poller& poller_here();

}  // namespace ramie::net::detail
