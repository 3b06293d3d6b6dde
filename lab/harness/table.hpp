// Columns of text, for people.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ramie::lab {

/// Collects rows, then lines them up: words to the left, numbers to the right.
class table {
 public:
  enum class align { left, right };
  struct column {
    std::string title;
    align to = align::right;
  };

  explicit table(std::vector<column> columns) : columns_{std::move(columns)} {}

  /// A shorter row is filled up with empty cells. Throws std::invalid_argument for one with more cells than columns.
  void add(std::vector<std::string> row);

  /// All rows as lines of text, with a rule under the titles, no blanks at the ends of lines, and without columns in
  /// which every cell is empty. A first cell that repeats that of the row before is left out.
  [[nodiscard]] std::string text() const;

  [[nodiscard]] bool empty() const noexcept { return rows_.empty(); }

 private:
  std::vector<column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// "5.2 MiB", "812 B".
std::string readable_bytes(double bytes);

/// Two digits after the point, or nothing for nothing.
std::string readable_ratio(const std::optional<double>& value);

/// Four significant digits, without an exponent: "0.0031", "71.23", "1240000".
std::string readable_number(double value);

}  // namespace ramie::lab
