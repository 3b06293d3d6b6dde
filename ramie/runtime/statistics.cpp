#include <ramie/runtime/metrics.hpp>
#include <ramie/runtime/statistics.hpp>

#include <cstdio>
#include <utility>

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

/// One metric after the other, as the format requires: all lines of a name together.
class exposition {
 public:
  explicit exposition(const std::string& runtime) : labels_{"runtime=\""} {
    for (const char c : runtime) {
      if (c == '"' || c == '\\') labels_ += '\\';
      if (c == '\n') labels_ += "\\n";
      else labels_ += c;
    }
    labels_ += '"';
  }

  void add(const metric& m) {
    constexpr const char* types[] = {"counter", "gauge", "histogram"};
    const char* const type = types[static_cast<std::size_t>(m.type)];
    text_ += std::string{"# HELP "} + m.name + " " + m.help + "\n# TYPE " + m.name + " " + type + "\n";
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
    text_ += name + "{" + labels_ + labels + "} " + number + "\n";
  }
  static std::string shown(double number) {
    char text[40];
    std::snprintf(text, sizeof text, "%.9g", number);
    return text;
  }

  std::string labels_;
  std::string text_;
};

}  // namespace

std::string to_prometheus(const runtime_statistics& s) {
  exposition out{s.name};
  for (const metric& m : metrics_of(s)) out.add(m);
  return out.text();
}

}  // namespace ramie
