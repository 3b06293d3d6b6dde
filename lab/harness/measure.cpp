#include <lab/harness/measure.hpp>

#include <lab/harness/error.hpp>
#include <lab/harness/memory.hpp>
#include <lab/harness/runtime_facts.hpp>
#include <lab/harness/session.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <map>
#include <string>
#include <thread>

namespace ramie::lab {
namespace {

const style& style_of(const workload& w, const std::string& name) {
  const style* found = w.find_style(name);
  if (found == nullptr) throw usage_error{w.name + " has no style " + name};
  return *found;
}

class measurement {
 public:
  measurement(const workload& w, const request& r)
      : request_{r}, style_{style_of(w, r.style)}, session_{r.parameters, options_for(r, style_)} {
    if (r.yardstick && !w.yardstick.empty()) yardstick_ = &style_of(w, w.yardstick);
    outcome_.what = r;
    outcome_.unit = w.unit;
    outcome_.ok = true;
  }

  record run() {
    outcome_.base_rss_bytes = read_memory_use().resident_bytes;
    try {
      run_all();
    } catch (const std::exception& e) {
      outcome_.ok = false;
      outcome_.error = e.what();
    } catch (...) {
      outcome_.ok = false;
      outcome_.error = "an exception that is no std::exception";
    }
    outcome_.workers = session_.workers();
    // The environment may have overridden the options.
    if (session_.has_runtime()) {
      if (session_.runtime().options().policy == nullptr)
        outcome_.what.placement = name_of(session_.runtime().options().placement);
      outcome_.what.pin_threads = session_.runtime().options().pin_threads;
    }
    outcome_.peak_rss_bytes = read_memory_use().peak_resident_bytes;
    return std::move(outcome_);
  }

 private:
  static ramie::runtime_options options_for(const request& r, const style& s) {
    ramie::runtime_options options;
    options.workers = r.workers;
    if (!set_placement(options, r.placement))
      throw usage_error{"there is no placement " + r.placement + "; there are " + placement_names()};
    const auto stacks = find_stacks(r.stacks);
    if (!stacks) throw usage_error{"there are no stacks " + r.stacks + "; there are " + stacks_names()};
    options.guard = *stacks;
    options.pin_threads = r.pin_threads;
    if (s.adjust != nullptr) s.adjust(options);
    return options;
  }

  void run_all() {
    if (style_.on_runtime) session_.runtime();
    for (int i = 0; i < request_.warmup; ++i) {
      const double plain_seconds = has_neighbour() ? run_once(*yardstick_).seconds : 0;
      const double seconds = run_once(style_).seconds;
      yardstick_repeats_ = repeats_for(seconds, plain_seconds);
    }
    const auto counted_before = counters();
    for (int i = 0; i < request_.runs; ++i) {
      if (has_neighbour()) {
        const run_result plain = run_yardstick();
        outcome_.plain_seconds.push_back(plain.seconds);
        outcome_.plain_units = plain.units;
        outcome_.plain_busy_cores.push_back(plain.seconds > 0 ? yardstick_cpu_seconds_ / plain.seconds : 0);
      }
      run_measured();
    }
    if (yardstick_ == &style_) {
      outcome_.plain_seconds = outcome_.seconds;
      outcome_.plain_units = outcome_.units;
      outcome_.plain_busy_cores = outcome_.busy_cores;
    }
    for (const auto& [name, value] : counters()) {
      const auto before = counted_before.find(name);
      outcome_.counters[name] = before == counted_before.end() ? value : value - before->second;
    }
  }

  /// Until it has taken as long as was asked for: what a run finds is the mean of its repetitions.
  void run_measured() {
    const double least_seconds = request_.least_ms * 1e-3;
    double seconds = 0;
    double cpu_seconds = 0;
    std::map<std::string, double> figures;
    std::int64_t repeats = 0;
    constexpr std::int64_t repeats_max = 1'000'000;  // in case that one takes no time at all
    do {
      if (repeats > 0 && request_.pause_ms > 0)
        std::this_thread::sleep_for(std::chrono::milliseconds{request_.pause_ms});
      const run_result once = run_once(style_);
      outcome_.units = once.units;
      seconds += once.seconds;
      cpu_seconds += once.seconds * session_.busy_cores().value_or(0);
      for (const auto& [name, value] : once.figures) figures[name] += value;
      ++repeats;
    } while (seconds < least_seconds && repeats < repeats_max && outcome_.ok);
    const auto each = static_cast<double>(repeats);
    outcome_.seconds.push_back(seconds / each);
    if (session_.busy_cores()) outcome_.busy_cores.push_back(cpu_seconds / seconds);
    for (const auto& [name, sum] : figures) outcome_.figures[name].push_back(sum / each);
    if (request_.least_ms > 0) outcome_.repeats.push_back(repeats);
  }

  /// A run that fits into one time slice is never interrupted; a long one shares the core with other threads. So the
  /// yardstick is repeated until it takes as long as the style, or as long as many slices.
  static std::int64_t repeats_for(double seconds, double plain_seconds) {
    constexpr double many_slices_seconds = 0.05;  // a slice of Linux takes some 3 ms
    constexpr double repeats_max = 1e6;
    if (plain_seconds <= 0) return 1;
    const double wanted = std::min(seconds, many_slices_seconds) / plain_seconds;
    return static_cast<std::int64_t>(std::clamp(std::ceil(wanted), 1.0, repeats_max));
  }

  run_result run_yardstick() {
    run_result all{.seconds = 0, .units = 0, .ok = true};
    yardstick_cpu_seconds_ = 0;
    for (std::int64_t i = 0; i < yardstick_repeats_; ++i) {
      const run_result once = run_once(*yardstick_);
      all.seconds += once.seconds;
      all.units += once.units;
      yardstick_cpu_seconds_ += once.seconds * session_.busy_cores().value_or(1);
    }
    return all;
  }

  [[nodiscard]] bool has_neighbour() const { return yardstick_ != nullptr && yardstick_ != &style_; }

  run_result run_once(const style& s) {
    session_.begin(s);
    run_result result = s.run(session_);
    if (!result.ok) {
      outcome_.ok = false;
      if (outcome_.error.empty()) outcome_.error = "wrong result from " + s.name;
    }
    return result;
  }

  std::map<std::string, std::int64_t> counters() {
    if (!request_.counters || !session_.has_runtime()) return {};
    return read_counters(session_.runtime());
  }

  const request& request_;
  const style& style_;
  const style* yardstick_ = nullptr;
  std::int64_t yardstick_repeats_ = 1;
  double yardstick_cpu_seconds_ = 0;  // of the last run_yardstick()
  session session_;
  record outcome_;
};

}  // namespace

const style* workload::find_style(std::string_view style_name) const {
  for (const style& s : styles) {
    if (s.name == style_name) return &s;
  }
  return nullptr;
}

record measure_here(const workload& w, const request& r) { return measurement{w, r}.run(); }

}  // namespace ramie::lab
