// RESP2, the protocol of Redis (https://redis.io/docs/latest/develop/reference/protocol-spec): requests are read, and
// replies written, over anything that ramie's buffered reader and writer take.
#pragma once

#include <ramie/net.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace redis {

namespace net = ramie::net;

/// The whole of `text` as a number.
inline std::optional<std::int64_t> to_number(std::string_view text) {
  std::int64_t n = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return n;
}

/// The client does not speak the protocol; the connection is of no use any more.
struct protocol_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class Stream>
class request_reader {
 public:
  static constexpr std::int64_t words_most = 1024, word_size_most = 16 * 1024 * 1024;

  explicit request_reader(Stream& from) : in_{from} {}

  /// The next request, which has at least one word. False at the end. Strings that are there are used again: a busy
  /// connection allocates nothing.
  bool next(std::vector<std::string>& words) {
    for (;;) {
      const auto line = in_.read_line();
      if (!line) return false;
      if (line->starts_with('*')) read_array(words, count(line->substr(1), words_most));
      else split(*line, words);  // typed by a person, as in telnet
      if (!words.empty()) return true;
    }
  }

 private:
  static std::size_t count(std::string_view text, std::int64_t most) {
    const std::optional<std::int64_t> n = to_number(text);
    if (!n || *n > most) throw protocol_error{"invalid length"};
    return static_cast<std::size_t>(std::max<std::int64_t>(*n, 0));
  }
  void read_array(std::vector<std::string>& words, std::size_t n) {
    words.resize(n);
    for (std::string& word : words) {
      const auto line = in_.read_line();
      if (!line || !line->starts_with('$')) throw protocol_error{"expected '$'"};
      read_word(word, count(line->substr(1), word_size_most));
      if (in_.read_line() != "") throw protocol_error{"a string is longer than announced"};
    }
  }
  /// Takes memory as the bytes arrive, not when they are announced.
  void read_word(std::string& word, std::size_t size) {
    word.clear();
    while (word.size() < size) {
      const auto there = in_.peek();
      if (there.empty()) throw protocol_error{"the end comes within a request"};
      const std::size_t n = std::min(there.size(), size - word.size());
      word.append(reinterpret_cast<const char*>(there.data()), n);
      in_.consume(n);
    }
  }
  static void split(std::string_view line, std::vector<std::string>& words) {
    words.clear();
    while (!line.empty()) {
      const std::string_view word = line.substr(0, line.find(' '));
      if (!word.empty()) words.emplace_back(word);
      line.remove_prefix(std::min(word.size() + 1, line.size()));
    }
  }

  net::buffered_reader<Stream> in_;
};

/// What the protocol can say. `Out` has write(std::string_view).
template <class Out>
class reply_writer {
 public:
  explicit reply_writer(Out& out) : out_{&out} {}

  void status(std::string_view text) { line('+', text); }
  void error(std::string_view text) { line('-', text); }
  void number(std::int64_t n) { numbered(':', n); }
  void nothing() { out_->write("$-1\r\n"); }
  /// Is followed by `n` others.
  void array(std::size_t n) { numbered('*', static_cast<std::int64_t>(n)); }
  void string(std::string_view text) {
    numbered('$', static_cast<std::int64_t>(text.size()));
    out_->write(text);
    out_->write("\r\n");
  }

 private:
  void line(char kind, std::string_view text) {
    out_->write(std::string_view{&kind, 1});
    out_->write(text.substr(0, text.find_first_of("\r\n")));
    out_->write("\r\n");
  }
  void numbered(char kind, std::int64_t n) {
    std::array<char, 24> digits;
    digits[0] = kind;
    char* end = std::to_chars(digits.data() + 1, digits.data() + 22, n).ptr;
    *end++ = '\r';
    *end++ = '\n';
    out_->write(std::string_view{digits.data(), static_cast<std::size_t>(end - digits.data())});
  }

  Out* out_;
};

}  // namespace redis
