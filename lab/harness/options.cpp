#include <lab/harness/options.hpp>

#include <lab/harness/error.hpp>
#include <lab/harness/numbers.hpp>
#include <lab/harness/runtime_facts.hpp>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

namespace ramie::lab {
namespace {

std::string style_names(const workload& w) {
  std::string names;
  for (const style& s : w.styles) names += s.name + ", ";
  return names + "all";
}

std::vector<const style*> parse_styles(const workload& w, const std::string& text) {
  std::vector<const style*> chosen;
  for (const std::string& name : split_list(text)) {
    if (name == "all") {
      for (const style& s : w.styles) chosen.push_back(&s);
    } else if (const style* s = w.find_style(name)) {
      chosen.push_back(s);
    } else {
      throw usage_error{fmt::format("--style {}: {} has {}", name.empty() ? "''" : name, w.name, style_names(w))};
    }
  }
  return chosen;
}

void check_placement(const std::string& name) {
  if (ramie::runtime_options any{.workers = 1}; !set_placement(any, name))
    throw usage_error{fmt::format("--placement {}: must be one of {}", name.empty() ? "''" : name, placement_names())};
}

std::vector<std::int64_t> parse_parameter(const parameter& p, const std::string& text) {
  const std::string option = "--" + p.name;
  if (p.is_switch() && (text.empty() || text == "true")) return {1};  // without a value
  std::vector<std::int64_t> values = parse_numbers(option, text, p.min, p.max);
  if (p.objection == nullptr) return values;
  for (const std::int64_t value : values) {
    if (const std::string objection = p.objection(value); !objection.empty()) {
      throw usage_error{fmt::format("{} {}: {}", option, value, objection)};
    }
  }
  return values;
}

/// Every combination of the values typed for the parameters, the last declared parameter changing fastest.
std::vector<parameter_values> combinations(const workload& w, const typed_options& typed) {
  std::vector<parameter_values> all{{}};
  for (const parameter& p : w.parameters) {
    std::vector<parameter_values> extended;
    for (const parameter_values& so_far : all) {
      for (const std::int64_t value : parse_parameter(p, typed.parameters.at(p.name))) {
        extended.push_back(so_far);
        extended.back()[p.name] = value;
      }
    }
    all = std::move(extended);
  }
  return all;
}

int parse_worker_number(const std::string& text) {
  try {
    return static_cast<int>(parse_number("--workers", text, 0, workers_max));
  } catch (const usage_error& e) {
    throw usage_error{std::string{e.what()} + ", or all"};
  }
}

}  // namespace

typed_options standard_options(const workload& w) {
  typed_options typed;
  typed.workers = w.standard_workers;
  typed.runs = std::to_string(w.standard_runs);
  typed.warmup = std::to_string(w.standard_warmup);
  for (const parameter& p : w.parameters) typed.parameters[p.name] = std::to_string(p.standard);
  return typed;
}

void add_options(CLI::App& command, const workload& w, typed_options& typed) {
  command.add_option("--style", typed.styles, "styles to measure; a list of: " + style_names(w))->capture_default_str();
  for (const parameter& p : w.parameters) {
    CLI::Option* option =
        command.add_option("--" + p.name, typed.parameters.at(p.name), p.help + "; a list measures each");
    if (p.is_switch()) option->expected(0, 1);  // a default known to the parser would mean no value
    else option->capture_default_str();
  }
  command
      .add_option("--workers", typed.workers, "a list of numbers of workers; all (or 0): as many as the runtime picks")
      ->capture_default_str();
  command.add_option("--placement", typed.placement, "who runs what: " + placement_names())->capture_default_str();
  command
      .add_option("--stacks", typed.stacks,
                  "where stacks come from: " + stacks_names() + " (a pool with guards, or a pool without)")
      ->capture_default_str();
  command.add_flag("--pin-threads", typed.pin_threads, "bind each worker's thread to one CPU");
  command.add_option("--runs", typed.runs, "measured runs")->capture_default_str();
  command.add_option("--warmup", typed.warmup, "runs before them that are not measured")->capture_default_str();
  command
      .add_option("--least-ms", typed.least_ms,
                  "repeat the work inside a measured run until it has taken so many milliseconds")
      ->capture_default_str();
  command.add_option("--pause-ms", typed.pause_ms, "milliseconds between such repetitions, which are not measured")
      ->capture_default_str();
  command.add_flag("--json", typed.json, "one JSON object a line on standard output, and nothing else there");
  command.add_flag("--counters", typed.counters, "print the runtime's counters of the measured runs as well");
  command.add_flag("--no-yardstick", typed.no_yardstick, "do not run plain calls in turns with each measured run");
}

std::vector<int> parse_workers(const std::string& text) {
  std::vector<int> numbers;
  for (const std::string& part : split_list(text)) {
    numbers.push_back(part == "all" ? 0 : parse_worker_number(part));
  }
  return numbers;
}

std::vector<request> requests_for(const workload& w, const typed_options& typed) {
  const std::vector<const style*> styles = parse_styles(w, typed.styles);
  const std::vector<int> workers = parse_workers(typed.workers);
  check_placement(typed.placement);
  if (!find_stacks(typed.stacks))
    throw usage_error{fmt::format("--stacks {}: must be one of {}", typed.stacks, stacks_names())};
  request common;
  common.workload = w.name;
  common.placement = typed.placement;
  common.stacks = typed.stacks;
  common.pin_threads = typed.pin_threads;
  common.runs = static_cast<int>(parse_number("--runs", typed.runs, 1, runs_max));
  common.warmup = static_cast<int>(parse_number("--warmup", typed.warmup, 0, runs_max));
  common.least_ms = static_cast<int>(parse_number("--least-ms", typed.least_ms, 0, repeat_ms_max));
  common.pause_ms = static_cast<int>(parse_number("--pause-ms", typed.pause_ms, 0, repeat_ms_max));
  common.yardstick = !typed.no_yardstick;
  common.counters = typed.counters;

  std::vector<request> requests;
  for (const parameter_values& values : combinations(w, typed)) {
    for (const style* s : styles) {
      for (const int number : s->on_runtime ? workers : std::vector<int>{1}) {
        request r = common;
        r.style = s->name;
        r.workers = number;
        r.parameters = values;
        requests.push_back(std::move(r));
      }
    }
  }
  return requests;
}

}  // namespace ramie::lab
