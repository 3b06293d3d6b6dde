#include <lab/harness/table.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

namespace ramie::lab {

void table::add(std::vector<std::string> row) {
  if (row.size() > columns_.size()) throw std::invalid_argument{"a row with more cells than the table has columns"};
  row.resize(columns_.size());
  rows_.push_back(std::move(row));
}

std::string table::text() const {
  std::vector<std::size_t> widths(columns_.size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (std::size_t i = 0; i < widths.size(); ++i) {
    if (widths[i] > 0) widths[i] = std::max(widths[i], columns_[i].title.size());
  }

  std::string all;
  auto add_line = [&](auto cell) {
    std::string line;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (widths[i] == 0) continue;
      if (!line.empty()) line += "  ";
      line += columns_[i].to == align::left ? fmt::format("{:<{}}", cell(i), widths[i])
                                            : fmt::format("{:>{}}", cell(i), widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    all += line + '\n';
  };
  add_line([&](std::size_t i) { return columns_[i].title; });
  add_line([&](std::size_t i) { return std::string(widths[i], '-'); });
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const bool repeats = r > 0 && rows_[r].front() == rows_[r - 1].front();
    add_line([&](std::size_t i) { return i == 0 && repeats ? std::string{} : rows_[r][i]; });
  }
  return all;
}

std::string readable_bytes(double bytes) {
  constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (std::abs(bytes) >= 1024 && unit + 1 < units.size()) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, units[unit]);
}

std::string readable_ratio(const std::optional<double>& value) { return value ? fmt::format("{:.2f}", *value) : ""; }

std::string readable_number(double value) {
  if (value == 0) return "0";
  const int digits_before_point = static_cast<int>(std::floor(std::log10(std::abs(value)))) + 1;
  return fmt::format("{:.{}f}", value, std::clamp(4 - digits_before_point, 0, 9));
}

}  // namespace ramie::lab
