// A stream with a buffer in front, and times for its reads and writes: what connections of servers and clients have in
// common.
#pragma once

#include <ramie/net.hpp>
#include <ramie/sync.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

namespace ramie::http {

struct released_at_end {
  counting_semaphore<1>& s;
  ~released_at_end() { s.release(); }
};

class wire {
 public:
  wire(net::any_stream s, std::size_t capacity, std::chrono::nanoseconds write_time) noexcept
      : stream{std::move(s)}, capacity_{capacity}, write_time_{write_time} {}
  wire(const wire&) = delete;
  wire& operator=(const wire&) = delete;

  /// What has been read and not consumed.
  [[nodiscard]] std::string_view input() const noexcept {
    return {reinterpret_cast<const char*>(bytes_.get()) + begin_, end_ - begin_};
  }
  void consume(std::size_t n) noexcept { begin_ += n; }
  /// Reads more behind it. 0 at the end, or if there is no room. Suspends. Throws timeout_error, io_error, `cancelled`.
  std::size_t fill(std::chrono::nanoseconds time) { return fill_until(std::chrono::steady_clock::now() + time); }
  std::size_t fill_until(std::chrono::steady_clock::time_point deadline);
  /// Takes what there is, or reads once. 0 at the end. Same.
  std::size_t take(std::span<std::byte> into, std::chrono::nanoseconds time);
  /// In pieces, for each of which the peer has `write_time`. Puts into `*written`, if there is one, how much of both
  /// the stream has taken, also when it throws. Same.
  void write(std::string_view head, std::span<const std::byte> body = {}, std::size_t* written = nullptr);

  /// Something is done for the peer, or has come. Any thread looks.
  void note_step() noexcept { steps_.store(steps_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }

  /// The stream has failed, or took nothing for `write_time`. Any thread.
  [[nodiscard]] bool is_broken() const noexcept { return broken_.load(std::memory_order_relaxed); }

  net::any_stream stream;
  /// Called while the input is awaited, once nothing has come for a while: what is not needed meanwhile can be given
  /// back.
  std::function<void()> on_rest;

 protected:
  std::atomic<std::uint64_t> steps_{0};

 private:
  void await_input(std::chrono::steady_clock::time_point deadline);

  std::size_t capacity_;
  std::chrono::nanoseconds write_time_;
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t begin_ = 0, end_ = 0;
  std::atomic<bool> broken_{false};
};

}  // namespace ramie::http
