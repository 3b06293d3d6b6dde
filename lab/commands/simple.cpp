// The short commands.
#include <lab/commands/commands.hpp>

#include <lab/harness/machine.hpp>
#include <lab/harness/numbers.hpp>
#include <lab/harness/results.hpp>
#include <lab/harness/runner.hpp>
#include <lab/harness/runtime_facts.hpp>
#include <lab/harness/table.hpp>
#include <lab/workloads/registry.hpp>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>

namespace ramie::lab {

namespace {

nlohmann::ordered_json describe_workload(const workload& w) {
  nlohmann::ordered_json j;
  j["workload"] = w.name;
  j["summary"] = w.summary;
  j["unit"] = w.unit;
  j["styles"] = nlohmann::ordered_json::array();
  for (const style& s : w.styles) j["styles"].push_back(s.name);
  j["placements"] = nlohmann::ordered_json::array();
  for (const std::string& name : split_list(placement_names())) j["placements"].push_back(name);
  j["parameters"] = nlohmann::ordered_json::object();
  for (const parameter& p : w.parameters) j["parameters"][p.name] = p.standard;
  return j;
}

}  // namespace

int run_workload(const workload& w, const typed_options& typed) {
  results all{std::cout, typed.json};
  measure_all(requests_for(w, typed), [&](const record& r) { all.add(r); });
  const bool no_counters =
      std::all_of(all.records().begin(), all.records().end(), [](const record& r) { return r.counters.empty(); });
  if (typed.counters && no_counters)
    fmt::print(stderr, "ramie-lab: --counters: no runtime was needed, so nothing was counted\n");
  return all.finish();
}

int list_workloads(bool as_json) {
  if (as_json) {
    for (const workload& w : all_workloads()) {
      if (!w.hidden) std::cout << describe_workload(w).dump() << '\n';
    }
    return 0;
  }
  table lines{{{"workload", table::align::left}, {"style", table::align::left}, {"what it is", table::align::left}}};
  for (const workload& w : all_workloads()) {
    if (w.hidden) continue;
    lines.add({w.name, "", w.summary + " (per " + w.unit + ")"});
    for (const style& s : w.styles) lines.add({w.name, s.name, s.summary});
  }
  std::cout << lines.text();
  return 0;
}

int show_machine(bool as_json) {
  const nlohmann::ordered_json described = json_of(describe_machine());
  if (as_json) {
    std::cout << described.dump() << '\n';
    return 0;
  }
  for (const auto& [name, value] : described.items()) {
    fmt::print("{:<24}{}\n", name, value.is_string() ? value.get<std::string>() : value.dump());
  }
  return 0;
}

}  // namespace ramie::lab
