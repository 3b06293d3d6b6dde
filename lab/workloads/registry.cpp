#include <lab/workloads/registry.hpp>

#include <lab/workloads/across.hpp>
#include <lab/workloads/savina/savina.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace ramie::lab {

const std::vector<workload>& all_workloads() {
  static const std::vector<workload> all = [] {
    std::vector<workload> most{
        skynet_workload(), sum_workload(),         fib_workload(),         overhead_workload(), operations_workload(),
        yield_workload(),  spawn_workload(),       pingpong_workload(),    stream_workload(),   select_workload(),
        mpmc_workload(),   affinity_workload(),    mutex_workload(),       timers_workload(),   mixed_workload(),
        actors_workload(), idle_actors_workload(), memory_workload(),      ticker_workload(),   wake_workload(),
        idle_workload(),   echo_workload(),        supervision_workload(), files_workload(),    http_workload(),
    };
    for (std::vector<workload> more : {savina_workloads(), task_suite_workloads(), algorithm_workloads()})
      std::move(more.begin(), more.end(), std::back_inserter(most));
    most.push_back(wavefront_workload());
#ifdef RAMIE_LAB_CLUSTER
    for (workload& w : across_workloads()) most.push_back(std::move(w));
#endif
    most.push_back(self_test_workload());
    return most;
  }();
  return all;
}

const workload* find_workload(std::string_view name) {
  for (const workload& w : all_workloads()) {
    if (w.name == name) return &w;
  }
  return nullptr;
}

}  // namespace ramie::lab
