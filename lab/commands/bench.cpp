// The main job: measures the plan, shows a table, keeps the results.
#include <lab/commands/commands.hpp>

#include <lab/commands/bench_plan.hpp>
#include <lab/harness/error.hpp>
#include <lab/harness/results.hpp>
#include <lab/harness/runner.hpp>
#include <lab/harness/table.hpp>

#include <fmt/chrono.h>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>

namespace ramie::lab {
namespace {

namespace fs = std::filesystem;

/// Local time, to the second, in a form that sorts and that may be a file's name.
std::string time_stamp() { return fmt::format("{:%Y-%m-%d_%H-%M-%S}", fmt::localtime(std::time(nullptr))); }

/// The file for the results, its folder made. Opened before anything is measured: minutes of work must not end in "no
/// such folder".
class results_file {
 public:
  explicit results_file(const std::string& wanted)
      : path_{wanted.empty() ? fs::path{"build"} / "bench" / (time_stamp() + ".json") : fs::path{wanted}} {
    std::error_code code;
    if (path_.has_parent_path()) fs::create_directories(path_.parent_path(), code);
    if (code) throw lab_error{fmt::format("{} cannot be made: {}", path_.parent_path().string(), code.message())};
    stream_.open(path_);
    if (!stream_) throw lab_error{path_.string() + " cannot be written"};
  }

  void write(const nlohmann::ordered_json& content) {
    stream_ << content.dump(1) << '\n' << std::flush;
    if (!stream_) throw lab_error{path_.string() + " cannot be written"};
  }

  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  fs::path path_;
  std::ofstream stream_;
};

/// How much more work `many` does in the same time as one worker. By the ratios to the yardstick, if both have one: the
/// machine may have changed its speed between the two measurements.
std::optional<double> speed_up(const record& one, const record& many) {
  const auto one_ratio = one.ratio_to_plain();
  const auto many_ratio = many.ratio_to_plain();
  if (one_ratio && many_ratio && *many_ratio > 0) return *one_ratio / *many_ratio;
  const auto one_time = one.ns_per_unit();
  const auto many_time = many.ns_per_unit();
  if (one_time && many_time && many_time->median > 0) return one_time->median / many_time->median;
  return std::nullopt;
}

/// The record of the same measurement on one worker; null if there is none among `records`.
const record* on_one_worker(const record& r, const std::vector<record>& records) {
  for (const record& other : records) {
    if (other.workers == 1 && other.what.workload == r.what.workload && other.what.style == r.what.style &&
        other.what.parameters == r.what.parameters) {
      return &other;
    }
  }
  return nullptr;
}

/// The request's parameters that vary within the step: "n=10, x=1000".
std::string varying_parameters(const bench_step& step, const request& of) {
  std::string text;
  for (const auto& [name, value] : of.parameters) {
    const bool varies = std::any_of(step.requests.begin(), step.requests.end(), [&](const request& other) {
      const auto found = other.parameters.find(name);
      return found == other.parameters.end() || found->second != value;
    });
    if (varies) text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, value);
  }
  return text;
}

std::string bench_table(const std::vector<bench_step>& steps, const std::vector<record>& records) {
  using enum table::align;
  table lines{{{"experiment", left},
               {"style", left},
               {"size", left},
               {"workers"},
               {"ns each"},
               {"a", left},
               {"x plain"},
               {"x plain CPU"},
               {"speed-up"},
               {"busy cores"},
               {"peak memory"},
               {"result", left},
               {"also", left}}};
  auto next = records.begin();
  for (const bench_step& step : steps) {
    for (std::size_t i = 0; i < step.requests.size(); ++i, ++next) {
      const record& r = *next;
      const auto each = r.ns_per_unit();
      const record* one = r.workers > 1 ? on_one_worker(r, records) : nullptr;
      const auto gain = one != nullptr ? speed_up(*one, r) : std::nullopt;
      lines.add({step.experiment, r.what.style, varying_parameters(step, r.what), std::to_string(r.workers),
                 each ? readable_number(each->median) : "-", r.unit, readable_ratio(r.ratio_to_plain()),
                 readable_ratio(r.cpu_ratio_to_plain()), readable_ratio(gain), readable_ratio(r.busy()),
                 readable_bytes(static_cast<double>(r.peak_rss_bytes)), r.ok ? "right" : "FAILED: " + r.error,
                 figures_text(r)});
    }
  }
  return lines.text();
}

nlohmann::ordered_json results_json(const results& all, const std::string& started, double seconds) {
  nlohmann::ordered_json j;
  j["program"] = "ramie-lab bench";
  j["started"] = started;
  j["took_seconds"] = seconds;
  j["machine"] = json_of(all.measured_on());
  j["results"] = nlohmann::ordered_json::array();
  for (const record& r : all.records()) j["results"].push_back(json_of(r, json_of(all.measured_on())));
  return j;
}

}  // namespace

int run_bench(const bench_options& options) {
  const std::vector<bench_step> steps = plan_bench(options);
  results_file file{options.output};
  const std::string started = time_stamp();
  const auto start = std::chrono::steady_clock::now();

  std::vector<request> requests;
  for (const bench_step& step : steps) requests.insert(requests.end(), step.requests.begin(), step.requests.end());
  results all{std::cout, options.json};
  measure_all(requests, [&](const record& r) { all.add(r); });

  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  file.write(results_json(all, started, took.count()));
  if (!options.json) {
    const auto wrong = std::count_if(all.records().begin(), all.records().end(), [](const record& r) { return !r.ok; });
    std::cout << '\n'
              << bench_table(steps, all.records()) << '\n'
              << fmt::format("{} measurements in {:.0f} s, {} of them wrong\n", all.records().size(), took.count(),
                             wrong);
  }
  // With --json standard output is for objects only.
  (options.json ? std::cerr : std::cout) << "results: " << file.path() << '\n' << std::flush;
  std::cerr << contention_remark(all.records());
  return exit_code_for(all.records());
}

}  // namespace ramie::lab
