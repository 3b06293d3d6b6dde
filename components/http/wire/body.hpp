// Where the body of a message of HTTP/1 ends, as its bytes come.
//
//  B1 A chunk's line is hexadecimal digits, of a size below 2^63, then extensions behind a ';', then CRLF. Extensions have
//     no control character but tab, in quotes or not, so everybody sees the same end of the line. A chunk's data end with
//     CRLF (RFC 9112, 7.1).
//  B2 Trailers are fields, on lines as those of a head. Content-Length, Transfer-Encoding and Host are refused there. All
//     others are dropped.
//  B3 Extensions and trailers, which nobody reads, are bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ramie::http {

class body_reader {
 public:
  body_reader() = default;  // there is none
  [[nodiscard]] static body_reader of_length(std::uint64_t n) noexcept;
  [[nodiscard]] static body_reader in_chunks() noexcept;
  [[nodiscard]] static body_reader to_end_of_connection() noexcept;

  struct progress {
    std::size_t used, data;  // bytes of `in`, and into `into`
  };
  /// Takes what is the body's of `in`. It leaves some of that when `into` is full, and at a fault.
  progress put(std::string_view in, std::span<std::byte> into);

  [[nodiscard]] bool is_done() const noexcept { return at_ == place::done; }
  [[nodiscard]] bool is_broken() const noexcept { return at_ == place::broken; }
  [[nodiscard]] bool ends_with_connection() const noexcept { return kind_ == kind::to_end; }
  /// Bytes of data that have come or are announced.
  [[nodiscard]] std::uint64_t announced() const noexcept { return received_ + (ends_with_connection() ? 0 : left_); }

 private:
  enum class kind : unsigned char { length, chunks, to_end };
  enum class place : unsigned char {
    size,
    gap,
    extension,
    line_end,
    data,
    data_end,
    data_line_end,
    trailers,
    done,
    broken
  };

  [[nodiscard]] place after(char c);
  [[nodiscard]] place after_digit(char c);
  [[nodiscard]] place after_trailer(char c);

  kind kind_ = kind::length;
  place at_ = place::done;
  int digits_ = 0;           // of the chunk's size
  std::size_t ignored_ = 0;  // of extensions and trailers
  std::uint64_t left_ = 0;   // of the length, or of the chunk
  std::uint64_t received_ = 0;
  std::string line_;  // of a trailer
};

}  // namespace ramie::http
