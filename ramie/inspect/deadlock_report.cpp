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
constexpr int exit_status = 2;
constexpr int depth_most = 64;  // of children of children: the memory is read as it is

/// ` of TITLE` of the fiber or actor that the child belongs to.
void write_root(text_writer& out, const task_facts& child) noexcept {
  task_facts root = child;
  for (int i = 0; i < depth_most && root.strand && root.parent != nullptr; ++i) {
    const void* const parent = root.parent;
    root = {};
    look_at_task(parent, root);
  }
  if (root.strand || !root.known) return;
  out << " of ";
  write_title(out, root);
}
}  // namespace

void report_deadlock(const scheduler& of) noexcept {
  std::vector<fiber_facts> fibers;
  std::size_t left_out = 0;
  for_each_on_stack(of, report_frames_most, [&](const fiber_facts& f) {
    if (f.state != fiber_facts::doing::waits) return;
    try {
      if (fibers.size() == fibers_listed_most) ++left_out;
      else fibers.push_back(f);
    } catch (const std::bad_alloc&) {
      ++left_out;
    }
  });
  {
    text_writer out{STDERR_FILENO, 100'000, 10};
    out << "ramie: deadlock: every fiber of runtime ";
    out.quoted(of.options().name.c_str()) << " waits, and nothing is left that could wake one:\n";
    for (const fiber_facts& f : fibers) {
      out << "  ";
      write_title(out, f.who);
      if (f.who.strand && f.who.name[0] == '\0') write_root(out, f.who);
      out << ": " << f.reason;
      write_place(out, f);
      out << "\n";
    }
    if (left_out != 0) out << "  and " << std::uint64_t{left_out} << " more\n";
  }
  std::fflush(nullptr);
  dump(STDERR_FILENO, {.fibers = fibers_listed_most,
                       .actors = fibers_listed_most,
                       .demangle = true});  // with backtraces, and which fiber holds what
  std::_Exit(exit_status);
}

}  // namespace ramie::detail
