// Runs seeds in child processes, replays failures, and reports to gtest.
#include "engine.hpp"
#include "mutants.hpp"
#include "simulator.hpp"

#include <dlfcn.h>
#include <execinfo.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <sstream>

namespace ramie::interleave {

namespace {

/// What a child tells its parent.
struct report {
  std::uint64_t seed;  // of the run under way
  std::uint64_t runs;
  std::uint64_t steps;
  std::uint64_t hash;
  bool failed;
  char what[1024];
  char trace[1 << 18];
};

report* shared_report() {
  static report* const shared = [] {
    void* p = ::mmap(nullptr, sizeof(report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) std::abort();
    return static_cast<report*>(p);
  }();
  return shared;
}

template <std::size_t N>
void copy(char (&to)[N], const std::string& text) {
  const std::size_t n = std::min(text.size(), N - 1);
  std::memcpy(to, text.data(), n);
  to[n] = '\0';
}

constexpr time_t hang_seconds = 300;

std::map<const void*, std::string> places(const std::vector<event>& events, std::size_t from);

/// A run that crashes reports where. None of this is async-signal-safe, but the process ends anyway.
void tell_where(int signal) {
  ::signal(signal, SIG_DFL);
  set_host_locals();  // popen starts a process, which a simulated thread cannot do
  std::array<void*, 40> frames{};
  const int n = ::backtrace(frames.data(), static_cast<int>(frames.size()));
  std::vector<event> calls;
  for (int i = 0; i < n; ++i) calls.push_back({0, "", nullptr, frames[static_cast<std::size_t>(i)], 0, 0});
  const auto where = places(calls, 0);
  std::string text;
  for (const event& e : calls)
    if (const auto it = where.find(e.code); it != where.end()) text += "  called from " + it->second + "\n";
  copy(shared_report()->trace, text);
  ::raise(signal);
}

/// The main function of a child: runs the seeds from `first` on, and traces `traced`.
void explore_here(report& r, const exploration& how, const std::function<void()>& body, std::uint64_t first,
                  std::uint64_t count, std::uint64_t traced) {
  // Of processor time, so that it does not matter how busy the machine is. What hangs asleep is for ctest's limit.
  const itimerval limit{.it_interval = {}, .it_value = {.tv_sec = hang_seconds, .tv_usec = 0}};
  ::setitimer(ITIMER_PROF, &limit, nullptr);
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGILL}) ::signal(signal, &tell_where);
  read_mutants();
  auto e = std::make_unique<engine>();
  for (std::uint64_t i = how.warm_up && !how.each_alone ? 0 : 1; i <= count; ++i) {
    const std::uint64_t seed = i == 0 ? 0 : first + i - 1;
    if (i != 0 && count != 1 && only_weak_runs() && !is_weak(seed)) continue;
    r.seed = seed;
    if (seed != 0 && seed == traced) e->keep_trace();
    const bool failed = e->run(seed, how, body);
    if (seed != 0) ++r.runs;
    r.steps += e->steps();
    r.hash = e->hash();
    if (failed) {
      r.failed = true;
      std::string what = e->failure();
      for (const char* between = ": at "; const void* code : e->blamed()) {
        if (code == nullptr) continue;
        const auto where = places({{0, "", nullptr, code, 0, 0}}, 0);
        what += between + (where.empty() ? std::string{"?"} : where.begin()->second);
        between = " and at ";
      }
      copy(r.what, what);
      if (seed == traced) copy(r.trace, e->trace());
      return;
    }
  }
}

report run_child(const exploration& how, const std::function<void()>& body, std::uint64_t first, std::uint64_t count,
                 std::uint64_t traced) {
  report& r = *shared_report();
  std::memset(static_cast<void*>(&r), 0, sizeof r);
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    explore_here(r, how, body, first, count, traced);
    tell_sites();
    ::_exit(0);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!r.failed && WIFSIGNALED(status)) {
    r.failed = true;
    copy(r.what, WTERMSIG(status) == SIGPROF ? std::string{"hangs outside of the simulation"}
                                             : "ended by signal " + std::to_string(WTERMSIG(status)));
  }
  return r;
}

