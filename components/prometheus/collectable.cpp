#include <ramie/prometheus.hpp>

#include <ramie/inspect.hpp>
#include <ramie/runtime.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <mutex>
#include <utility>

namespace ramie {

struct prometheus_collectable::sources {
  struct source {
    const runtime* of;
    std::string name;
  };
  /// Held during a collection, so that no runtime ends meanwhile. A plain mutex: its holders do not suspend, and most
  /// of them are threads of a server.
  std::mutex lock;
  std::vector<source> served;
};

namespace {

::prometheus::MetricType type_of(metric::kind kind) noexcept {
  switch (kind) {
    case metric::kind::counter: return ::prometheus::MetricType::Counter;
    case metric::kind::gauge: return ::prometheus::MetricType::Gauge;
    case metric::kind::histogram: break;
  }
  return ::prometheus::MetricType::Histogram;
}

/// The family of that name; runtimes have the same ones, except for histograms that only some have recorded.
::prometheus::MetricFamily& family_of(std::vector<::prometheus::MetricFamily>& families, const metric& m) {
  const auto at =
      std::find_if(families.begin(), families.end(), [&](const auto& family) { return family.name == m.name; });
  if (at != families.end()) return *at;
  ::prometheus::MetricFamily& family = families.emplace_back();
  family.name = m.name;
  family.help = m.help;
  family.type = type_of(m.type);
  return family;
}

void append(::prometheus::MetricFamily& family, const std::string& runtime, const metric& m) {
  for (const metric::value& v : m.values) {
    ::prometheus::ClientMetric& one = family.metric.emplace_back();
    one.label.push_back({"runtime", runtime});
    if (v.worker >= 0) one.label.push_back({"worker", std::to_string(v.worker)});
    const auto number = static_cast<double>(v.number);
    if (m.type == metric::kind::counter) one.counter.value = number;
    else one.gauge.value = number;
  }
  if (m.times == nullptr) return;
  ::prometheus::ClientMetric& one = family.metric.emplace_back();
  one.label.push_back({"runtime", runtime});
  one.histogram.sample_count = m.times->count();
  one.histogram.sample_sum = static_cast<double>(m.times->sum_ns) * 1e-9;
  for (const metric_bucket& b : buckets_of(*m.times)) one.histogram.bucket.push_back({b.below, b.bound_s});
  one.histogram.bucket.push_back({m.times->count(), std::numeric_limits<double>::infinity()});
}

}  // namespace

prometheus_collectable::registration::registration(std::shared_ptr<sources> from, const runtime& rt) noexcept
    : sources_{std::move(from)}, runtime_{&rt} {}

prometheus_collectable::registration& prometheus_collectable::registration::operator=(registration&& from) noexcept {
  if (this != &from) {
    end();
    sources_ = std::move(from.sources_);
    runtime_ = from.runtime_;
  }
  return *this;
}

prometheus_collectable::registration::~registration() { end(); }

void prometheus_collectable::registration::end() noexcept {
  if (sources_ == nullptr) return;
  {
    const std::lock_guard held{sources_->lock};
    std::erase_if(sources_->served, [this](const sources::source& s) { return s.of == runtime_; });
  }
  sources_.reset();
}

prometheus_collectable::prometheus_collectable() : sources_{std::make_shared<sources>()} {}

prometheus_collectable::~prometheus_collectable() = default;

prometheus_collectable::registration prometheus_collectable::add(const runtime& rt) {
  return add(rt, rt.options().name);
}

prometheus_collectable::registration prometheus_collectable::add(const runtime& rt, const std::string& name) {
  const std::lock_guard held{sources_->lock};
  for (const sources::source& s : sources_->served)
    if (s.of == &rt || s.name == name)
      throw usage_error{"ramie: prometheus_collectable::add: " +
                        (s.of == &rt ? "this runtime is served already, as \"" : std::string{"there is a runtime \""}) +
                        s.name + "\"; give it another name"};
  sources_->served.push_back({&rt, name});
  return {sources_, rt};
}

std::vector<::prometheus::MetricFamily> prometheus_collectable::Collect() const {
  std::vector<::prometheus::MetricFamily> families;
  const std::lock_guard held{sources_->lock};
  for (const sources::source& source : sources_->served) {
    const runtime_statistics s = source.of->statistics();
    for (const metric& m : metrics_of(s)) append(family_of(families, m), source.name, m);
  }
  return families;
}

}  // namespace ramie
