#include <lab/workloads/plain_calls.hpp>

#include <lab/harness/opaque.hpp>

namespace ramie::lab {
namespace {

RAMIE_LAB_CALL std::int64_t increment(std::int64_t i) { return opaque_input(i) + 1; }

}  // namespace

run_result run_plain_calls(session& s, std::int64_t count) {
  std::int64_t calls = 0;
  const double seconds = s.time([&] {
    for (std::int64_t i = 0; i < count; ++i) calls = increment(calls);
  });
  return {.seconds = seconds, .units = count, .ok = calls == count};
}

}  // namespace ramie::lab
