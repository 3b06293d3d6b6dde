// What goes to the server and what comes from it: parameters, results, errors. All values travel as text.
#pragma once

#include <ramie/ramie.hpp>

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

struct pg_result;  // libpq's

namespace ramie::postgres {

/// The server refused a statement.
class query_error : public error {
 public:
  query_error(const std::string& what, std::string state)
      : error{"ramie: postgres: " + what}, state_{std::move(state)} {}
  /// The five letters of SQLSTATE: "23505" for a key that is there already, "57014" for a cancelled query.
  [[nodiscard]] const std::string& sqlstate() const noexcept { return state_; }

 private:
  std::string state_;
};

/// There is no connection, or it broke: whether the statement under way was carried out is not known.
class connection_error : public error {
 public:
  explicit connection_error(const std::string& what) : error{"ramie: postgres: " + what} {}
};

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

/// A value for "$1", "$2" and so on, which the server converts to the type that the statement wants there.
class parameter {
 public:
  parameter(std::nullopt_t) noexcept {}
  parameter(bool b) : text_{b ? "t" : "f"} {}
  template <class T>
    requires(std::is_arithmetic_v<T> && !std::same_as<T, bool> && !std::same_as<T, char>)
  parameter(T number) {
    char digits[64];
    text_.emplace(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
  }
  /// Throws invalid_argument if there is a zero byte in it, which no text of PostgreSQL can have.
  parameter(std::string_view text);
  parameter(const char* text) : parameter{std::string_view{text}} {}
  parameter(const std::string& text) : parameter{std::string_view{text}} {}
  /// For `bytea`.
  parameter(std::span<const std::byte> bytes);
  template <class T>
  parameter(const std::optional<T>& value) {
    if (value) *this = parameter{*value};
  }

  /// nullopt: NULL.
  [[nodiscard]] const std::optional<std::string>& text() const noexcept { return text_; }

 private:
  std::optional<std::string> text_;
};

[[noreturn]] void throw_not_convertible(std::string_view text, const char* type);
[[noreturn]] void throw_null();

/// The text of a value as a T: a number, bool, std::string, std::string_view (valid as long as the result), or bytes
/// of a `bytea`. Throws invalid_argument if it is none.
template <class T>
[[nodiscard]] T from_text(std::string_view text) {
  if constexpr (std::same_as<T, bool>) {
    if (text == "t" || text == "f") return text == "t";
    throw_not_convertible(text, "bool");
  } else if constexpr (std::is_arithmetic_v<T>) {
    T number{};
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (code != std::errc{} || end != text.data() + text.size()) throw_not_convertible(text, "number of this type");
    return number;
  } else {
    return T{text};
  }
}
template <>
[[nodiscard]] std::vector<std::byte> from_text(std::string_view text);

class row;

/// What a statement returned. Movable. Reading it does not suspend; any thread, but one at a time.
class result {
 public:
  result() noexcept = default;
  explicit result(pg_result* owned) noexcept : rows_{owned} {}
  [[nodiscard]] pg_result* get() const noexcept { return rows_.get(); }
  explicit operator bool() const noexcept { return rows_ != nullptr; }

  [[nodiscard]] std::size_t size() const noexcept;  // rows
  [[nodiscard]] std::size_t columns() const noexcept;
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  /// Rows that an INSERT, UPDATE, DELETE, COPY and so on has changed.
  [[nodiscard]] std::uint64_t affected() const;
  /// The number of the column of this name, from 0. Throws invalid_argument if there is none.
  [[nodiscard]] std::size_t column(std::string_view name) const;
  [[nodiscard]] std::string_view column_name(std::size_t column) const;

  /// nullopt: NULL. Throws invalid_argument if there is no such row or column.
  [[nodiscard]] std::optional<std::string_view> text(std::size_t row, std::size_t column) const;
  [[nodiscard]] row operator[](std::size_t row) const;

  class iterator;
  [[nodiscard]] iterator begin() const noexcept;
  [[nodiscard]] iterator end() const noexcept;

 private:
  struct clear {
    void operator()(pg_result* r) const noexcept;
  };
  std::unique_ptr<pg_result, clear> rows_;
};

/// A row of a result, which has to stay.
class row {
 public:
  row(const result& of, std::size_t number) noexcept : of_{&of}, number_{number} {}
  /// The value in a column, which is given by its number (from 0) or name; an optional for one that may be NULL. Throws
  /// invalid_argument if there is no such column, or the value is no T.
  template <class T>
  [[nodiscard]] T get(std::size_t column) const {
    const std::optional<std::string_view> text = of_->text(number_, column);
    if constexpr (is_optional<T>) {
      if (!text) return std::nullopt;
      return from_text<typename T::value_type>(*text);
    } else {
      if (!text) throw_null();
      return from_text<T>(*text);
    }
  }
  template <class T>
  [[nodiscard]] T get(std::string_view column) const {
    return get<T>(of_->column(column));
  }

 private:
  const result* of_;
  std::size_t number_;
};

class result::iterator {
 public:
  using value_type = row;
  using difference_type = std::ptrdiff_t;
  iterator() noexcept = default;
  iterator(const result& of, std::size_t number) noexcept : of_{&of}, number_{number} {}
  row operator*() const noexcept { return {*of_, number_}; }
  iterator& operator++() noexcept {
    ++number_;
    return *this;
  }
  iterator operator++(int) noexcept { return {*of_, number_++}; }
  friend bool operator==(const iterator&, const iterator&) noexcept = default;

 private:
  const result* of_ = nullptr;
  std::size_t number_ = 0;
};

inline row result::operator[](std::size_t row) const { return {*this, row}; }
inline result::iterator result::begin() const noexcept { return {*this, 0}; }
inline result::iterator result::end() const noexcept { return {*this, size()}; }

}  // namespace ramie::postgres
