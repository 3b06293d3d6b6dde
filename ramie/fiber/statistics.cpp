#include <ramie/fiber/statistics.hpp>

#include <cstdio>

namespace ramie {

std::uint64_t time_histogram::count() const noexcept {
  std::uint64_t all = 0;
  for (const std::uint64_t n : counts) all += n;
  return all;
}

std::uint64_t time_histogram::quantile_ns(double q) const noexcept {
  const auto wanted = q * static_cast<double>(count());
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < buckets; ++i) {
    seen += counts[i];
    if (counts[i] != 0 && static_cast<double>(seen) >= wanted) return bound_ns(i);
  }
  return 0;
}

namespace {

/// One metric after the other, as the format wants them: all lines of a name together.
class exposition {
 public:
  explicit exposition(const std::string& runtime) {
    labels_ = "runtime=\"";
    for (const char c : runtime) {
      if (c == '"' || c == '\\') labels_ += '\\';
      if (c == '\n') labels_ += "\\n";
      else labels_ += c;
    }
    labels_ += '"';
  }
  void metric(const char* name, const char* type, const char* help) {
    name_ = name;
    text_ += std::string{"# HELP "} + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
  }
  template <class Number>
  void value(Number number, const std::string& labels = "", const char* suffix = "") {
    text_ += name_ + suffix + "{" + labels_ + labels + "} " + shown(number) + "\n";
  }
  std::string text() { return std::move(text_); }

 private:
  static std::string shown(double number) {
    char text[40];
    std::snprintf(text, sizeof text, "%.9g", number);
    return text;
  }
  static std::string shown(std::uint64_t number) { return std::to_string(number); }

  std::string labels_;
  std::string name_;
  std::string text_;
};

void add(exposition& out, const char* name, const char* help, const time_histogram& h) {
  out.metric(name, "histogram", help);
  std::uint64_t below = 0;
  // The same bounds each time, as Prometheus needs them: 16 ns to 69 s.
  constexpr std::size_t first = 3, last = 35;
  for (std::size_t i = 0; i < time_histogram::buckets; ++i) {
    below += h.counts[i];
    if (i < first || i > last) continue;
    char bound[64];
    std::snprintf(bound, sizeof bound, ",le=\"%.9g\"", static_cast<double>(time_histogram::bound_ns(i)) * 1e-9);
    out.value(below, bound, "_bucket");
  }
  out.value(below, ",le=\"+Inf\"", "_bucket");
  out.value(static_cast<double>(h.sum_ns) * 1e-9, "", "_sum");
  out.value(below, "", "_count");
}

}  // namespace

std::string to_prometheus(const runtime_statistics& s) {
  exposition out{s.name};
  const auto counter = [&](const char* name, const char* help, std::uint64_t runtime_counters::* which) {
    out.metric(name, "counter", help);
    for (std::size_t i = 0; i < s.workers.size(); ++i)
      out.value(s.workers[i].counted.*which, ",worker=\"" + std::to_string(i) + "\"");
  };
  counter("ramie_dispatches_total", "Tasks, jobs and fibers taken up.", &runtime_counters::dispatches);
  counter("ramie_steals_total", "Thefts that brought something.", &runtime_counters::steals);
  counter("ramie_steals_tried_total", "Looks into queues that had something.", &runtime_counters::steals_tried);
  counter("ramie_wakes_total", "Fibers and actors made ready to run on the same worker.", &runtime_counters::wakes);
  counter("ramie_wakes_elsewhere_total", "Those sent to another worker.", &runtime_counters::wakes_elsewhere);
  counter("ramie_migrations_total", "Taken away from the worker that ran them last.", &runtime_counters::migrations);
  counter("ramie_sleeps_total", "Times a worker found nothing to do.", &runtime_counters::sleeps);
  out.metric("ramie_spawned_total", "counter", "Fibers and actors spawned.");
  out.value(s.counted.spawned);
  out.metric("ramie_ended_total", "counter", "Fibers and actors ended.");
  out.value(s.counted.ended);
  const auto gauge = [&](const char* name, const char* help, std::uint64_t number) {
    out.metric(name, "gauge", help);
    out.value(number);
  };
  gauge("ramie_live", "Fibers and actors spawned and not ended.", s.live);
  gauge("ramie_workers", "Workers on duty.", s.workers.size());
  gauge("ramie_injected", "Woken or spawned by other threads and not taken up.", s.injected);
  gauge("ramie_blocking_under_way", "Blocking calls under way.", s.blocking_under_way);
  gauge("ramie_blocking_waiting", "Blocking calls that wait for a thread.", s.blocking_waiting);
  out.metric("ramie_ready", "gauge", "Fibers and actors that may go on, by worker.");
  for (std::size_t i = 0; i < s.workers.size(); ++i)
    out.value(std::uint64_t{s.workers[i].ready}, ",worker=\"" + std::to_string(i) + "\"");
  if (s.run.count() != 0) add(out, "ramie_run_seconds", "A fiber's turn.", s.run);
  if (s.wait.count() != 0) add(out, "ramie_wait_seconds", "From being spawned or woken to running.", s.wait);
  return out.text();
}

}  // namespace ramie
