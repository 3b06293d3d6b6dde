#include <ramie/task/refused.hpp>

#include <ramie/base/notice.hpp>
#include <ramie/task/task.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ramie::detail {

namespace {

/// A guess: more than any clean-up needs, and 20 ms of a loop that does nothing else.
constexpr std::uint32_t refused_most = 10'000;

/// The last fiber that came by here, and how often in a row. Of two in one place none may be noticed.
struct alignas(64) suspect {
  std::atomic<const task*> who{nullptr};
  std::atomic<std::uint32_t> times{0};
};
constinit std::array<suspect, 16> suspects{};

suspect& suspect_for(const task& t) noexcept {
  return suspects[(reinterpret_cast<std::uintptr_t>(&t) >> 6) % suspects.size()];
}

}  // namespace

void note_refused_wait(const task& t, const wait_site& site) noexcept {
  suspect& s = suspect_for(t);
  if (s.who.load(std::memory_order_relaxed) != &t) {
    s.who.store(&t, std::memory_order_relaxed);
    s.times.store(0, std::memory_order_relaxed);
    return;
  }
  if (s.times.fetch_add(1, std::memory_order_relaxed) != refused_most) return;
  if (!may_notice(key_of(site.where) + reinterpret_cast<std::uintptr_t>(site.reason))) return;
  notice(
      "fiber \"%s\" has begun %u waits since it was asked to stop, the last for %s, at %s:%u in %s: something "
      "there swallows ramie::cancelled; let it pass",
      name_of(&t), refused_most, site.reason, site.where.file_name(), static_cast<unsigned>(site.where.line()),
      site.where.function_name());
}

void take_back_refused_wait(const task& t) noexcept {
  suspect& s = suspect_for(t);
  if (s.who.load(std::memory_order_relaxed) == &t && s.times.load(std::memory_order_relaxed) != 0)
    s.times.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace ramie::detail
