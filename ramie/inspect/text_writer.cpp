#include <ramie/inspect/text_writer.hpp>

#include <poll.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace ramie::detail {

namespace {
constexpr int patience_ms = 1000;  // with a reader that does not read; a guess
constexpr std::int64_t us = 1'000, ms = 1'000'000, second = 1'000'000'000;

std::int64_t clock_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * second + now.tv_nsec;
}
}  // namespace

text_writer::text_writer(int fd, std::size_t bytes_most, int seconds_most) noexcept
    : fd_{fd}, left_{bytes_most}, end_ns_{clock_ns() + seconds_most * second} {}

void text_writer::put(char c) noexcept {
  if (left_ == 0 || gave_up_) {
    cut_ = true;
    return;
  }
  --left_;
  text_[size_++] = c;
  if (size_ == text_.size()) flush();
}

text_writer& text_writer::operator<<(std::string_view text) noexcept {
  for (const char c : text) put(c);
  return *this;
}

text_writer& text_writer::operator<<(const char* text) noexcept {
  return *this << std::string_view{text == nullptr ? "" : text};
}

text_writer& text_writer::operator<<(std::uint64_t number) noexcept {
  std::array<char, 20> digits;
  std::size_t n = 0;
  do digits[n++] = static_cast<char>('0' + number % 10);
  while ((number /= 10) != 0);
  while (n != 0) put(digits[--n]);
  return *this;
}

text_writer& text_writer::operator<<(std::int64_t number) noexcept {
  if (number >= 0) return *this << static_cast<std::uint64_t>(number);
  put('-');
  return *this << ~static_cast<std::uint64_t>(number) + 1;
}

text_writer& text_writer::operator<<(const void* address) noexcept {
  auto number = reinterpret_cast<std::uintptr_t>(address);
  std::array<char, 16> digits;
  std::size_t n = 0;
  do digits[n++] = "0123456789abcdef"[number % 16];
  while ((number /= 16) != 0);
  *this << "0x";
  while (n != 0) put(digits[--n]);
  return *this;
}

text_writer& text_writer::quoted(const char* text) noexcept {
  put('"');
  for (; *text != '\0'; ++text) put(static_cast<unsigned char>(*text) < ' ' ? '?' : *text);
  put('"');
  return *this;
}

text_writer& text_writer::duration(std::int64_t ns) noexcept {
  if (ns < 0) ns = 0;
  if (ns < ms) return *this << ns / us << " us";
  if (ns < second) return *this << ns / ms << " ms";
  const std::int64_t seconds = ns / second;
  if (seconds >= 3600) return *this << seconds / 3600 << " h " << seconds / 60 % 60 << " min";
  if (seconds >= 60) return *this << seconds / 60 << " min " << seconds % 60 << " s";
  const std::int64_t fraction = ns % second / ms;
  *this << seconds << ".";
  if (fraction < 100) *this << "0";
  if (fraction < 10) *this << "0";
  return *this << fraction << " s";
}

void text_writer::flush() noexcept {
  if (size_ != 0 && clock_ns() >= end_ns_) gave_up_ = true;
  for (std::size_t at = 0; at < size_ && !gave_up_;) {
    pollfd ready{fd_, POLLOUT, 0};
    const int polled = ::poll(&ready, 1, patience_ms);
    const ssize_t n = polled == 0 ? -1 : ::write(fd_, text_.data() + at, size_ - at);
    if (n > 0) at += static_cast<std::size_t>(n);
    else if (polled == 0 || (errno != EINTR && errno != EAGAIN)) gave_up_ = true;
  }
  if (gave_up_) cut_ = true;
  size_ = 0;
}

}  // namespace ramie::detail
