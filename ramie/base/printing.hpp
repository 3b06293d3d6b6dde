// Values of the program's own types as text, for reports, where they can be printed.
#pragma once

#include <concepts>
#include <ostream>
#include <string_view>
#include <type_traits>

namespace ramie::detail {

template <class T>
concept has_to_string = requires(const T& value) {
  { to_string(value) } -> std::convertible_to<std::string_view>;
};
template <class T>
concept goes_to_stream = requires(std::ostream& out, const T& value) { out << value; };

/// By a to_string(value) or an operator<< that its type's namespace has; enumerators as numbers otherwise. Nothing is
/// written for other types.
template <class T>
void print(std::ostream& out, const T& value) {
  if constexpr (has_to_string<T>) out << std::string_view{to_string(value)};
  else if constexpr (goes_to_stream<T>) out << value;
  else if constexpr (std::is_enum_v<T>) out << +static_cast<std::underlying_type_t<T>>(value);
}

}  // namespace ramie::detail
