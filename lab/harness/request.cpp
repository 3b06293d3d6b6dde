#include <lab/harness/request.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>

namespace ramie::lab {
namespace {

using json = nlohmann::ordered_json;

std::vector<double> nanoseconds_each(const std::vector<double>& seconds, std::int64_t units) {
  std::vector<double> each;
  if (units <= 0) return each;
  each.reserve(seconds.size());
  for (const double s : seconds) each.push_back(s * 1e9 / static_cast<double>(units));
  return each;
}

json or_null(const std::optional<double>& value) { return value ? json(*value) : json(nullptr); }

template <class T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

/// Nothing without a yardstick, or if it took no measurable time.
std::optional<double> ratio_if_paired(const std::vector<double>& each, const std::vector<double>& plain) {
  if (each.empty() || each.size() != plain.size()) return std::nullopt;
  if (*std::min_element(plain.begin(), plain.end()) <= 0) return std::nullopt;
  return paired_ratio(each, plain);
}

/// Empty if they are not pairs.
std::vector<double> products(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> all;
  if (a.size() != b.size()) return all;
  all.reserve(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) all.push_back(a[i] * b[i]);
  return all;
}

}  // namespace

std::optional<summary> record::ns_per_unit() const {
  const auto each = nanoseconds_each(seconds, units);
  if (each.empty()) return std::nullopt;
  return summarise(each);
}

std::optional<double> record::plain_ns_per_unit() const {
  const auto each = nanoseconds_each(plain_seconds, plain_units);
  if (each.empty()) return std::nullopt;
  return median(each);
}

std::optional<double> record::ratio_to_plain() const {
  return ratio_if_paired(nanoseconds_each(seconds, units), nanoseconds_each(plain_seconds, plain_units));
}

std::optional<double> record::busy() const {
  if (busy_cores.empty()) return std::nullopt;
  return median(busy_cores);
}

std::optional<double> record::cpu_ratio_to_plain() const {
  return ratio_if_paired(nanoseconds_each(products(seconds, busy_cores), units),
                         nanoseconds_each(products(plain_seconds, plain_busy_cores), plain_units));
}

json json_of(const request& r) {
  json j;
  j["workload"] = r.workload;
  j["style"] = r.style;
  j["workers"] = r.workers;
  j["placement"] = r.placement;
  j["stacks"] = r.stacks;
  j["pin_threads"] = r.pin_threads;
  j["runs"] = r.runs;
  j["warmup"] = r.warmup;
  j["least_ms"] = r.least_ms;
  j["pause_ms"] = r.pause_ms;
  j["yardstick"] = r.yardstick;
  j["counters"] = r.counters;
  j["parameters"] = r.parameters;
  return j;
}

namespace {
/// Throws json::type_error if it is not a whole number: converting one that is too large for its type is undefined.
template <class T>
void get_whole(const json& j, const char* name, T& to) {
  static_cast<void>(j.at(name).get_ref<const json::number_integer_t&>());
  j.at(name).get_to(to);
}
void check_whole(const json& object) {
  for (const json& value : object)
    if (value.is_number()) static_cast<void>(value.get_ref<const json::number_integer_t&>());
}
}  // namespace

request request_from_json(const json& j) {
  request r;
  j.at("workload").get_to(r.workload);
  j.at("style").get_to(r.style);
  get_whole(j, "workers", r.workers);
  j.at("placement").get_to(r.placement);
  j.at("stacks").get_to(r.stacks);
  j.at("pin_threads").get_to(r.pin_threads);
  get_whole(j, "runs", r.runs);
  get_whole(j, "warmup", r.warmup);
  get_whole(j, "least_ms", r.least_ms);
  get_whole(j, "pause_ms", r.pause_ms);
  j.at("yardstick").get_to(r.yardstick);
  j.at("counters").get_to(r.counters);
  check_whole(j.at("parameters"));
  j.at("parameters").get_to(r.parameters);
  return r;
}

json json_of(const record& r, const json& machine) {
  const auto each = r.ns_per_unit();
  json j;
  j["system"] = r.system;
  j["workload"] = r.what.workload;
  j["style"] = r.what.style;
  j["workers"] = r.workers;
  j["unit"] = r.unit;
  j["units"] = r.units;
  j["seconds"] = r.seconds;
  if (!r.repeats.empty()) j["repeats"] = r.repeats;
  j["ns_per_unit"] = each ? json(each->median) : json(nullptr);
  j["ns_per_unit_min"] = each ? json(each->min) : json(nullptr);
  j["ns_per_unit_max"] = each ? json(each->max) : json(nullptr);
  j["spread"] = each ? json(each->spread) : json(nullptr);
  j["peak_rss_bytes"] = r.peak_rss_bytes;
  j["base_rss_bytes"] = r.base_rss_bytes;
  j["ok"] = r.ok;
  if (!r.error.empty()) j["error"] = r.error;
  if (!r.plain_seconds.empty()) {
    j["plain_seconds"] = r.plain_seconds;
    j["plain_units"] = r.plain_units;
    j["plain_ns_per_unit"] = or_null(r.plain_ns_per_unit());
    j["plain_busy_cores"] = r.plain_busy_cores;
    j["ratio_to_plain"] = or_null(r.ratio_to_plain());
    j["cpu_ratio_to_plain"] = or_null(r.cpu_ratio_to_plain());
  }
  if (!r.busy_cores.empty()) j["busy_cores"] = r.busy_cores;
  if (!r.figures.empty()) j["figures"] = r.figures;
  if (!r.counters.empty()) j["counters"] = r.counters;
  // What identifies the measurement is above; this is how it was asked for.
  json options = json_of(r.what);
  options.erase("workload");
  options.erase("style");
  j["options"] = std::move(options);
  j["machine"] = machine;
  return j;
}

record record_from_json(const json& j) {
  record r;
  json asked = j.at("options");
  asked["workload"] = j.at("workload");
  asked["style"] = j.at("style");
  r.what = request_from_json(asked);
  j.at("system").get_to(r.system);
  get_whole(j, "workers", r.workers);
  j.at("unit").get_to(r.unit);
  get_whole(j, "units", r.units);
  j.at("seconds").get_to(r.seconds);
  if (j.contains("repeats")) {
    check_whole(j.at("repeats"));
    j.at("repeats").get_to(r.repeats);
  }
  get_whole(j, "peak_rss_bytes", r.peak_rss_bytes);
  get_whole(j, "base_rss_bytes", r.base_rss_bytes);
  j.at("ok").get_to(r.ok);
  r.error = j.value("error", std::string{});
  if (j.contains("plain_seconds")) {
    j.at("plain_seconds").get_to(r.plain_seconds);
    get_whole(j, "plain_units", r.plain_units);
    j.at("plain_busy_cores").get_to(r.plain_busy_cores);
  }
  if (j.contains("busy_cores")) j.at("busy_cores").get_to(r.busy_cores);
  if (j.contains("figures")) j.at("figures").get_to(r.figures);
  if (j.contains("counters")) {
    check_whole(j.at("counters"));
    j.at("counters").get_to(r.counters);
  }
  return r;
}

record merge(const std::vector<record>& parts) {
  record whole = parts.front();
  for (auto part = parts.begin() + 1; part != parts.end(); ++part) {
    append(whole.seconds, part->seconds);
    append(whole.repeats, part->repeats);
    append(whole.plain_seconds, part->plain_seconds);
    append(whole.busy_cores, part->busy_cores);
    append(whole.plain_busy_cores, part->plain_busy_cores);
    for (const auto& [name, values] : part->figures) append(whole.figures[name], values);
    for (const auto& [name, value] : part->counters) whole.counters[name] += value;
    whole.peak_rss_bytes = std::max(whole.peak_rss_bytes, part->peak_rss_bytes);
    whole.units = std::max(whole.units, part->units);
    whole.ok = whole.ok && part->ok;
    if (whole.error.empty()) whole.error = part->error;
  }
  return whole;
}

}  // namespace ramie::lab
