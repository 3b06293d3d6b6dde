// What the lab reads: result files, numbers and lists of the command line. It may refuse them with its own errors only.
#include "input.hpp"

#include <lab/harness/error.hpp>
#include <lab/harness/numbers.hpp>
#include <lab/harness/request.hpp>
#include <nlohmann/json.hpp>

namespace {
using namespace ramie::lab;

record some_record() {
  record r;
  r.what = {.workload = "skynet", .style = "spawn"};
  r.workers = 2;
  r.unit = "fiber";
  r.units = 1000;
  r.seconds = {0.5, 0.25, 0.75};
  r.plain_seconds = {0.1, 0.2, 0.3};
  r.plain_units = 1000;
  r.busy_cores = {1, 1, 1};
  r.plain_busy_cores = {1, 1, 1};
  r.figures["bytes"] = {1, 2, 3};
  r.counters["steals"] = 7;
  r.ok = true;
  return r;
}

void read_record(const std::string& text) {
  nlohmann::ordered_json j = nlohmann::ordered_json::parse(text, nullptr, false);
  if (j.is_discarded()) return;
  try {
    const auto kept = json_of(record_from_json(j), nullptr);
    fuzz::require(json_of(record_from_json(kept), nullptr).dump() == kept.dump(),
                  "a record changes when it is read again");
  } catch (const nlohmann::json::exception&) {
  } catch (const std::exception&) {
  }
}

/// A good record, with one value in place of another.
void read_altered(fuzz::input& in) {
  static const nlohmann::ordered_json good = json_of(some_record(), nullptr);
  nlohmann::ordered_json j = good;
  for (unsigned n = 1 + in.pick(3); n > 0; --n) {
    auto at = j.begin();
    if (j.empty()) break;
    std::advance(at, in.pick(static_cast<unsigned>(j.size() - 1)));
    switch (in.pick(6)) {
      case 0: j.erase(at); break;
      case 1: *at = nullptr; break;
      case 2: *at = -1; break;
      case 3: *at = 1e308; break;
      case 4: *at = "text"; break;
      case 5: *at = nlohmann::ordered_json::array({1, "two", nullptr}); break;
      default: *at = nlohmann::ordered_json::object(); break;
    }
  }
  read_record(j.dump());
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::input in{data, size};
  const unsigned what = in.pick(3);
  if (what == 0) read_altered(in);
  const std::string text = in.rest();
  if (what == 1) read_record(text);
  if (what >= 2) {
    try {
      const std::int64_t n = parse_number("--n", text, -5, 1'000'000'000);
      fuzz::require(n >= -5 && n <= 1'000'000'000, "a number out of its range");
    } catch (const usage_error&) {
    }
    try {
      for (const std::int64_t n : parse_numbers("--n", text, 1, 1000))
        fuzz::require(n >= 1 && n <= 1000, "out of range");
    } catch (const usage_error&) {
    }
  }
  return 0;
}
