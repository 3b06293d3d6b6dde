// Text for a file descriptor, written where code may neither allocate nor wait: signal handlers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ramie::detail {

/// Buffers and writes. All of it is async-signal-safe. Bounded: what goes beyond `bytes_most` is dropped, and so is
/// everything after `seconds_most`, and after the receiver has taken nothing for a second.
class text_writer {
 public:
  text_writer(int fd, std::size_t bytes_most, int seconds_most) noexcept;
  ~text_writer() { flush(); }
  text_writer(const text_writer&) = delete;
  text_writer& operator=(const text_writer&) = delete;

  text_writer& operator<<(std::string_view text) noexcept;
  text_writer& operator<<(const char* text) noexcept;
  text_writer& operator<<(std::uint64_t number) noexcept;
  text_writer& operator<<(std::int64_t number) noexcept;
  text_writer& operator<<(std::uint32_t number) noexcept { return *this << std::uint64_t{number}; }
  text_writer& operator<<(int number) noexcept { return *this << std::int64_t{number}; }
  /// In hexadecimal, with 0x.
  text_writer& operator<<(const void* address) noexcept;
  /// Arbitrary text: quoted, control characters replaced by a question mark.
  text_writer& quoted(const char* text) noexcept;
  /// As "1.234 s", "12 ms", "2 h 3 min".
  text_writer& duration(std::int64_t ns) noexcept;

  void flush() noexcept;
  /// No more is written.
  [[nodiscard]] bool over() const noexcept { return left_ == 0 || gave_up_; }
  /// Something was dropped.
  [[nodiscard]] bool cut() const noexcept { return cut_; }

 private:
  void put(char c) noexcept;

  int fd_;
  std::size_t left_;
  std::size_t size_ = 0;
  std::int64_t end_ns_;
  bool cut_ = false;
  bool gave_up_ = false;
  std::array<char, 1024> text_;
};

}  // namespace ramie::detail
