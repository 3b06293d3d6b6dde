#include <ramie/inspect/describe.hpp>

#include <ramie/context/frames.hpp>
#include <ramie/inspect/library_code.hpp>
#include <ramie/stack/pool.hpp>
#include <ramie/task/current.hpp>

#include <arpa/inet.h>
#include <cxxabi.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <string_view>

namespace ramie::detail {

namespace {

/// The used part of the stack that `sp` is on; empty if that is not known.
stack_range stack_around(const char* sp) noexcept {
  const worker_base* w = current_worker();
  if (w != nullptr && w->running != nullptr && sp >= lowest_usable(*w->running) && sp < w->running->top)
    return {sp, w->running->top};
  pthread_attr_t attributes;
  void* low = nullptr;
  std::size_t size = 0;
  if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return {sp, sp};
  const bool known = ::pthread_attr_getstack(&attributes, &low, &size) == 0;
  ::pthread_attr_destroy(&attributes);
  const char* const high = static_cast<const char*>(low) + size;
  return known && sp >= low && sp < high ? stack_range{sp, high} : stack_range{sp, sp};
}

}  // namespace

void write_title(text_writer& out, const task_facts& t) noexcept {
  if (t.kind == task_kind::resident) {
    out << t.resident.kind << " ";
    if (!t.resident.type.empty()) out << t.resident.type << " ";
  } else {
    out << (t.strand ? "child " : "fiber ");
  }
  if (t.name[0] != '\0') out.quoted(t.name.data()) << " ";
  out << t.id;
}

void write_function(text_writer& out, const code_place& place, bool demangled) noexcept {
  char* const readable = demangled ? abi::__cxa_demangle(place.function, nullptr, nullptr, nullptr) : nullptr;
  out << (readable == nullptr ? place.function : readable) << "+" << std::uint64_t{place.into};
  std::free(readable);
}

std::string readable_function(const char* linker_name) {
  char* const readable = abi::__cxa_demangle(linker_name, nullptr, nullptr, nullptr);
  std::string name = readable == nullptr ? linker_name : readable;
  std::free(readable);
  return name;
}

void write_offset(text_writer& out, const code_place& place, const char* program) noexcept {
  out << "(";
  if (place.path == nullptr) out << "?";
  else out << (*place.path == '\0' ? program : place.path);
  out << " " << reinterpret_cast<const void*>(place.offset) << ")";
}

std::size_t own_calls(std::uintptr_t* pcs, std::size_t most) noexcept {
  ucontext_t here{};
  ::getcontext(&here);
  const frame_registers registers = registers_of_interrupted(&here);
  const auto* sp = reinterpret_cast<const char*>(registers.value[frame_registers::stack_pointer]);
  return unwind(registers, stack_around(sp), pcs, most);
}

bool write_caller(text_writer& out, const char* before, const std::uintptr_t* pcs, std::size_t count) noexcept {
  // Static, as the caller may be a fiber with a small stack.
  static os_mutex lock;
  alignas(symbol_finder) static std::array<std::byte, sizeof(symbol_finder)> memory;
  static std::array<char, 1024> program;
  const std::lock_guard guard{lock};
  const ssize_t size = ::readlink("/proc/self/exe", program.data(), program.size() - 1);
  program[size > 0 ? static_cast<std::size_t>(size) : 0] = '\0';
  auto* const symbols = ::new (memory.data()) symbol_finder;
  bool found = false;
  for (std::size_t i = 0; i < count; ++i) {
    const code_place place = symbols->find(pcs[i]);
    if (place.function == nullptr || is_library_function(place.function)) continue;
    out << before << "in ";
    write_function(out, place, true);
    out << " ";
    write_offset(out, place, program.data());
    found = true;
    break;
  }
  symbols->~symbol_finder();
  return found;
}

void write_place(text_writer& out, const fiber_facts& f) noexcept {
  if ((f.line == 0 || is_of_library(f.file)) && write_caller(out, ", ", f.pcs.data(), f.frames)) return;
  if (f.line != 0) out << ", at " << f.file << ":" << f.line << " in " << f.function;
}

namespace {

/// For a local one: path and beginning of the name.
constexpr std::size_t address_size = sizeof(sockaddr_un::sun_path) + 8;

/// As "127.0.0.1:80", "[::1]:80" or "unix:PATH"; "" for one without a name. Async-signal-safe.
std::string_view address_text(const sockaddr_storage& at, socklen_t size,
                              std::array<char, address_size>& into) noexcept {
  const auto text = [&](const char* before, std::string_view address, const char* after, std::uint16_t port) {
    std::array<char, 5> digits;
    std::size_t d = 0;
    for (std::uint32_t left = ntohs(port); left != 0 || d == 0; left /= 10)
      digits[d++] = static_cast<char>('0' + left % 10);
    std::size_t used = 0;
    const auto add = [&](char c) {
      if (used < into.size()) into[used++] = c;
    };
    for (; *before != '\0'; ++before) add(*before);
    for (const char c : address) add(c);
    for (; *after != '\0'; ++after) add(*after);
    while (port != 0 && d != 0) add(digits[--d]);
    return std::string_view{into.data(), used};
  };
  std::array<char, INET6_ADDRSTRLEN> number;
  if (at.ss_family == AF_INET) {
    const auto& a = reinterpret_cast<const sockaddr_in&>(at);
    if (::inet_ntop(AF_INET, &a.sin_addr, number.data(), number.size()) == nullptr) return {};
    return text("", number.data(), ":", a.sin_port);
  }
  if (at.ss_family == AF_INET6) {
    const auto& a = reinterpret_cast<const sockaddr_in6&>(at);
    if (::inet_ntop(AF_INET6, &a.sin6_addr, number.data(), number.size()) == nullptr) return {};
    return text("[", number.data(), "]:", a.sin6_port);
  }
  if (constexpr auto head = offsetof(sockaddr_un, sun_path); at.ss_family == AF_UNIX && size > head) {
    const auto& a = reinterpret_cast<const sockaddr_un&>(at);
    const bool is_abstract = a.sun_path[0] == '\0';
    const std::string_view path{a.sun_path, size - head};
    return text(is_abstract ? "unix:@" : "unix:",
                path.substr(is_abstract ? 1 : 0, is_abstract ? path.npos : path.find('\0')), "", 0);
  }
  return {};
}

/// Its peer's if it has one, else its own. `is_peer` says which. Async-signal-safe.
std::string_view address_of(int fd, bool& is_peer, std::array<char, address_size>& into) noexcept {
  sockaddr_storage at{};
  auto* const address = reinterpret_cast<sockaddr*>(&at);
  socklen_t size = sizeof at;
  const int saved = errno;
  std::string_view text;
  is_peer = ::getpeername(fd, address, &size) == 0 && !(text = address_text(at, size, into)).empty();
  if (!is_peer) {
    size = sizeof at;
    if (::getsockname(fd, address, &size) == 0) text = address_text(at, size, into);
  }
  errno = saved;
  return text;
}

}  // namespace

void write_descriptor(text_writer& out, int fd, bool writes) noexcept {
  bool is_peer = false;
  std::array<char, address_size> room;
  const std::string_view address = address_of(fd, is_peer, room);
  out << " (descriptor " << fd;
  if (!address.empty()) out << (is_peer ? ", to " : ", at ") << address;
  out << (writes ? ", to be writable)" : ", to be readable)");
}

std::string address_of_descriptor(int fd) {
  bool is_peer = false;
  std::array<char, address_size> room;
  return std::string{address_of(fd, is_peer, room)};
}

}  // namespace ramie::detail
