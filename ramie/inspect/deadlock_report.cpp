#include <ramie/inspect/deadlock_report.hpp>

#include <ramie/inspect/describe.hpp>
#include <ramie/inspect/dump.hpp>
#include <ramie/sched/scheduler.hpp>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <new>
#include <vector>

namespace ramie::detail {

namespace {
constexpr std::size_t fibers_listed_most = 100;
constexpr std::size_t frames_most = 24;
constexpr int exit_status = 2;
}  // namespace

void report_deadlock(const scheduler& of) noexcept {
  std::vector<fiber_facts> fibers;
  std::size_t left_out = 0;
  for_each_on_stack(of, frames_most, [&](const fiber_facts& f) {
    if (f.state != fiber_facts::doing::waits) return;
    try {
      if (fibers.size() == fibers_listed_most) ++left_out;
      else fibers.push_back(f);
    } catch (const std::bad_alloc&) {
      ++left_out;
    }
  });
  std::fflush(nullptr);
  {
    text_writer out{STDERR_FILENO, 100'000, 10};
    out << "ramie: deadlock: every fiber of runtime ";
    out.quoted(of.options().name.c_str()) << " waits, and nothing is left that could wake one:\n";
    for (const fiber_facts& f : fibers) {
      out << "  ";
      write_title(out, f.who);
      out << ": " << f.reason;
      write_place(out, f);
      out << "\n";
    }
    if (left_out != 0) out << "  and " << std::uint64_t{left_out} << " more\n";
  }
  dump(STDERR_FILENO, {.fibers = fibers_listed_most,
                       .actors = fibers_listed_most,
                       .demangle = true});  // with backtraces, and which fiber holds what
  std::_Exit(exit_status);
}

}  // namespace ramie::detail
