// Messages of the domain name system (RFC 1035): questions for addresses, and what answers them.
#pragma once

#include <arpa/inet.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace dns {

enum class kind : std::uint16_t { a = 1, cname = 5, aaaa = 28 };

struct bad_message : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void put16(std::string& to, unsigned value) {
  to += static_cast<char>(value >> 8);
  to += static_cast<char>(value & 0xff);
}

/// Throws std::invalid_argument if `name` is no name of a host.
inline void put_name(std::string& to, std::string_view name) {
  if (name.ends_with('.')) name.remove_suffix(1);
  if (name.empty() || name.size() > 253) throw std::invalid_argument{"a name has 1 to 253 characters"};
  for (;;) {
    const std::string_view label = name.substr(0, name.find('.'));
    if (label.empty() || label.size() > 63)
      throw std::invalid_argument{"between the dots of a name are 1 to 63 characters"};
    to += static_cast<char>(label.size());
    to += label;
    if (label.size() == name.size()) break;
    name.remove_prefix(label.size() + 1);
  }
  to += '\0';
}

/// A question by number `id`, for a server that looks the answer up elsewhere if it has to.
inline std::string question(std::uint16_t id, std::string_view name, kind k) {
  std::string q;
  for (const unsigned word : {unsigned{id}, 0x0100u /* recursion desired */, 1u, 0u, 0u, 0u}) put16(q, word);
  put_name(q, name);
  put16(q, static_cast<unsigned>(k));
  put16(q, 1);  // the Internet
  return q;
}

struct answer {
  std::uint16_t id = 0;
  int code = 0;                        // 0: no error, 2: the server has failed, 3: there is no such name
  bool truncated = false;              // it did not fit; to be asked for by TCP
  std::string question;                // what it answers, as it was asked, without its number
  std::vector<std::string> addresses;  // of either kind
};

/// Reads a message that may hold anything. Every read checks its bounds.
class reader {
 public:
  explicit reader(std::string_view message) : text_{message} {}

  unsigned u8() {
    if (at_ >= text_.size()) throw bad_message{"the message ends too early"};
    return static_cast<unsigned char>(text_[at_++]);
  }
  unsigned u16() {
    const unsigned high = u8();
    return high << 8 | u8();
  }
  std::string_view bytes(std::size_t n) {
    if (n > text_.size() - at_) throw bad_message{"the message ends too early"};
    at_ += n;
    return text_.substr(at_ - n, n);
  }
  /// Names are not needed here: which of them is whose is the server's care. One ends at a zero, or where it points to
  /// another.
  void skip_name() {
    for (;;) {
      const unsigned n = u8();
      if (n == 0) return;
      if (n >= 0xc0) {
        u8();
        return;
      }
      if (n > 63) throw bad_message{"a label of an unknown kind"};
      bytes(n);
    }
  }
  [[nodiscard]] std::size_t position() const noexcept { return at_; }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

/// Throws bad_message.
inline answer parse(std::string_view message) {
  reader r{message};
  answer a;
  a.id = static_cast<std::uint16_t>(r.u16());
  const unsigned flags = r.u16(), questions = r.u16(), answers = r.u16();
  r.bytes(4);  // how many records follow the answers
  if ((flags & 0x8000) == 0) throw bad_message{"a question, not an answer"};
  a.truncated = (flags & 0x0200) != 0;
  a.code = static_cast<int>(flags & 15);
  const std::size_t begin = r.position();
  for (unsigned i = 0; i < questions; ++i) {
    r.skip_name();
    r.bytes(4);
  }
  a.question = message.substr(begin, r.position() - begin);
  for (unsigned i = 0; i < answers && !a.truncated; ++i) {
    r.skip_name();
    const unsigned type = r.u16();
    r.bytes(6);  // class, time to live
    const std::string_view data = r.bytes(r.u16());
    const bool is_4 = type == static_cast<unsigned>(kind::a), is_6 = type == static_cast<unsigned>(kind::aaaa);
    if ((is_4 && data.size() != 4) || (is_6 && data.size() != 16)) throw bad_message{"an address of a wrong length"};
    if (!is_4 && !is_6) continue;  // a name that stands for another one
    std::array<char, INET6_ADDRSTRLEN> text{};
    ::inet_ntop(is_4 ? AF_INET : AF_INET6, data.data(), text.data(), text.size());
    a.addresses.emplace_back(text.data());
  }
  return a;
}

}  // namespace dns
