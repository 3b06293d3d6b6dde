#include <lab/harness/numbers.hpp>

#include <lab/harness/error.hpp>

#include <fmt/core.h>

#include <charconv>
#include <optional>

namespace ramie::lab {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// True if all of `text` is a number that fits.
template <class T>
bool read_whole(std::string_view text, T& value) {
  const char* const first = text.data();
  const char* const last = first + text.size();
  const auto [stop, error] = std::from_chars(first, last, value);
  return error == std::errc{} && stop == last;
}

/// Removes the "e6", "k" or "M" from the end of `text` and returns how many zeros it stands for; nothing if it is
/// malformed.
std::optional<int> take_zeros(std::string_view& text) {
  if (text.ends_with('k') || text.ends_with('M')) {
    const int zeros = text.back() == 'k' ? 3 : 6;
    text.remove_suffix(1);
    return zeros;
  }
  const std::size_t e = text.find('e');
  if (e == std::string_view::npos) return 0;
  int zeros = 0;
  if (!read_whole(text.substr(e + 1), zeros) || zeros < 0 || zeros > 18) return std::nullopt;
  text = text.substr(0, e);
  return zeros;
}

/// Nothing if `text` is no whole number, or one beyond 64 bits.
std::optional<std::int64_t> read_number(std::string_view text) {
  const auto zeros = take_zeros(text);
  if (!zeros) return std::nullopt;
  std::int64_t value = 0;
  if (!read_whole(text, value)) return std::nullopt;
  for (int i = 0; i < *zeros; ++i) {
    if (__builtin_mul_overflow(value, 10, &value)) return std::nullopt;
  }
  return value;
}

}  // namespace

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t comma = text.find(',');
    parts.emplace_back(trimmed(text.substr(0, comma)));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

std::int64_t parse_number(std::string_view option, std::string_view text, std::int64_t min, std::int64_t max) {
  const auto value = read_number(trimmed(text));
  if (!value || *value < min || *value > max) {
    throw usage_error{
        fmt::format("{} {}: must be a whole number from {} to {}", option, text.empty() ? "''" : text, min, max)};
  }
  return *value;
}

std::vector<std::int64_t> parse_numbers(std::string_view option, std::string_view text, std::int64_t min,
                                        std::int64_t max) {
  std::vector<std::int64_t> values;
  for (const std::string& part : split_list(text)) values.push_back(parse_number(option, part, min, max));
  return values;
}

}  // namespace ramie::lab
