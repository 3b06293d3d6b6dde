// Reads the values of options. Every error names the option, the value, and the permitted values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ramie::lab {

/// The parts of "a,b,c", blanks around them removed. Empty parts are kept, so that they are reported as bad values.
std::vector<std::string> split_list(std::string_view text);

/// A whole number in [min, max]: "250000", "1e6", "64k", "2M" (thousands and millions). Throws usage_error.
std::int64_t parse_number(std::string_view option, std::string_view text, std::int64_t min, std::int64_t max);

/// A comma-separated list of such numbers. Throws usage_error.
std::vector<std::int64_t> parse_numbers(std::string_view option, std::string_view text, std::int64_t min,
                                        std::int64_t max);

}  // namespace ramie::lab
