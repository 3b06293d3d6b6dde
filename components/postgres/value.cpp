#include <ramie/postgres/value.hpp>

#include <libpq-fe.h>

#include <cstring>

namespace ramie::postgres {

namespace {

constexpr char hex_digits[] = "0123456789abcdef";

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  throw invalid_argument{"ramie: postgres: the value is no bytea in the format 'hex'"};
}

}  // namespace

parameter::parameter(std::string_view text) : text_{text} {
  if (text.find('\0') != std::string_view::npos)
    throw invalid_argument{"ramie: postgres: a text parameter has a zero byte; bytes go as std::span<const std::byte>"};
}

parameter::parameter(std::span<const std::byte> bytes) {
  std::string& text = text_.emplace("\\x");
  text.reserve(2 + 2 * bytes.size());
  for (const std::byte b : bytes) {
    text += hex_digits[std::to_integer<unsigned>(b) >> 4];
    text += hex_digits[std::to_integer<unsigned>(b) & 15];
  }
}

template <>
std::vector<std::byte> from_text(std::string_view text) {
  if (!text.starts_with("\\x") || text.size() % 2 != 0) throw_not_convertible(text, "bytea in the format 'hex'");
  std::vector<std::byte> bytes;
  bytes.reserve(text.size() / 2 - 1);
  for (std::size_t i = 2; i < text.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(hex_value(text[i]) << 4 | hex_value(text[i + 1])));
  return bytes;
}

void throw_not_convertible(std::string_view text, const char* type) {
  throw invalid_argument{"ramie: postgres: \"" + std::string{text.substr(0, 60)} + "\" is no " + type};
}
void throw_null() {
  throw invalid_argument{"ramie: postgres: the value is NULL; ask for a std::optional where it may be"};
}

void result::clear::operator()(pg_result* r) const noexcept { PQclear(r); }

std::size_t result::size() const noexcept { return static_cast<std::size_t>(PQntuples(rows_.get())); }
std::size_t result::columns() const noexcept { return static_cast<std::size_t>(PQnfields(rows_.get())); }

std::uint64_t result::affected() const {
  const std::string_view count = rows_ ? PQcmdTuples(rows_.get()) : "";
  return count.empty() ? 0 : from_text<std::uint64_t>(count);
}

std::size_t result::column(std::string_view name) const {
  for (std::size_t i = 0; i < columns(); ++i)
    if (column_name(i) == name) return i;
  throw invalid_argument{"ramie: postgres: the result has no column \"" + std::string{name} + "\""};
}

std::string_view result::column_name(std::size_t column) const {
  if (column >= columns())
    throw invalid_argument{"ramie: postgres: column " + std::to_string(column) + " of " + std::to_string(columns())};
  return PQfname(rows_.get(), static_cast<int>(column));
}

std::optional<std::string_view> result::text(std::size_t row, std::size_t column) const {
  if (row >= size())
    throw invalid_argument{"ramie: postgres: row " + std::to_string(row) + " of " + std::to_string(size())};
  if (column >= columns())
    throw invalid_argument{"ramie: postgres: column " + std::to_string(column) + " of " + std::to_string(columns())};
  const int r = static_cast<int>(row), c = static_cast<int>(column);
  if (PQgetisnull(rows_.get(), r, c) != 0) return std::nullopt;
  return std::string_view{PQgetvalue(rows_.get(), r, c), static_cast<std::size_t>(PQgetlength(rows_.get(), r, c))};
}

}  // namespace ramie::postgres
