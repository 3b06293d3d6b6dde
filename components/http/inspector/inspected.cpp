// The runtimes of the process. Every runtime is told by watch_runtimes (installed before main): a list under a lock,
// which is held while a runtime is looked at, so that it does not end meanwhile.
#include "inspector/inspected.hpp"

#include <ramie/http/inspector.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <string>

namespace ramie::http {

namespace {

struct listed {
  runtime* which;
  bool is_inspectors;
};

// Never destroyed: a runtime may end after statics are.
std::mutex& lock() {
  static auto* const it = new std::mutex;
  return *it;
}
std::vector<listed>& all() {
  static auto* const it = new std::vector<listed>;
  return *it;
}

thread_local int uninspected_depth = 0;

// ---- RAMIE_INSPECT -------------------------------------------------------------------------------------------------

/// Under a lock of its own, since the inspector's end waits for those who look at a runtime.
struct by_environment {
  std::mutex lock;
  int runtimes = 0;
  std::unique_ptr<inspector> serves;
};
by_environment& environment() {
  static auto* const it = new by_environment;
  return *it;
}

inspector_options options_of(const std::string& text) {
  inspector_options options;
  const std::size_t at = text.rfind('@');
  if (at != std::string::npos) options.token = text.substr(0, at);
  try {
    options.at = net::endpoint::parse(at == std::string::npos ? text : text.substr(at + 1));
  } catch (const invalid_argument&) {
    // Without the token, which is a secret.
    throw invalid_argument{"ramie: RAMIE_INSPECT is " + (at == std::string::npos ? '"' + text + '"' : "invalid") +
                           "; it must be [TOKEN@]ADDRESS:PORT, such as 127.0.0.1:8080"};
  }
  return options;
}

void begin_by_environment() {
  const char* const value = std::getenv("RAMIE_INSPECT");
  if (value == nullptr || *value == '\0') return;
  by_environment& env = environment();
  const std::lock_guard guard{env.lock};
  if (env.runtimes == 0) {
    try {
      env.serves = inspector::of_all(options_of(value));
      std::fprintf(stderr, "ramie: inspector: http://%s\n", env.serves->at().to_string().c_str());
    } catch (const net::io_error& e) {
      // A child process has the variable too, and must not fail for that.
      std::fprintf(stderr, "ramie: RAMIE_INSPECT: %s\n", e.what());
    }
  }
  ++env.runtimes;
}

void end_by_environment() noexcept {
  by_environment& env = environment();
  const std::lock_guard guard{env.lock};
  if (env.runtimes == 0) return;
  --env.runtimes;
  if (env.runtimes == 0) env.serves.reset();
}

// ---- what runtimes tell --------------------------------------------------------------------------------------------

void begins(runtime& r) {
  const bool is_inspectors = uninspected_depth != 0;
  if (!is_inspectors) begin_by_environment();
  const std::lock_guard guard{lock()};
  all().push_back({&r, is_inspectors});
}

void ends(runtime& r) noexcept {
  bool was_inspected = false;
  {
    const std::lock_guard guard{lock()};
    const auto at = std::find_if(all().begin(), all().end(), [&](const listed& l) { return l.which == &r; });
    if (at == all().end()) return;
    was_inspected = !at->is_inspectors;
    all().erase(at);
  }
  if (was_inspected) end_by_environment();
}

constexpr runtime_watch watch{&begins, &ends};

struct installs_watch {
  installs_watch() noexcept { watch_runtimes(&watch); }
} const at_start;

}  // namespace

not_inspected::not_inspected() noexcept { ++uninspected_depth; }
not_inspected::~not_inspected() { --uninspected_depth; }

void for_each_inspected(const runtime* only, const std::function<void(runtime&)>& visit) {
  const std::lock_guard guard{lock()};
  for (const listed& l : all())
    if (only == nullptr ? !l.is_inspectors : l.which == only) visit(*l.which);
}

}  // namespace ramie::http

/// For the linker: a program that links ramie::http has this file, see CMakeLists.txt.
extern "C" const char ramie_http_is_inspected = 1;
