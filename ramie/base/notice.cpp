#include <ramie/base/notice.hpp>

#include <ramie/base/config.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdarg>
#include <cstddef>
#include <cstdio>

namespace ramie::detail {

namespace {

/// Not told in the simulator, where a report's copy of an atomic is none.
constinit std::atomic<bool> switched_off{RAMIE_INTERLEAVE != 0};
/// A guess: a program with more such places has been told enough.
constexpr std::size_t places_most = 64;
constinit std::array<std::atomic<std::uintptr_t>, places_most> places_told{};

}  // namespace

void switch_off_notices() noexcept { switched_off.store(true, std::memory_order_relaxed); }
bool notices_are_on() noexcept { return !switched_off.load(std::memory_order_relaxed); }

bool may_notice(std::uintptr_t place) noexcept {
  if (!notices_are_on()) return false;
  for (std::atomic<std::uintptr_t>& slot : places_told) {
    std::uintptr_t told = slot.load(std::memory_order_relaxed);
    if (told == 0 && slot.compare_exchange_strong(told, place, std::memory_order_relaxed)) return true;
    if (told == place) return false;
  }
  return false;
}

std::uintptr_t key_of(const std::source_location& where) noexcept {
  return reinterpret_cast<std::uintptr_t>(where.file_name()) + (std::uintptr_t{where.line()} << 48) + where.column();
}

void notice(const char* format, ...) noexcept {
  constexpr char head[] = "ramie: notice: ";
  constexpr std::size_t head_size = sizeof head - 1;
  std::array<char, 1200> text;
  std::copy_n(head, head_size, text.begin());
  std::va_list values;
  va_start(values, format);
  const int size = std::vsnprintf(text.data() + head_size, text.size() - head_size - 1, format, values);
  va_end(values);
  if (size < 0) return;
  const std::size_t end = std::min(head_size + static_cast<std::size_t>(size), text.size() - 2);
  text[end] = '\n';
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), end + 1);
}

}  // namespace ramie::detail
