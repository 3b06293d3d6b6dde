// A thread that is blocked in a lock of the C library sleeps in futex(2) on a word of that lock, and the kernel tells
// the word's address (proc_pid_syscall(5)). The guard of a static is itself that word in libstdc++, and a
// std::once_flag or std::mutex begins with it; those that are variables of the program have symbols.
#include <ramie/inspect/stall_report.hpp>

#include <ramie/inspect/symbols.hpp>
#include <ramie/sched/scheduler.hpp>

#include <cxxabi.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ramie::detail {

namespace {

/// The word on which the thread sleeps in futex(2); 0 if it does not, or that cannot be told.
std::uintptr_t futex_of(int thread_id) noexcept {
  std::array<char, 48> path{};
  std::snprintf(path.data(), path.size(), "/proc/self/task/%d/syscall", thread_id);
  const int file = ::open(path.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  std::array<char, 256> text{};
  const ssize_t n = ::read(file, text.data(), text.size() - 1);
  ::close(file);
  // "202 0x55d0c0ffee00 0x80 ...", or "running".
  char* end = nullptr;
  if (n <= 0 || std::strtol(text.data(), &end, 10) != SYS_futex || end == text.data()) return 0;
  return std::strtoull(end, nullptr, 16);
}

std::string lock_at(std::uintptr_t address) {
  symbol_finder symbols;
  const code_place place = symbols.find(address);
  if (place.function == nullptr) {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "a lock at %#zx", static_cast<std::size_t>(address));
    return text.data();
  }
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> readable{
      abi::__cxa_demangle(place.function, nullptr, nullptr, &status), &std::free};
  const std::string_view name = readable ? readable.get() : place.function;
  constexpr std::string_view guard = "guard variable for ";
  if (name.starts_with(guard)) return "the initialisation of the static " + std::string{name.substr(guard.size())};
  return "the lock " + std::string{name};
}

}  // namespace

bool report_stall(const scheduler& of, std::int64_t since_ns) noexcept {
  try {
    std::vector<std::uintptr_t> words;
    const std::size_t workers = of.worker_count();
    for (std::size_t i = 0; i < workers; ++i)
      if (const std::uintptr_t word = futex_of(of.at(i).thread_id.load(std::memory_order_relaxed)); word != 0)
        words.push_back(word);
    std::sort(words.begin(), words.end());
    std::uintptr_t most = 0;
    std::size_t blocked = 0;
    for (auto at = words.begin(); at != words.end();) {
      const auto next = std::upper_bound(at, words.end(), *at);
      if (const auto n = static_cast<std::size_t>(next - at); n > blocked) {
        blocked = n;
        most = *at;
      }
      at = next;
    }
    if (blocked == 0 || 2 * blocked < workers) return false;
    std::fprintf(
        stderr,
        "ramie: runtime \"%s\": work waits, but all %zu workers have stood still for %.1f s; %zu are blocked in "
        "%s. A fiber that waits in an initialiser, in std::call_once or with a std::mutex held can block all "
        "others for good: see \"What a fiber must not do\" in docs/rules.md\n",
        of.options().name.c_str(), workers, static_cast<double>(since_ns) / 1e9, blocked, lock_at(most).c_str());
    std::fflush(stderr);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace ramie::detail
