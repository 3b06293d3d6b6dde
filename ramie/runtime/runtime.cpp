#include <ramie/runtime/runtime.hpp>

#include <ramie/base/error.hpp>
#include <ramie/inspect/circles.hpp>
#include <ramie/inspect/deadlock_report.hpp>
#include <ramie/inspect/dump.hpp>
#include <ramie/inspect/dump_internal.hpp>
#include <ramie/inspect/notices.hpp>
#include <ramie/inspect/stall_report.hpp>
#include <ramie/inspect/trace.hpp>
#include <ramie/sched/scheduler.hpp>
#include <ramie/stack/overflow.hpp>

#include <signal.h>
#include <string.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <system_error>

namespace ramie {

namespace {

std::atomic<const runtime_watch*> watch_of_runtimes{nullptr};

/// The file from RAMIE_TRACE; null if not set.
const char* trace_file() noexcept {
  const char* path = std::getenv("RAMIE_TRACE");
  return path == nullptr || *path == '\0' ? nullptr : path;
}

/// By RAMIE_DUMP_ON: a signal's name, with SIG or without, or its number. Once in a process.
void obey_dump_on() {
  static std::once_flag once;
  std::call_once(once, [] {
    const char* const value = std::getenv("RAMIE_DUMP_ON");
    if (value == nullptr || *value == '\0') return;
    std::string_view name{value};
    if (name.starts_with("SIG")) name.remove_prefix(3);
    int number = 0;
    for (int n = 1; n < SIGRTMIN && number == 0; ++n)
      if (const char* known = ::sigabbrev_np(n); known != nullptr && name == known) number = n;
    if (number == 0) {
      const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), number);
      if (failed != std::errc{} || end != name.data() + name.size()) number = 0;
    }
    if (number <= 0 || number > SIGRTMAX)
      throw ramie::invalid_argument{"ramie: RAMIE_DUMP_ON is \"" + std::string{value} +
                                    "\"; it must be a signal's name or number, such as SIGUSR1 or 10"};
    dump_on_signal(number);
  });
}

void write_trace(const runtime& rt, const char* path) noexcept try {
  static std::atomic<int> written{0};
  const int n = written.fetch_add(1, std::memory_order_relaxed) + 1;
  const std::string name = n == 1 ? path : std::string{path} + "." + std::to_string(n);
  const std::string text = rt.trace();
  std::FILE* file = std::fopen(name.c_str(), "we");
  if (file == nullptr || std::fwrite(text.data(), 1, text.size(), file) != text.size())
    std::fprintf(stderr, "ramie: RAMIE_TRACE: cannot write %s: %s\n", name.c_str(),
                 std::generic_category().message(errno).c_str());
  if (file != nullptr) std::fclose(file);
} catch (const std::bad_alloc&) {
  std::fprintf(stderr, "ramie: RAMIE_TRACE: no memory to write the trace\n");
}

}  // namespace

runtime::runtime(const runtime_options& options) {
  static constexpr detail::reporters all_reporters{&detail::report_deadlock, &detail::tell_of_slow_end,
                                                   &detail::tell_of_circles, &detail::report_stall,
                                                   &detail::write_requested_dump};
  detail::set_reporters(all_reporters);
  detail::set_occupant_namer(&detail::describe_occupant);
  detail::set_overflow_tracer(&detail::trace_overflow);
  scheduler_ = std::make_unique<detail::scheduler>(options);
  obey_dump_on();
  if (trace_file() != nullptr) record({.every_fiber = true});
  if (const runtime_watch* by = watch_of_runtimes.load(std::memory_order_acquire); by != nullptr) by->begins(*this);
}
runtime::~runtime() {
  begin_shutdown();
  if (!scheduler_->stopping()) detail::tell_of_those_left(*scheduler_);
}

void watch_runtimes(const runtime_watch* by) noexcept { watch_of_runtimes.store(by, std::memory_order_release); }

void runtime::begin_shutdown() noexcept {
  if (const runtime_watch* by = watch_of_runtimes.load(std::memory_order_acquire); by != nullptr) by->ends(*this);
  if (const char* path = trace_file(); path != nullptr && !scheduler_->stopping()) {
    stop_recording();
    write_trace(*this, path);
  }
}

