#include <ramie/inspect/deadlock_report.hpp>

#include <ramie/inspect/dump.hpp>
#include <ramie/sched/scheduler.hpp>
#include <ramie/task/task.hpp>
#include <ramie/task/wait.hpp>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace ramie::detail {

namespace {

constexpr std::size_t fibers_listed_most = 100;
constexpr int exit_status = 2;

struct waiting_fiber {
  std::string name;
  bool child;  // of a fiber of that name, or with a name of its own
  const void* id;
  wait_site site;
};

struct collection {
  const scheduler* of;
  std::vector<waiting_fiber> fibers;
  std::size_t left_out = 0;
};

void print(const waiting_fiber& f) {
  const char* const kind = f.child ? "child" : "fiber";
  if (f.name.empty()) std::fprintf(stderr, "  %s %p: %s", kind, f.id, f.site.reason);
  else std::fprintf(stderr, "  %s \"%s\" (%p): %s", kind, f.name.c_str(), f.id, f.site.reason);
  if (f.site.where.line() != 0)
    std::fprintf(stderr, ", at %s:%u in %s", f.site.where.file_name(), static_cast<unsigned>(f.site.where.line()),
                 f.site.where.function_name());
  std::fputc('\n', stderr);
}

}  // namespace

void report_deadlock(const scheduler& of) noexcept {
  collection all{&of, {}, 0};
  for_each_waiting(
      [](void* context, const task& t, const wait_site& site) {
        auto& into = *static_cast<collection*>(context);
        const worker* home = home_of(t);
        if (home == nullptr || home->owner != into.of) return;
        if (into.fibers.size() == fibers_listed_most) ++into.left_out;
        else
          into.fibers.push_back(
              {name_of(&t), (t.flags.load(std::memory_order_relaxed) & task::strand_flag) != 0, &t, site});
      },
      &all);
  std::fprintf(stderr,
               "ramie: deadlock: every fiber of runtime \"%s\" waits, and nothing is left that could wake one:\n",
               of.options().name.c_str());
  for (const waiting_fiber& f : all.fibers) print(f);
  if (all.left_out != 0) std::fprintf(stderr, "  and %zu more\n", all.left_out);
  std::fflush(nullptr);
  dump(STDERR_FILENO, {.fibers = fibers_listed_most,
                       .actors = fibers_listed_most,
                       .demangle = true});  // with backtraces, and which fiber holds what
  std::_Exit(exit_status);
}

}  // namespace ramie::detail
