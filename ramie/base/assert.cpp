#include <ramie/base/assert.hpp>

#include <ramie/base/atomic.hpp>

#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace ramie::detail {

void fatal(const char* what, const char* file, int line) noexcept {
#if RAMIE_INTERLEAVE
  interleave::fail(what, file, line);
#endif
  // No stdio and no allocation: this may run in a signal handler or on a full stack.
  char text[512];
  std::size_t used = 0;
  auto append = [&](const char* s) {
    const std::size_t room = sizeof text - 2 - used;
    const std::size_t size = std::strlen(s) < room ? std::strlen(s) : room;
    std::memcpy(text + used, s, size);
    used += size;
  };
  char digits[12];
  char* first = digits + sizeof digits - 1;
  *first = '\0';
  for (unsigned rest = static_cast<unsigned>(line); rest != 0; rest /= 10)
    *--first = static_cast<char>('0' + rest % 10);
  append("ramie: ");
  append(what);
  append(" (");
  append(file);
  append(":");
  append(first);
  append(")");
  text[used++] = '\n';
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, used);
  std::abort();
}

}  // namespace ramie::detail
