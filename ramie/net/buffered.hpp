// Reading by lines and records, and writing in small pieces, with few system calls. Over any stream: `Stream` has
// read_some(span<byte>), or write_all(span<const byte>).
#pragma once

#include <ramie/base/error.hpp>
#include <ramie/poll/io_error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ramie::net {

/// Keeps a reference to the stream. For one fiber at a time.
template <class Stream>
class buffered_reader {
 public:
  /// `capacity`: size of the buffer in bytes, also the longest result of read_line and read_until; at least 1.
  explicit buffered_reader(Stream& from, std::size_t capacity = 16 * 1024)
      : from_{&from}, capacity_{capacity}, bytes_{new std::byte[std::max(capacity, capacity + line_end_most)]} {
    if (capacity == 0) throw invalid_argument{"ramie: buffered_reader: capacity is 0; it must be at least 1"};
  }

  /// Returns the buffered bytes; if there are none, reads once. Empty at the end of the stream. Valid until the next
  /// call. All reading functions suspend and throw as read_some of the stream does.
  [[nodiscard]] std::span<const std::byte> peek() {
    if (begin_ == end_) fill(capacity_);
    return {bytes_.get() + begin_, end_ - begin_};
  }
  /// Consumes `n` bytes of what `peek` gave.
  void consume(std::size_t n) noexcept { begin_ += std::min(n, end_ - begin_); }

  /// Takes what is buffered; if there is nothing, reads once. 0 at the end of the stream, or if `into` is empty.
  std::size_t read_some(std::span<std::byte> into) {
    if (begin_ == end_ && into.size() >= capacity_) return from_->read_some(into);  // bypasses the buffer
    const std::span<const std::byte> there = peek();
    const std::size_t n = std::min(there.size(), into.size());
    if (n != 0) std::memcpy(into.data(), there.data(), n);
    consume(n);
    return n;
  }
  /// Fills all of `into`. False if the stream ended before the first byte; throws io_error with io_errc::unexpected_end
  /// if it ended after that. `read`, if given, is how many bytes of it were read, also when this throws.
  [[nodiscard]] bool read_exactly(std::span<std::byte> into, std::size_t* read = nullptr) {
    std::size_t ignored = 0;
    std::size_t& done = read == nullptr ? ignored : *read;
    done = 0;
    while (done < into.size()) {
      const std::size_t n = read_some(into.subspan(done));
      if (n == 0) {
        if (done == 0) return false;
        throw io_error{"read after " + std::to_string(done) + " of " + std::to_string(into.size()) + " bytes",
                       io_errc::unexpected_end};
      }
      done += n;
    }
    return true;
  }
  /// Returns the bytes before the next `end`, and consumes both. At the end of the stream the remaining bytes are
  /// returned, then nullopt. Valid until the next call. Throws io_error with io_errc::too_long, and consumes nothing,
  /// if it does not fit into the buffer.
  [[nodiscard]] std::optional<std::string_view> read_until(char end) { return until(end, false); }
  /// Same as read_until('\n'), without a "\r" at the end.
  [[nodiscard]] std::optional<std::string_view> read_line() { return until('\n', true); }

 private:
  static constexpr std::size_t line_end_most = 2;  // behind the longest line

  std::optional<std::string_view> until(char end, bool line) {
    std::size_t searched = 0;
    for (bool ended = false;;) {
      const std::string_view there{reinterpret_cast<const char*>(bytes_.get() + begin_), end_ - begin_};
      const std::size_t at = there.find(end, searched);
      const bool found = at != std::string_view::npos;
      searched = there.size();
      std::string_view result = there.substr(0, at);
      if (line && !result.empty() && result.back() == '\r') result.remove_suffix(1);
      if (result.size() > capacity_)
        throw io_error{"read_until: no byte " + std::to_string(static_cast<unsigned char>(end)) + " in the first " +
                           std::to_string(capacity_) + " bytes",
                       io_errc::too_long};
      if (found || (ended && searched != 0)) {
        begin_ += found ? at + 1 : searched;
        return result;
      }
      if (ended) return std::nullopt;
      ended = fill(searched < capacity_ ? capacity_ : capacity_ + line_end_most) == 0;
    }
  }
  /// Reads more behind what is buffered, up to `most` bytes in all; 0 at the end.
  std::size_t fill(std::size_t most) {
    if (begin_ != 0) {
      std::memmove(bytes_.get(), bytes_.get() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    const std::size_t n = from_->read_some({bytes_.get() + end_, most - end_});
    end_ += n;
    return n;
  }

  Stream* from_;
  std::size_t capacity_;
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t begin_ = 0, end_ = 0;
};

/// Collects small writes. Keeps a reference to the stream. For one fiber at a time. The destructor does not flush,
/// because it could not report a failure: call flush().
template <class Stream>
class buffered_writer {
 public:
  explicit buffered_writer(Stream& to, std::size_t capacity = 16 * 1024)
      : to_{&to}, capacity_{capacity}, bytes_{new std::byte[capacity == 0 ? 1 : capacity]} {
    if (capacity == 0) throw invalid_argument{"ramie: buffered_writer: capacity is 0; it must be at least 1"};
  }

  /// Suspends only when the buffer is full. Throws as write_all does; then it is unknown how much has arrived.
  void write(std::span<const std::byte> from) {
    if (from.size() >= capacity_) {
      flush();
      owes_ = true;
      to_->write_all(from);
      owes_ = false;
      return;
    }
    if (from.size() > capacity_ - used_) flush();
    if (!from.empty()) std::memcpy(bytes_.get() + used_, from.data(), from.size());
    used_ += from.size();
  }
  void write(std::string_view text) { write(std::as_bytes(std::span{text})); }
  /// Writes what is buffered. Suspends and throws as write_all does. What the stream has not taken then stays, if it
  /// says how much that is, as all of ramie's do; otherwise the buffer is empty.
  void flush() {
    if (used_ == 0 && !owes_) return;
    const std::span<const std::byte> all{bytes_.get(), used_};
    std::size_t written = used_;
    owes_ = true;
    try {
      if constexpr (requires { to_->write_all(all, &written); }) to_->write_all(all, &written);
      else to_->write_all(all);
    } catch (...) {
      used_ -= written;
      std::memmove(bytes_.get(), bytes_.get() + written, used_);
      throw;
    }
    used_ = 0;
    owes_ = false;
  }
  [[nodiscard]] std::size_t buffered() const noexcept { return used_; }

 private:
  Stream* to_;
  std::size_t capacity_;
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t used_ = 0;
  bool owes_ = false;  // a write has failed: the stream may keep what it has taken until the next, as that of TLS does
};

}  // namespace ramie::net
