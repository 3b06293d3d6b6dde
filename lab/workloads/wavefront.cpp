// Experiment 10: a graph of tasks that is made once and run many times.
#include <lab/harness/session.hpp>
#include <lab/peers/common/wavefront.hpp>
#include <lab/workloads/registry.hpp>

#include <ramie/parallel/task_graph.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace ramie::lab {
namespace {

class by_task_graph {
 public:
  explicit by_task_graph(::wavefront::grid& g) {
    std::vector<parallel::task_graph::node> above;
    for (std::size_t r = 0; r < g.side(); ++r) {
      std::vector<parallel::task_graph::node> row;
      for (std::size_t c = 0; c < g.side(); ++c) {
        row.push_back(graph_.add("cell", [&g, r, c] { g.fill(r, c); }));
        if (c > 0) row[c].succeed(row[c - 1]);
        if (r > 0) row[c].succeed(above[c]);
      }
      above = std::move(row);
    }
  }
  void run() { graph_.run(); }

 private:
  parallel::task_graph graph_;
};

template <class How>
run_result run(session& s) {
  const ::wavefront::result r =
      ::wavefront::run<How>(static_cast<std::size_t>(s.parameter("side")), s.parameter("work"),
                            [&](auto&& f) { return s.time(std::forward<decltype(f)>(f)); });
  return {.seconds = r.seconds, .units = r.tasks, .ok = r.ok};
}

}  // namespace

workload wavefront_workload() {
  return {
      .name = "wavefront",
      .summary = "experiment 10: a graph of tasks, a grid whose cells need those above and to the left",
      .unit = "task",
      .parameters = {{.name = "side", .help = "rows and columns", .standard = 64, .min = 1, .max = 4096},
                     {.name = "work", .help = "multiplications a task", .standard = 200, .min = 0, .max = 1'000'000}},
      .styles =
          {
              {"plain", "two loops", false, run<::wavefront::plain>},
              {"task_graph", "parallel::task_graph, made once", true, run<by_task_graph>},
          },
  };
}

}  // namespace ramie::lab
