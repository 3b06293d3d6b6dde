// Messages packed by permessage-deflate, each on its own (no context takeover): connections hold no windows meanwhile.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace ramie::http {

/// `window_bits`: 9 to 15.
[[nodiscard]] std::string deflated(std::string_view message, int window_bits);
/// nullopt if it is broken; more than `most` bytes: as many as `most` + 1.
[[nodiscard]] std::optional<std::string> inflated(std::string_view packed, std::size_t most);

/// What a server answers to an offer of extensions: the value of sec-websocket-extensions, and its own window; nullopt
/// if nothing fits.
struct deflate_terms {
  std::string answer;
  int window_bits = 15;
};
[[nodiscard]] std::optional<deflate_terms> accept_deflate(std::string_view offers);

}  // namespace ramie::http
