// Where records go: JSON lines for programs, or a table for people.
#pragma once

#include <lab/harness/machine.hpp>
#include <lab/harness/request.hpp>

#include <iosfwd>
#include <string>
#include <vector>

namespace ramie::lab {

/// The table of the records of one workload.
std::string results_table(const std::vector<record>& records);

/// The runtime's counters, if they were asked for; else empty.
std::string counters_table(const std::vector<record>& records);

/// "resident_bytes_per_fiber 4712", each figure by its median, separated by ", ".
std::string figures_text(const record& r);

/// Takes records one by one. Lines of JSON are written at once, a table by finish().
class results {
 public:
  results(std::ostream& out, bool as_json) : out_{out}, as_json_{as_json}, machine_{describe_machine()} {}

  void add(const record& r);

  /// Writes the rest. Returns the exit code: exit_wrong_result if any record is not ok.
  int finish();

  [[nodiscard]] const std::vector<record>& records() const noexcept { return records_; }
  [[nodiscard]] const machine& measured_on() const noexcept { return machine_; }

 private:
  std::ostream& out_;
  bool as_json_;
  machine machine_;
  std::vector<record> records_;
};

/// A remark if other programs visibly took CPU time from measurements on one worker; else empty.
std::string contention_remark(const std::vector<record>& records);

/// exit_fine, or exit_wrong_result if any record is not ok.
int exit_code_for(const std::vector<record>& records);

}  // namespace ramie::lab
