// Bytes as Protocol Buffers have them (protobuf.dev, "Encoding"): varints, tags, lengths.
#pragma once

#include <ramie/actor.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>

namespace ramie {

/// Bytes are not a message of the type that was expected, or exceed a limit. The message says which.
class wire_error : public error {
 public:
  using error::error;
};

struct wire_limits {
  /// Encoded. nats-server takes a MiB by default (max_payload), with what goes around it.
  static constexpr std::size_t message_bytes = (std::size_t{1} << 20) - (std::size_t{16} << 10);
  static constexpr std::size_t decoded_bytes = std::size_t{16}
                                               << 20;  // what the elements of its containers take: a guess
  static constexpr int depth = 32;                     // messages in messages
};

/// Turns actor references into what other nodes know them by, and back. See remote_ref.hpp.
class wire_refs {
 public:
  struct record {
    std::string node;  // empty: no actor
    std::uint64_t incarnation = 0;
    std::uint64_t number = 0;
    std::string type;
    std::uint64_t capacity = 0;  // of its mailbox, if that makes senders wait; else 0
  };
  virtual record out(const any_actor& who) = 0;
  virtual any_actor in(const record& what) = 0;

 protected:
  ~wire_refs() = default;
};

namespace detail {

enum class wire_type : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

[[noreturn]] RAMIE_COLD inline void wire_fails(const char* what) {
  throw wire_error{std::string{"ramie: wire: "} + what};
}

/// `what` is a message's name, or says what the bytes are.
inline void check_wire_size(std::string_view what, std::size_t bytes, std::size_t most = wire_limits::message_bytes) {
  if (bytes > most)
    throw wire_error{"ramie: wire: " + std::string{what} + " of " + std::to_string(bytes) + " bytes: at most " +
                     std::to_string(most)};
}

/// Appends to a string.
class wire_writer {
 public:
  explicit wire_writer(std::string& into, wire_refs* refs = nullptr) noexcept : into_{into}, refs_{refs} {}

  void varint(std::uint64_t v) {
    char bytes[10];
    std::size_t n = 0;
    for (; v >= 0x80; v >>= 7) bytes[n++] = static_cast<char>(v | 0x80);
    bytes[n++] = static_cast<char>(v);
    into_.append(bytes, n);
  }
  void tag(std::uint32_t number, wire_type type) { varint(number << 3 | static_cast<std::uint32_t>(type)); }
  template <class T>
  void fixed(T v) {
    static_assert(std::endian::native == std::endian::little);
    char bytes[sizeof(T)];
    std::memcpy(bytes, &v, sizeof(T));
    into_.append(bytes, sizeof(T));
  }
  void bytes(std::string_view v) {
    varint(v.size());
    into_.append(v);
  }
  /// What `write` writes, with its length in front. Most messages are short, so one byte is kept for it.
  template <class Write>
  void with_length(Write write) {
    const std::size_t at = into_.size();
    into_.push_back('\0');
    write();
    std::size_t length = into_.size() - at - 1;
    if (length < 0x80) {
      into_[at] = static_cast<char>(length);
      return;
    }
    char head[10];
    std::size_t n = 0;
    for (; length >= 0x80; length >>= 7) head[n++] = static_cast<char>(length | 0x80);
    head[n++] = static_cast<char>(length);
    into_.replace(at, 1, head, n);
  }
  [[nodiscard]] wire_refs* refs() const noexcept { return refs_; }

 private:
  std::string& into_;
  wire_refs* refs_;
};

/// Reads what others wrote, and trusts none of it. Throws wire_error.
class wire_reader {
 public:
  explicit wire_reader(std::string_view from, wire_refs* refs = nullptr) noexcept
      : at_{from.data()}, end_{from.data() + from.size()}, refs_{refs} {}

  [[nodiscard]] bool empty() const noexcept { return at_ == end_; }
  std::uint64_t varint() {
    std::uint64_t v = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      if (at_ == end_) wire_fails("it ends within a number");
      const auto byte = static_cast<std::uint8_t>(*at_++);
      if (shift == 63 && byte > 1) break;
      v |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return v;
    }
    wire_fails("a number has more than 64 bits");
  }
  template <class T>
  T fixed() {
    if (static_cast<std::size_t>(end_ - at_) < sizeof(T)) wire_fails("it ends within a number");
    T v;
    std::memcpy(&v, at_, sizeof(T));
    at_ += sizeof(T);
    return v;
  }
  std::string_view bytes() {
    const std::uint64_t length = varint();
    if (length > static_cast<std::size_t>(end_ - at_)) wire_fails("a length is beyond the end");
    const std::string_view v{at_, static_cast<std::size_t>(length)};
    at_ += length;
    return v;
  }
  /// All that is left.
  std::string_view rest() noexcept {
    const std::string_view v{at_, static_cast<std::size_t>(end_ - at_)};
    at_ = end_;
    return v;
  }
  struct field {
    std::uint32_t number;
    wire_type type;
  };
  field tag() {
    const std::uint64_t v = varint();
    const auto type = static_cast<std::uint8_t>(v & 7);
    if (v >> 3 == 0 || v >> 32 != 0) wire_fails("a field's number is out of range");
    if (type > 2 && type != 5) wire_fails("a field's wire type is unknown");
    return {static_cast<std::uint32_t>(v >> 3), static_cast<wire_type>(type)};
  }
  void skip(wire_type type) {
    switch (type) {
      case wire_type::varint: varint(); break;
      case wire_type::fixed64: fixed<std::uint64_t>(); break;
      case wire_type::bytes: bytes(); break;
      case wire_type::fixed32: fixed<std::uint32_t>(); break;
    }
  }
  void expect(wire_type is, wire_type wanted) {
    if (is != wanted) wire_fails("a field has another wire type than expected");
  }
  /// A reader of the bytes that come next, with the same bounds; `inside` reads them.
  template <class Inside>
  void with_length(Inside inside) {
    const std::string_view part = bytes();
    wire_reader r{part, refs_};
    r.depth_ = depth_ + 1;
    r.decoded_ = decoded_;
    if (r.depth_ > wire_limits::depth) wire_fails("messages are nested too deeply");
    inside(r);
    decoded_ = r.decoded_;
  }
  /// Another element of a container.
  void charge(std::size_t bytes) {
    decoded_ += bytes;
    if (decoded_ > wire_limits::decoded_bytes) wire_fails("it would take too much memory");
  }
  [[nodiscard]] wire_refs* refs() const noexcept { return refs_; }

 private:
  const char* at_;
  const char* end_;
  wire_refs* refs_;
  int depth_ = 0;
  std::size_t decoded_ = 0;
};

}  // namespace detail
}  // namespace ramie
