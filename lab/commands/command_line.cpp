// Reads the command line. One subcommand for each workload, made from its table of options, and a few more.
#include <lab/commands/commands.hpp>

#include <lab/harness/error.hpp>
#include <lab/harness/options.hpp>
#include <lab/harness/runner.hpp>
#include <lab/harness/runtime_facts.hpp>
#include <lab/load/measure.hpp>
#include <lab/workloads/across.hpp>
#include <lab/workloads/echo.hpp>
#include <lab/workloads/registry.hpp>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include <functional>
#include <list>

namespace ramie::lab {
namespace {

class command_line {
 public:
  command_line() {
    app_.name("ramie-lab");
    app_.require_subcommand(0, 1);  // run() refuses none: a mistyped name needs a better message than "none"
    app_.failure_message([](const CLI::App*, const CLI::Error& e) {
      return fmt::format("ramie-lab: {}\nRun with --help for the commands.\n", e.what());
    });
    for (const workload& w : all_workloads()) add_workload(w);
    add_bench();
    add_load();
    add_small_ones();
  }

  int run(int argc, char** argv) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
      const int code = app_.exit(e);  // prints help or what is wrong
      return code == 0 ? exit_fine : exit_usage;
    }
    if (!action_) throw usage_error{"no command was given. Run with --help for the commands."};
    return action_();
  }

 private:
  CLI::App* add(const std::string& name, const std::string& summary, std::function<int()> action) {
    CLI::App* command = app_.add_subcommand(name, summary);
    command->callback([this, action = std::move(action)] { action_ = action; });
    return command;
  }

  void add_workload(const workload& w) {
    typed_options& typed = typed_.emplace_back(standard_options(w));
    CLI::App* command = add(w.name, w.summary, [&w, &typed] { return run_workload(w, typed); });
    command->group(w.hidden ? "" : "Workloads");
    add_options(*command, w, typed);
    std::string styles = "Styles:\n";
    for (const style& s : w.styles) styles += fmt::format("  {:<28}{}\n", s.name, s.summary);
    command->footer(styles);
  }

  void add_bench() {
    CLI::App* bench =
        add("bench", "the experiments in every style, on one worker and on all: a table and a file of results",
            [this] { return run_bench(bench_); });
    bench->group("Commands");
    bench->add_flag("--quick", bench_.quick, "smaller sizes and fewer runs");
    bench->add_flag("--json", bench_.json, "one JSON object a line on standard output in place of the table");
    bench->add_option("--workers", bench_.workers, "numbers of workers for the experiments that scale")
        ->capture_default_str();
    bench->add_option("--placement", bench_.placement, "who runs what")->capture_default_str();
    bench->add_option("--only", bench_.only, "a list of workloads")->capture_default_str();
    bench->add_option("--runs", bench_.runs, "measured runs of each, in place of the planned number");
    bench->add_option("--output", bench_.output, "the file for the results (default: a new one in build/bench)");
  }

  void add_load() {
    CLI::App* load = add("load", "drives a server of another system, as the workloads echo and http do ramie's",
                         [this] { return run_load(load_); });
    load->group("Commands");
    load->add_option("--system", load_.system, "its name in the record")->capture_default_str();
    load->add_option("--style", load_.style, "passed on to the server")->capture_default_str();
    load->add_option("--workers", load_.workers, "passed on too; it runs on as many cores")
        ->capture_default_str()
        ->check(CLI::Range(1, workers_max));
    load->add_option("--runs", load_.runs, "each has a server of its own")
        ->capture_default_str()
        ->check(CLI::Range(1, runs_max));
    load->add_option("--warmup", load_.warmup, "accepted for the sake of sameness; see --warm-up");
    for (const parameter& p : http_parameters()) {
      std::int64_t& value = load_.parameters[p.name] = p.name == "http" ? 0 : p.standard;
      load->add_option("--" + p.name, value, p.help)->capture_default_str()->check(CLI::Range(p.min, p.max));
    }
    load->add_option("server", load_.server, "the command that starts it, after --")->required();
    CLI::App* server = add(echo_server_command, "the server of the workload echo",
                           [this] { return serve_echo(load_.style, load_.workers); });
    server->group("");
    server->add_option("--style", load_.style);
    server->add_option("--workers", load_.workers)->check(CLI::Range(1, workers_max));
#ifdef RAMIE_LAB_CLUSTER
    CLI::App* far =
        add(across_far_command, "the other process of experiment 8", [this] { return serve_across(load_.workers); });
    far->group("");
    far->add_option("--workers", load_.workers)->check(CLI::Range(1, workers_max));
#endif
  }

  void add_small_ones() {
    CLI::App* list = add("list", "workloads and their styles", [this] { return list_workloads(list_as_json_); });
    list->group("Commands");
    list->add_flag("--json", list_as_json_, "one JSON object a workload");
    CLI::App* machine = add("machine", "show the machine, as recorded with every result",
                            [this] { return show_machine(machine_as_json_); });
    machine->group("Commands");
    machine->add_flag("--json", machine_as_json_, "as a JSON object");
    CLI::App* child =
        add(child_command, "what the program starts itself with", [this] { return measure_as_child(child_request_); });
    child->group("");
    child->add_option("request", child_request_)->required();
  }

  CLI::App app_{"Measures ramie: what a lightweight thread, a switch, a message costs."};
  std::function<int()> action_;
  std::list<typed_options> typed_;  // at stable addresses
  bench_options bench_;
  load_command_options load_;
  bool machine_as_json_ = false;
  bool list_as_json_ = false;
  std::string child_request_;
};

}  // namespace

int run_command_line(int argc, char** argv) {
  try {
    return command_line{}.run(argc, argv);
  } catch (const usage_error& e) {
    fmt::print(stderr, "ramie-lab: {}\n", e.what());
    return exit_usage;
  } catch (const std::exception& e) {
    fmt::print(stderr, "ramie-lab: {}\n", e.what());
    return exit_wrong_result;
  }
}

}  // namespace ramie::lab
