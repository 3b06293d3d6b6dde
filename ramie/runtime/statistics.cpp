#include <ramie/runtime/metrics.hpp>
#include <ramie/runtime/statistics.hpp>

#include <cstdio>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

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

std::string label_of(const std::string& runtime) {
  std::string label = "runtime=\"";
  for (const char c : runtime) {
    if (c == '"' || c == '\\') label += '\\';
    if (c == '\n') label += "\\n";
    else label += c;
  }
  return label + '"';
}

/// One metric after the other, as the format requires: all lines of a name together, of all runtimes.
class exposition {
 public:
  void begin(const metric& m) {
    constexpr const char* types[] = {"counter", "gauge", "histogram"};
    const char* const type = types[static_cast<std::size_t>(m.type)];
    text_ += std::string{"# HELP "} + m.name + " " + m.help + "\n# TYPE " + m.name + " " + type + "\n";
  }
  void add(const std::string& runtime_label, const metric& m) {
    label_ = &runtime_label;
    for (const metric::value& v : m.values)
      line(m.name, v.worker < 0 ? "" : ",worker=\"" + std::to_string(v.worker) + "\"", std::to_string(v.number));
    if (m.times != nullptr) add(m.name, *m.times);
  }
  std::string text() { return std::move(text_); }

 private:
  void add(const std::string& name, const time_histogram& h) {
    for (const metric_bucket& b : buckets_of(h))
      line(name + "_bucket", ",le=\"" + shown(b.bound_s) + "\"", std::to_string(b.below));
    const std::string count = std::to_string(h.count());
    line(name + "_bucket", ",le=\"+Inf\"", count);
    line(name + "_sum", "", shown(static_cast<double>(h.sum_ns) * 1e-9));
    line(name + "_count", "", count);
  }
  void line(const std::string& name, const std::string& labels, const std::string& number) {
    text_ += name + "{" + *label_ + labels + "} " + number + "\n";
  }
  static std::string shown(double number) {
    char text[40];
    std::snprintf(text, sizeof text, "%.9g", number);
    return text;
  }

  const std::string* label_ = nullptr;
  std::string text_;
};

}  // namespace

std::string to_prometheus(const runtime_statistics& s) { return to_prometheus(std::span{&s, 1}); }

std::string to_prometheus(std::span<const runtime_statistics> all) {
  std::vector<std::string> labels;
  std::vector<std::vector<metric>> metrics;
  for (const runtime_statistics& s : all) {
    labels.push_back(label_of(s.name));
    metrics.push_back(metrics_of(s));
  }
  exposition out;
  std::set<std::string_view> written;  // a histogram may be recorded in some of them
  for (const std::vector<metric>& of_one : metrics)
    for (const metric& named : of_one) {
      if (!written.insert(named.name).second) continue;
      out.begin(named);
      for (std::size_t i = 0; i < metrics.size(); ++i)
        for (const metric& m : metrics[i])
          if (std::string_view{m.name} == named.name) out.add(labels[i], m);
    }
  return out.text();
}

}  // namespace ramie
