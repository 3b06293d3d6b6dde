// Styles that fail on purpose, to test that the lab notices. Not shown to users.
#include <lab/harness/session.hpp>
#include <lab/workloads/registry.hpp>

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <thread>

namespace ramie::lab {
namespace {

run_result take_a_while(session& s, bool ok) {
  const double seconds = s.time([] { std::this_thread::sleep_for(std::chrono::microseconds{100}); });
  return {.seconds = seconds, .units = s.parameter("units"), .ok = ok, .figures = {{"answer", 42}}};
}

run_result right(session& s) { return take_a_while(s, true); }
run_result wrong(session& s) { return take_a_while(s, false); }
run_result throws(session&) { throw std::runtime_error{"thrown on purpose"}; }
run_result crashes(session&) { std::abort(); }
run_result exits(session&) { std::_Exit(0); }

}  // namespace

workload self_test_workload() {
  return {
      .name = "self-test",
      .summary = "styles that go wrong on purpose",
      .unit = "unit",
      .parameters =
          {{.name = "units", .help = "what to claim to have counted", .standard = 100, .min = 0, .max = 1000}},
      .styles =
          {
              {"plain", "a right result", false, right},
              {"right", "a right result", false, right},
              {"wrong", "a wrong result", false, wrong},
              {"throws", "an exception", false, throws},
              {"crashes", "the end of the process by a signal", false, crashes},
              {"exits", "the end of the process without a word", false, exits},
          },
      .hidden = true,
  };
}

}  // namespace ramie::lab
