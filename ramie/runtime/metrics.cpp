#include <ramie/runtime/metrics.hpp>

#include <cstddef>

namespace ramie {

std::vector<metric> metrics_of(const runtime_statistics& s) {
  std::vector<metric> all;
  const auto of_workers = [&](const char* name, const char* help, metric::kind kind, auto&& number) {
    metric& m = all.emplace_back(metric{name, help, kind, {}, nullptr});
    m.values.reserve(s.workers.size());
    for (const worker_statistics& w : s.workers) m.values.push_back({w.number, number(w)});
  };
  const auto counter = [&](const char* name, const char* help, std::uint64_t runtime_counters::* which) {
    of_workers(name, help, metric::kind::counter, [&](const worker_statistics& w) { return w.counted.*which; });
  };
  const auto of_all = [&](const char* name, const char* help, metric::kind kind, std::uint64_t number) {
    all.push_back({name, help, kind, {{-1, number}}, nullptr});
  };
  counter("ramie_dispatches_total", "Fibers, actors and jobs started or resumed.", &runtime_counters::dispatches);
  counter("ramie_steals_total", "Successful steals.", &runtime_counters::steals);
  counter("ramie_steals_tried_total", "Attempts to steal from a queue that was not empty.",
          &runtime_counters::steals_tried);
  counter("ramie_wakes_total", "Fibers and actors woken to run on the same worker.", &runtime_counters::wakes);
  counter("ramie_wakes_elsewhere_total", "Fibers and actors woken to run on another worker.",
          &runtime_counters::wakes_elsewhere);
  counter("ramie_migrations_total", "Fibers and actors that moved to another worker.", &runtime_counters::migrations);
  counter("ramie_sleeps_total", "Times a worker went to sleep, or tried to.", &runtime_counters::sleeps);
  counter("ramie_injections_total", "Fibers and actors taken from the injection queue.", &runtime_counters::injected);
  counter("ramie_time_slices_total", "Turns that actors ended to let others run.", &runtime_counters::time_slices);
  counter("ramie_io_waits_total", "Times a fiber waited for a descriptor.", &runtime_counters::io_waits);
  counter("ramie_read_bytes_total", "Bytes that fibers read from sockets, pipes and files.",
          &runtime_counters::bytes_read);
  counter("ramie_written_bytes_total", "Bytes that fibers wrote to sockets, pipes and files.",
          &runtime_counters::bytes_written);
  of_all("ramie_io_polls_total", "Questions to the kernel for events of descriptors.", metric::kind::counter,
         s.io_polls);
  of_all("ramie_io_events_total", "Events of descriptors that the kernel told.", metric::kind::counter, s.io_events);
  of_all("ramie_io_descriptors", "Open descriptors that were waited for.", metric::kind::gauge, s.io_descriptors);
  of_all("ramie_spawned_total", "Fibers and actors spawned.", metric::kind::counter, s.counted.spawned);
  of_all("ramie_ended_total", "Fibers and actors ended.", metric::kind::counter, s.counted.ended);
  of_all("ramie_live", "Fibers and actors spawned and not ended.", metric::kind::gauge, s.live);
  of_all("ramie_workers", "Workers on duty.", metric::kind::gauge, s.workers.size());
  of_all("ramie_injected", "Fibers and actors woken or spawned by other threads and not yet taken up.",
         metric::kind::gauge, s.injected);
  of_all("ramie_blocking_under_way", "Blocking calls under way.", metric::kind::gauge, s.blocking_under_way);
  of_all("ramie_blocking_waiting", "Blocking calls that wait for a thread.", metric::kind::gauge, s.blocking_waiting);
  of_workers("ramie_ready", "Fibers and actors that can resume, by worker.", metric::kind::gauge,
             [](const worker_statistics& w) { return std::uint64_t{w.ready}; });
  const auto histogram = [&](const char* name, const char* help, const time_histogram& h) {
    if (h.count() != 0) all.push_back({name, help, metric::kind::histogram, {}, &h});
  };
  histogram("ramie_run_seconds", "Time that a fiber ran, from one switch to the next.", s.run);
  histogram("ramie_wait_seconds", "Time from a fiber's being spawned or woken to its running.", s.wait);
  return all;
}

std::vector<metric_bucket> buckets_of(const time_histogram& h) {
  constexpr std::size_t first = 3, last = 35;
  std::vector<metric_bucket> buckets;
  buckets.reserve(last - first + 1);
  std::uint64_t below = 0;
  for (std::size_t i = 0; i <= last; ++i) {
    below += h.counts[i];
    if (i >= first) buckets.push_back({static_cast<double>(time_histogram::bound_ns(i)) * 1e-9, below});
  }
  return buckets;
}

}  // namespace ramie
