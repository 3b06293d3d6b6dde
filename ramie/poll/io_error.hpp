// What calls for input and output throw.
#pragma once

#include <ramie/base/error.hpp>

#include <string>
#include <string_view>
#include <system_error>

namespace ramie::net {

/// Failures that are not the kernel's.
enum class io_errc {
  closed = 1,      // close() was called, by this fiber or another, before or during the call
  unexpected_end,  // end of the stream in the middle of a read
  too_long,        // what was to be read did not end within the limit that the caller gave
};
[[nodiscard]] std::error_code make_error_code(io_errc code) noexcept;

/// An operation on a socket, pipe or file failed. `code()` is an errno in std::system_category, or an io_errc. The
/// message names the operation and, where it is known, the peer.
class io_error : public error {
 public:
  io_error(const std::string& what, std::error_code code)
      : error{"ramie: " + what + ": " + code.message()}, code_{code} {}
  [[nodiscard]] std::error_code code() const noexcept { return code_; }

 private:
  std::error_code code_;
};

namespace detail {
/// Throws invalid_argument if there is a zero byte in `text`, where the kernel would see its end. `what` names the
/// argument.
void check_no_zero(const char* what, std::string_view text);
/// Of a path: "." and "/" where it names none.
[[nodiscard]] std::string folder_of(const std::string& path);
}  // namespace detail

}  // namespace ramie::net

template <>
struct std::is_error_code_enum<ramie::net::io_errc> : std::true_type {};
