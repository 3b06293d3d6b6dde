#include <ramie/inspect/notices.hpp>

#include <ramie/base/notice.hpp>
#include <ramie/context/frames.hpp>
#include <ramie/inspect/describe.hpp>
#include <ramie/inspect/library_code.hpp>
#include <ramie/sched/scheduler.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

namespace ramie::detail {

namespace {

// Guesses: a few lines, and not more than fits an error's paragraph.
constexpr std::size_t lines_most = 8;
constexpr std::size_t bytes_most = 4096;

constexpr const char* blocking_reason = "blocking call";

std::uintptr_t key_of(const fiber_facts& f) noexcept {
  return reinterpret_cast<std::uintptr_t>(f.file) + (std::uintptr_t{f.line} << 48) +
         reinterpret_cast<std::uintptr_t>(f.reason);
}

const char* remedy_for(const fiber_facts& f) noexcept {
  const std::string_view reason{f.reason};
  if (f.state != fiber_facts::doing::waits)
    return "it does not wait, or goes on waiting after `cancelled`; let it end when this_fiber::stop_requested()";
  if (reason == blocking_reason) return "a call under way cannot be cancelled; give it a time-out of its own";
  if (f.reason == mutex_reason) return "waiting for a mutex is not cancelled; let its holder unlock it";
  return "this wait is not cancelled: it is inside a shield, or in a destructor, or waits for children";
}

}  // namespace

void tell_of_stopping_handle(const char* fiber_name, const void* returns_to) noexcept {
  if (!may_notice(reinterpret_cast<std::uintptr_t>(returns_to))) return;
  std::array<std::uintptr_t, report_frames_most> pcs;
  const std::size_t calls = own_calls(pcs.data(), pcs.size());
  text_writer out{STDERR_FILENO, bytes_most, notice_seconds_most};
  out << "ramie: notice: fiber ";
  if (*fiber_name != '\0') out.quoted(fiber_name) << " ";
  out << "was stopped because its join_handle was destroyed";
  write_caller(out, " ", pcs.data(), calls);
  out << ": join or detach it; or call request_stop() first, if this is meant\n";
}

void tell_of_those_left(scheduler& of) noexcept {
  if (!notices_are_on() || of.live() == 0) return;
  struct waiters {
    fiber_facts first;
    std::uint64_t count;
  };
  std::array<waiters, lines_most> places;
  std::size_t n = 0;
  for_each_on_stack(of, 0, [&](const fiber_facts& f) {
    if (f.state != fiber_facts::doing::waits || f.who.kind != task_kind::fiber || f.who.strand || !f.who.detached ||
        f.who.stopping || f.line == 0 || is_of_library(f.file) || std::string_view{f.reason} == blocking_reason)
      return;
    std::size_t i = 0;
    while (i < n && key_of(places[i].first) != key_of(f)) ++i;
    if (i < n) ++places[i].count;
    else if (n < places.size()) places[n++] = {f, 1};
  });
  for (std::size_t i = 0; i < n; ++i) {
    if (!may_notice(key_of(places[i].first))) continue;
    text_writer out{STDERR_FILENO, bytes_most, notice_seconds_most};
    out << "ramie: notice: runtime ";
    out.quoted(of.options().name.c_str())
        << " ends while " << places[i].count
        << (places[i].count == 1 ? " detached fiber waits" : " detached fibers wait") << " for ";
    out << places[i].first.reason;
    write_place(out, places[i].first);
    out << ": cancelled now; join what has to be done, close the channel, or call runtime::shutdown() if this is "
           "meant\n";
  }
}

void tell_of_slow_end(scheduler& of) noexcept {
  if (!notices_are_on()) return;
  std::size_t lines = 0;
  for_each_on_stack(of, 0, [&](const fiber_facts& f) {
    const std::uintptr_t place = f.line != 0 ? key_of(f) + 1 : reinterpret_cast<std::uintptr_t>(f.who.type) + 1;
    if (lines == lines_most || !may_notice(place)) return;
    ++lines;
    text_writer out{STDERR_FILENO, bytes_most, notice_seconds_most};
    out << "ramie: notice: runtime ";
    out.quoted(of.options().name.c_str()) << " has been ending for a second, and waits for ";
    write_title(out, f.who);
    if (f.state == fiber_facts::doing::waits) {
      out << ", which waits for " << f.reason;
      write_place(out, f);
    } else {
      out << ", which runs";
    }
    out << ": " << remedy_for(f) << "\n";
  });
}

void describe_occupant(const stack& s, char* buffer, std::size_t size) noexcept {
  *buffer = '\0';
  task_facts found;
  look_at_task(s.occupant.load(std::memory_order_acquire), found);
  for (int i = 0; i < 16 && found.strand && found.name[0] == '\0'; ++i) {  // a guess: forks within forks
    const void* const parent = found.parent;
    look_at_task(parent, found);
  }
  if (!found.known || (found.kind == task_kind::fiber && found.name[0] == '\0')) return;
  std::size_t used = 0;
  const auto append = [&](std::string_view text) {
    const std::size_t n = std::min(text.size(), size - 1 - used);
    std::memcpy(buffer + used, text.data(), n);
    buffer[used += n] = '\0';
  };
  append(found.kind == task_kind::resident ? found.resident.kind : "fiber");
  if (!found.resident.type.empty()) append(" "), append(found.resident.type);
  if (found.name[0] != '\0') append(" \""), append(found.name.data()), append("\"");
}

void trace_overflow(const stack& s, const void* machine_context) noexcept {
  // Static, for want of room: one overflow ends the process, and a second one has nothing to add.
  static std::atomic_flag busy = ATOMIC_FLAG_INIT;
  alignas(symbol_finder) static std::array<std::byte, sizeof(symbol_finder)> memory;
  static std::array<char, 1024> program;
  static std::array<std::uintptr_t, report_frames_most> pcs;
  if (busy.test_and_set(std::memory_order_acquire)) return;
  const ssize_t path_size = ::readlink("/proc/self/exe", program.data(), program.size() - 1);
  program[path_size > 0 ? static_cast<std::size_t>(path_size) : 0] = '\0';
  auto* const symbols = ::new (memory.data()) symbol_finder;
  const std::size_t n =
      unwind(registers_of_interrupted(machine_context), {lowest_usable(s), s.top}, pcs.data(), pcs.size());
  {
    text_writer out{STDERR_FILENO, bytes_most * 4, notice_seconds_most};
    for (std::size_t i = 0; i < n; ++i) {
      const code_place place = symbols->find(pcs[i]);
      out << "    #" << std::uint64_t{i} << (i < 10 ? "  " : " ");
      if (place.function != nullptr) write_function(out, place, false);
      out << " ";
      write_offset(out, place, program.data());
      out << "\n";
    }
    if (n == pcs.size()) out << "    ...\n";
  }
  symbols->~symbol_finder();
  busy.clear(std::memory_order_release);
}

}  // namespace ramie::detail
