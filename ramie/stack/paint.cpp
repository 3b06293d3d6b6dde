#include <ramie/stack/paint.hpp>

#include <ramie/base/config.hpp>
#include <ramie/stack/pool.hpp>
#include <ramie/stack/system.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace ramie::detail {

namespace {

constexpr std::uint64_t colour = 0x6567617370617274u;  // neither an address nor a likely number
constexpr std::size_t pages_at_once = 256;             // asked about in one call

char* stack_pointer() noexcept {
  char* sp;
#if defined(__x86_64__)
  asm("mov %%rsp, %0" : "=r"(sp));
#elif defined(__aarch64__)
  asm("mov %0, sp" : "=r"(sp));
#endif
  return sp;
}

/// Its own loop, since sanitizers watch memset. Calls nothing, so it has nothing below its stack pointer but
/// the 128 bytes that the ABI of x86-64 grants.
RAMIE_UNWATCHED void fill(char* low, char* high) noexcept {
  constexpr std::size_t spared = 256;
  char* const here = stack_pointer();
  if (here > low && here - spared < high) high = here - spared;
  for (auto* at = reinterpret_cast<volatile std::uint64_t*>(low);
       reinterpret_cast<char*>(const_cast<std::uint64_t*>(at)) + sizeof *at <= high; ++at)
    *at = colour;
}

/// The lowest word on this page that was written, or `high`.
RAMIE_UNWATCHED const char* lowest_written(const char* low, const char* high) noexcept {
  const char* zero = nullptr;
  for (const char* at = low; at + sizeof colour <= high; at += sizeof colour) {
    const std::uint64_t word = *reinterpret_cast<const volatile std::uint64_t*>(at);
    if (word == colour) continue;
    if (word != 0) return at;
    if (zero == nullptr) zero = at;
  }
  return zero == nullptr ? high : zero;
}

/// Calls `visit(low, high)` for each page of `s` that holds memory, from the lowest on, until it says true.
template <class Visit>
void for_each_resident_page(const stack& s, Visit visit) noexcept {
  const std::size_t page = page_size();
  std::array<unsigned char, pages_at_once> resident;
  for (char* low = lowest_usable(s); low < s.top; low += pages_at_once * page) {
    const std::size_t pages = std::min((static_cast<std::size_t>(s.top - low) + page - 1) / page, pages_at_once);
    // Never refused for memory that is mapped; if it is, all of it is examined.
    if (::mincore(low, pages * page, resident.data()) != 0) resident.fill(1);
    for (std::size_t i = 0; i < pages; ++i)
      if ((resident[i] & 1) != 0 && visit(low + i * page, std::min(low + (i + 1) * page, s.top))) return;
  }
}

}  // namespace

void paint(stack& s) noexcept {
  char* const here = stack_pointer();
  const bool own = here > lowest_usable(s) && here <= s.top;
  for_each_resident_page(s, [&](char* low, char* high) {
    if (own && low > here) return true;
    // By a leaf function: the memory below its stack pointer is unused, this frame is above.
    if (own && here < high) high = here;
    fill(low, high);
    return false;
  });
}

std::size_t painted_depth(const stack& s) noexcept {
  std::size_t depth = 0;
  for_each_resident_page(s, [&](const char* low, const char* high) {
    const char* const lowest = lowest_written(low, high);
    if (lowest == high) return false;
    depth = static_cast<std::size_t>(s.top - lowest);
    return true;
  });
  return depth;
}

}  // namespace ramie::detail
