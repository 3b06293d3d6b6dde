#include <lab/harness/results.hpp>

#include <lab/harness/error.hpp>
#include <lab/harness/table.hpp>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <ostream>
#include <set>

namespace ramie::lab {
namespace {

/// The parameters that differ between records: only those get a column.
std::vector<std::string> varying_parameters(const std::vector<record>& records) {
  std::vector<std::string> names;
  for (const auto& [name, value] : records.front().what.parameters) {
    std::set<std::int64_t> seen;
    for (const record& r : records) {
      const auto found = r.what.parameters.find(name);
      if (found != r.what.parameters.end()) seen.insert(found->second);
    }
    if (seen.size() > 1) names.push_back(name);
  }
  return names;
}

/// The columns that distinguish records: the style, the varying parameters, the workers.
std::vector<table::column> columns_of_request(const std::vector<std::string>& varying) {
  std::vector<table::column> columns{{"style", table::align::left}};
  for (const std::string& name : varying) columns.push_back({name});
  columns.push_back({"workers"});
  return columns;
}

std::vector<std::string> cells_of_request(const record& r, const std::vector<std::string>& varying) {
  std::vector<std::string> row{r.what.style};
  for (const std::string& name : varying) row.push_back(std::to_string(r.what.parameters.at(name)));
  row.push_back(std::to_string(r.workers));
  return row;
}

std::string outcome_text(const record& r) { return r.ok ? "right" : "FAILED: " + r.error; }

}  // namespace

std::string figures_text(const record& r) {
  std::string text;
  for (const auto& [name, values] : r.figures) {
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {}", name, readable_number(median(values)));
  }
  return text;
}

std::string results_table(const std::vector<record>& records) {
  if (records.empty()) return {};
  const std::vector<std::string> varying = varying_parameters(records);
  std::vector<table::column> columns = columns_of_request(varying);
  for (const char* title : {"ns each", "least", "most", "x plain", "x plain CPU", "busy cores", "peak memory"})
    columns.push_back({title});
  columns.push_back({"result", table::align::left});
  columns.push_back({"also", table::align::left});

  table lines{std::move(columns)};
  for (const record& r : records) {
    const auto each = r.ns_per_unit();
    std::vector<std::string> row = cells_of_request(r, varying);
    row.push_back(each ? readable_number(each->median) : "-");
    row.push_back(each ? readable_number(each->min) : "-");
    row.push_back(each ? readable_number(each->max) : "-");
    row.push_back(readable_ratio(r.ratio_to_plain()));
    row.push_back(readable_ratio(r.cpu_ratio_to_plain()));
    row.push_back(readable_ratio(r.busy()));
    row.push_back(readable_bytes(static_cast<double>(r.peak_rss_bytes)));
    row.push_back(outcome_text(r));
    row.push_back(figures_text(r));
    lines.add(std::move(row));
  }
  const record& first = records.front();
  return fmt::format("{}: ns a {}, {} run{}\n{}", first.what.workload, first.unit, first.what.runs,
                     first.what.runs == 1 ? "" : "s", lines.text());
}

std::string counters_table(const std::vector<record>& records) {
  std::set<std::string> names;
  for (const record& r : records)
    for (const auto& [name, value] : r.counters) names.insert(name);
  if (names.empty()) return {};
  const std::vector<std::string> varying = varying_parameters(records);
  std::vector<table::column> columns = columns_of_request(varying);
  for (const std::string& name : names) columns.push_back({name});
  table lines{std::move(columns)};
  for (const record& r : records) {
    if (r.counters.empty()) continue;  // plain code has no runtime
    std::vector<std::string> row = cells_of_request(r, varying);
    for (const std::string& name : names) {
      const auto found = r.counters.find(name);
      row.push_back(found == r.counters.end() ? "" : std::to_string(found->second));
    }
    lines.add(std::move(row));
  }
  const int runs = records.front().what.runs;
  return fmt::format("\ncounted by the runtime, {}\n{}", runs == 1 ? "1 run" : fmt::format("{} runs together", runs),
                     lines.text());
}

void results::add(const record& r) {
  records_.push_back(r);
  if (!as_json_) return;
  machine_.load_average = load_average();
  out_ << json_of(r, json_of(machine_)).dump() << '\n' << std::flush;
}

int results::finish() {
  if (!as_json_) out_ << results_table(records_) << counters_table(records_) << std::flush;
  fmt::print(stderr, "{}", contention_remark(records_));
  return exit_code_for(records_);
}

std::string contention_remark(const std::vector<record>& records) {
  constexpr double share_expected = 0.9;
  double least = 1;
  for (const record& r : records) {
    if (r.workers == 1) least = std::min(least, r.busy().value_or(1));
  }
  if (least >= share_expected) return {};
  return fmt::format(
      "ramie-lab: other programs had a share of the CPU: a single thread ran only {:.0f} % of the time. "
      "Of the figures, only \"x plain CPU\" is proof against that.\n",
      100 * least);
}

int exit_code_for(const std::vector<record>& records) {
  const bool all_ok = std::all_of(records.begin(), records.end(), [](const record& r) { return r.ok; });
  return all_ok ? exit_fine : exit_wrong_result;
}

}  // namespace ramie::lab
