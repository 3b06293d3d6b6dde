#include <ramie/parallel/pipeline.hpp>

namespace ramie::detail {

void check_pipeline_limit(std::size_t limit) {
  if (limit == 0) throw invalid_argument{"ramie: parallel::pipeline: limit is 0, and must be at least 1"};
}

}  // namespace ramie::detail