/// One for each seed.
report run_children(const exploration& how, const std::function<void()>& body, std::uint64_t first, std::uint64_t count,
                    std::uint64_t traced) {
  report all{};
  std::uint64_t runs = 0, steps = 0;
  for (std::uint64_t seed = first; seed < first + count && !all.failed; ++seed) {
    if (count != 1 && only_weak_runs() && !is_weak(seed)) continue;
    all = run_child(how, body, seed, 1, traced);
    all.runs = runs += all.runs;
    all.steps = steps += all.steps;
  }
  return all;
}

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// Where in the source each return address is, by addr2line: "file:line" of the innermost place outside of the shim.
std::map<const void*, std::string> places(const std::vector<event>& events, std::size_t from) {
  std::map<const void*, std::string> found;
  Dl_info self{};
  ::dladdr(reinterpret_cast<const void*>(&shared_report), &self);
  std::string command = "addr2line -a -i -e /proc/" + std::to_string(::getpid()) + "/exe";
  std::map<std::uint64_t, const void*> by_offset;
  for (std::size_t i = from; i < events.size(); ++i) {
    if (events[i].code == nullptr) continue;
    const auto offset = static_cast<std::uint64_t>(static_cast<const char*>(events[i].code) -
                                                   static_cast<const char*>(self.dli_fbase)) -
                        1;
    if (!by_offset.emplace(offset, events[i].code).second) continue;
    char text[32];
    std::snprintf(text, sizeof text, " 0x%llx", static_cast<unsigned long long>(offset));
    command += text;
  }
  FILE* pipe = ::popen((command + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return found;
  char line[1024];
  const void* code = nullptr;
  while (std::fgets(line, sizeof line, pipe) != nullptr) {
    std::string text{line, std::strcspn(line, "\n")};
    if (text.starts_with("0x")) {
      const auto it = by_offset.find(std::strtoull(text.c_str(), nullptr, 16));
      code = it == by_offset.end() ? nullptr : it->second;
    } else if (code != nullptr && text.find("interleave.hpp") == std::string::npos &&
               text.find("base/word.hpp") == std::string::npos && text.find("??") == std::string::npos) {
      const std::size_t folder = text.find("/ramie/");
      const std::size_t tests = text.find("/tests/interleave/");
      const std::size_t cut = tests != std::string::npos    ? tests + 1
                              : folder != std::string::npos ? text.rfind("/ramie/") + 1
                                                            : 0;
      found[code] = text.substr(cut);
      if (cut != 0) code = nullptr;  // else the standard library, and who called it follows
    }
  }
  ::pclose(pipe);
  return found;
}

}  // namespace

std::string engine::trace() const {
  constexpr std::size_t shown = 400;
  // The last events, or, for a run that spun for long, those before an earlier one.
  const std::size_t last = std::min<std::size_t>(events_.size(), number_from("RAMIE_TRACE_UNTIL", events_.size()));
  const std::size_t from = last > shown ? last - shown : 0;
  const auto where = places(events_, from);
  std::map<const void*, std::size_t> objects;  // named in the order of their first use
  for (const event& e : events_)
    if (e.at != nullptr) objects.emplace(e.at, objects.size());
  std::ostringstream out;
  for (std::size_t i = from; i < last; ++i) {
    const event& e = events_[i];
    char line[160];
    std::snprintf(line, sizeof line, "%7llu  %*sthread %u: %s", static_cast<unsigned long long>(e.step),
                  static_cast<int>(2 * e.thread), "", e.thread, e.what);
    out << line;
    if (e.at != nullptr) {
      std::snprintf(line, sizeof line, "  #%zu  0x%llx", objects[e.at], static_cast<unsigned long long>(e.value));
      out << line;
    }
    if (const auto it = where.find(e.code); it != where.end()) out << "  " << it->second;
    out << '\n';
  }
  return out.str();
}

void engine::note(const char* what, const void* at, std::uint64_t value, const void* code) noexcept {
  hash_ = (hash_ ^ (static_cast<unsigned char>(what[0]) + 256u * current_->number)) * 0x100000001b3u;
  if (tracing_) [[unlikely]]
    events_.push_back({steps_, what, at, code, value, current_->number});
}

finding explore(const exploration& how, const std::function<void()>& body) {
  const auto begun = std::chrono::steady_clock::now();
  const std::uint64_t only = number_from("RAMIE_SEED", 0);
  const std::uint64_t first = only != 0 ? only : how.first_seed;
  std::uint64_t count = only != 0 || how.seeds == 1 ? 1 : how.seeds * number_from("RAMIE_SEEDS", 1);
  if (std::getenv("RAMIE_SITES") != nullptr) count = (count * 3 + 19) / 20;  // enough to come by all places
  finding f;
  const report r =
      how.each_alone ? run_children(how, body, first, count, only) : run_child(how, body, first, count, only);
  f.failed = r.failed;
  f.what = r.what;
  f.seed = r.seed;
  f.runs = r.runs;
  f.steps = r.steps;
  f.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  if (f.failed && f.seed != 0) {
    report again = run_child(how, body, f.seed, 1, f.seed);
    if (!again.failed || again.hash != r.hash)
      again = run_child(how, body, first, count, f.seed);  // all before it, too
    f.replayed = again.failed && again.seed == r.seed && again.hash == r.hash;
    f.trace = again.trace;
  } else if (f.failed) {
    f.replayed = true;  // the warm-up: nothing in it is random
  }
  return f;
}

namespace {
/// The register of thread-local variables must be ours to change (Linux 5.9 on x86-64; always on aarch64).
bool can_simulate() {
#if defined(__x86_64__)
  constexpr unsigned long fsgsbase = 2;
  return (::getauxval(AT_HWCAP2) & fsgsbase) != 0;
#else
  return true;
#endif
}
}  // namespace

void expect_sound(const char* name, const exploration& how, const std::function<void()>& body) {
  if (!can_simulate()) GTEST_SKIP() << "this kernel or processor does not allow it";
  exploration fresh = how;
  fresh.first_seed = number_from("RAMIE_FIRST_SEED", how.first_seed);
  const finding f = explore(fresh, body);
  std::printf("%s: %llu schedules, %.1f million steps, %.2f s\n", name, static_cast<unsigned long long>(f.runs),
              static_cast<double>(f.steps) / 1e6, f.seconds);
  EXPECT_FALSE(f.failed) << name << ", seed " << f.seed << ": " << f.what << "\n"
                         << f.trace << "replay: RAMIE_SEED=" << f.seed;
}

namespace {
void expect_found_by(const char* wanted, plant bug, const char* name, const exploration& how,
                     const std::function<void()>& body) {
  if (!can_simulate()) GTEST_SKIP() << "this kernel or processor does not allow it";
  planted = bug;
  const finding f = explore(with_margin(how), body);
  planted = plant::none;
  std::printf("%s: found by seed %llu after %llu schedules, %.2f s: %s\n", name,
              static_cast<unsigned long long>(f.seed), static_cast<unsigned long long>(f.runs), f.seconds,
              f.what.c_str());
  EXPECT_TRUE(f.failed) << name << ": the planted bug was not found by " << f.runs << " schedules";
  EXPECT_TRUE(f.replayed) << name << ": seed " << f.seed << " does not replay";
  EXPECT_NE(f.what.find(wanted), std::string::npos) << name << ": found otherwise";
  if (std::getenv("RAMIE_SEED") != nullptr) std::fputs(f.trace.c_str(), stdout);
}
}  // namespace

void expect_found(plant bug, const char* name, const exploration& how, const std::function<void()>& body) {
  expect_found_by("", bug, name, how, body);
}

void expect_race_found(plant bug, const char* name, const exploration& how, const std::function<void()>& body) {
  expect_found_by("race on plain data", bug, name, how, body);
}

}  // namespace ramie::interleave
