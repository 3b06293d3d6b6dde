#include <lab/harness/runner.hpp>

#include <lab/harness/child.hpp>
#include <lab/harness/error.hpp>
#include <lab/harness/measure.hpp>
#include <lab/workloads/registry.hpp>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <cstdio>

namespace ramie::lab {
namespace {

using json = nlohmann::ordered_json;

record failed(const workload& w, const request& r, std::string why) {
  record outcome;
  outcome.what = r;
  outcome.workers = r.workers;
  outcome.unit = w.unit;
  outcome.error = std::move(why);
  return outcome;
}

record measure_in_child(const workload& w, const request& r) {
  const child_outcome child = run_child({this_program(), child_command, json_of(r).dump()});
  if (!child.ended_well()) return failed(w, r, "the measuring process " + child.describe());
  try {
    return record_from_json(json::parse(child.output));
  } catch (const json::exception&) {
    return failed(w, r, "the measuring process " + child.describe() + " and printed no record");
  }
}

const workload& workload_of(const request& r) {
  const workload* w = find_workload(r.workload);
  if (w == nullptr) throw usage_error{"there is no workload " + r.workload};
  return *w;
}

}  // namespace

record measure_in_children(const workload& w, const request& r) {
  if (!w.fresh_process_each_run) return measure_in_child(w, r);
  request once = r;
  once.runs = 1;
  std::vector<record> parts;
  parts.reserve(static_cast<std::size_t>(r.runs));
  for (int i = 0; i < r.runs; ++i) parts.push_back(measure_in_child(w, once));
  record whole = merge(parts);
  whole.what = r;
  return whole;
}

void measure_all(const std::vector<request>& requests, const std::function<void(const record&)>& receive) {
  const std::size_t width = std::to_string(requests.size()).size();
  std::size_t number = 0;
  for (const request& r : requests) {
    fmt::print(stderr, "[{:{}}/{}] {} ... ", ++number, width, requests.size(), describe(r));
    std::fflush(stderr);
    const record outcome = measure_in_children(workload_of(r), r);
    fmt::print(stderr, "{}\n", describe_result(outcome));
    receive(outcome);
  }
}

int measure_as_child(const std::string& text) {
  die_with_parent();
  const request r = request_from_json(json::parse(text));
  const record outcome = measure_here(workload_of(r), r);
  fmt::print("{}\n", json_of(outcome, nullptr).dump());
  return exit_fine;
}

std::string describe(const request& r) {
  std::string text = r.workload + ' ' + r.style;
  text += r.workers == 0 ? ", all workers" : fmt::format(", {} worker{}", r.workers, r.workers == 1 ? "" : "s");
  for (const auto& [name, value] : r.parameters) text += fmt::format(", {}={}", name, value);
  return text;
}

std::string describe_result(const record& r) {
  std::string text;
  if (const auto each = r.ns_per_unit()) {
    text = fmt::format("{:.4g} ns a {}", each->median, r.unit);
    if (const auto ratio = r.ratio_to_plain()) text += fmt::format(", {:.2f} x plain", *ratio);
  }
  if (!r.ok) text += fmt::format("{}FAILED: {}", text.empty() ? "" : ", ", r.error);
  return text;
}

}  // namespace ramie::lab
