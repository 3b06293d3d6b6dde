#include <ramie/poll/io_error.hpp>

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

}  // namespace ramie::net
