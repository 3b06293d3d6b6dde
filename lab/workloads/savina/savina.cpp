#include <lab/workloads/savina/savina.hpp>

namespace ramie::lab {

std::vector<workload> savina_workloads() {
  return {savina_thread_ring(),
          savina_counting(),
          savina_fork_join_throughput(),
          savina_fork_join_create(),
          savina_big(),
          savina_chameneos(),
          savina_bank_transaction(),
          savina_concurrent_dictionary(),
          savina_dining_philosophers(),
          savina_sleeping_barber(),
          savina_cigarette_smokers(),
          savina_logistic_map(),
          savina_sieve(),
          savina_cobwebbed_tree(),
          savina_n_queens()};
}

}  // namespace ramie::lab
