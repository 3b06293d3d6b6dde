#include <ramie/poll/io_error.hpp>

#include <ramie/poll/system.hpp>

#include <algorithm>

namespace ramie::net {

namespace {
class io_category final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "ramie.io"; }
  [[nodiscard]] std::string message(int code) const override {
    switch (static_cast<io_errc>(code)) {
      case io_errc::closed: return "closed";
      case io_errc::unexpected_end: return "the stream ended too early";
      case io_errc::too_long: return "longer than the limit";
    }
    return "unknown";
  }
};
}  // namespace

std::error_code make_error_code(io_errc code) noexcept {
  static const io_category category;
  return {static_cast<int>(code), category};
}

void detail::check_no_zero(const char* what, std::string_view text) {
  const std::size_t at = text.find('\0');
  if (at != std::string_view::npos)
    throw invalid_argument{"ramie: " + std::string{what} + " \"" + std::string{text.substr(0, at)} +
                           "\\0...\": a zero byte is at place " + std::to_string(at)};
}

std::string detail::folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
}

void detail::system::fail(const std::string& what, result code) {
  throw io_error{what, {static_cast<int>(-code), std::system_category()}};
}

}  // namespace ramie::net