void runtime::submit(detail::task* t) { scheduler_->submit(t); }
void runtime::shutdown() {
  begin_shutdown();
  scheduler_->stop();
}
int runtime::workers() const noexcept { return static_cast<int>(scheduler_->regular_workers()); }

namespace {

runtime_counters counters_of(const detail::worker& w) noexcept {
  return {.dispatches = w.dispatches.value(),
          .spawned = w.started.value(),
          .ended = w.finished.value(),
          .steals_tried = w.steals_tried.value(),
          .steals = w.steals_done.value(),
          .wakes = w.wakes.value(),
          .wakes_elsewhere = w.wakes_elsewhere.value(),
          .migrations = w.migrations.value(),
          .sleeps = w.parks.value(),
          .injected = w.injected.value(),
          .time_slices = w.time_slices.value(),
          .io_waits = w.io_waits.value(),
          .bytes_read = w.bytes_read.value(),
          .bytes_written = w.bytes_written.value(),
          .threads = 1};
}

}  // namespace

runtime_counters runtime::counters() const noexcept {
  using all = runtime_counters;
  runtime_counters sum{};
  detail::scheduler& s = *scheduler_;
  sum.spawned = s.started_outside();
  const std::size_t n = s.worker_count();
  for (std::size_t i = 0; i < n; ++i) {
    const runtime_counters one = counters_of(s.at(i));
    for (const auto part : {&all::dispatches, &all::spawned, &all::ended, &all::steals_tried, &all::steals, &all::wakes,
                            &all::wakes_elsewhere, &all::migrations, &all::sleeps, &all::injected, &all::time_slices,
                            &all::io_waits, &all::bytes_read, &all::bytes_written, &all::threads})
      sum.*part += one.*part;
  }
  return sum;
}

runtime_statistics runtime::statistics() const {
  detail::scheduler& s = *scheduler_;
  runtime_statistics all;
  all.name = s.options().name;
  all.counted = counters();
  all.live = s.live();
  all.injected = s.all().injected.size();
  const detail::blocking_pool::load calls = s.blocking().about();
  all.blocking_under_way = calls.under_way;
  all.blocking_waiting = calls.waiting;
  const detail::event_counts events = s.events.counts();
  all.io_polls = events.polls;
  all.io_events = events.events;
  all.io_descriptors = events.descriptors;
  const std::size_t n = s.worker_count();
  for (std::size_t i = 0; i < n; ++i) {
    const detail::worker& w = s.at(i);
    if (!w.on_duty.load(std::memory_order_acquire)) continue;
    worker_statistics& one = all.workers.emplace_back();
    one.number = static_cast<int>(i);
    one.counted = counters_of(w);
    one.ready = w.ready.size();
    one.fresh = w.spawned.size();
    one.sleeps = w.idle.load(std::memory_order_relaxed);
    one.spare = w.spare;
  }
  s.recording().for_each(
      [](void* opaque, std::size_t, const detail::observer& seen) {
        auto& to = *static_cast<runtime_statistics*>(opaque);
        const auto add = [](time_histogram& h, const detail::time_counts& c) {
          for (std::size_t i = 0; i < h.counts.size(); ++i) h.counts[i] += c.counts[i].load(std::memory_order_relaxed);
          h.sum_ns += c.sum.load(std::memory_order_relaxed);
        };
        add(to.run, seen.run);
        add(to.wait, seen.wait);
      },
      &all);
  return all;
}

bool runtime::record(const recording_options& options) {
  return scheduler_->recording().start({.events = options.trace ? std::max<std::size_t>(options.events, 64) : 0,
                                        .every_task = options.every_fiber,
                                        .histograms = options.histograms});
}
void runtime::stop_recording() noexcept { scheduler_->recording().stop(); }
std::string runtime::trace() const { return detail::trace_as_json(*scheduler_); }

const runtime_options& runtime::options() const noexcept { return scheduler_->options(); }

}  // namespace ramie
