#include <lab/harness/session.hpp>

#include <ctime>
#include <stdexcept>
#include <string>

namespace ramie::lab {

double process_cpu_seconds() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

std::int64_t session::parameter(std::string_view name) const {
  const auto found = parameters_.find(name);
  if (found == parameters_.end()) throw std::out_of_range{"the workload has no parameter " + std::string{name}};
  return found->second;
}

ramie::runtime& session::runtime() {
  if (!runtime_) runtime_ = std::make_unique<ramie::runtime>(options_);
  return *runtime_;
}

int session::workers() const { return runtime_ ? runtime_->workers() : 1; }

}  // namespace ramie::lab
