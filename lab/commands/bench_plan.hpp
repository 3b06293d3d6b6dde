// The measurements of the main job and their sizes.
#pragma once

#include <lab/commands/commands.hpp>
#include <lab/harness/request.hpp>

#include <string>
#include <vector>

namespace ramie::lab {

struct bench_step {
  std::string experiment;  // its name in the table
  std::vector<request> requests;
};

/// Throws usage_error.
std::vector<bench_step> plan_bench(const bench_options& options);

}  // namespace ramie::lab
