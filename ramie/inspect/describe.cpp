#include <ramie/inspect/describe.hpp>

#include <ramie/inspect/frames.hpp>
#include <ramie/inspect/library_code.hpp>
#include <ramie/stack/pool.hpp>
#include <ramie/task/current.hpp>

#include <cxxabi.h>
#include <pthread.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <mutex>

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

}  // namespace ramie::detail
