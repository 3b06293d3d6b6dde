// Any stream behind one type, for code that is compiled once: TLS, HTTP.
#pragma once

#include <ramie/net/stream.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <source_location>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

namespace ramie::net {

/// What any_stream needs of a stream in two directions: the calls of socket_stream.
template <class S>
concept duplex_stream = std::movable<S> && requires(S s, std::span<std::byte> into, std::span<const iovec> pieces,
                                                    std::size_t* written, std::source_location where) {
  { s.read_some(into, where) } -> std::same_as<std::size_t>;
  s.write_all(pieces, written, where);
  s.wait_readable(where);
  s.shutdown_write();
  s.close();
};

/// Owns a stream of any type, and passes every call on. Movable; of a moved-from or default-made one only `close`,
/// `holds_one`, `socket`, the destructor and assignment may be called.
class any_stream {
 public:
  any_stream() noexcept = default;
  // In this order: a constraint on copies of S must not ask about any_stream itself.
  template <class S>
    requires(!std::same_as<S, any_stream> && duplex_stream<S>)
  any_stream(S s) : held_{std::make_unique<of<S>>(std::move(s))} {}  // implicit: it is what every stream converts to

  /// Same as those of `stream`. Suspend. Throw what the stream throws.
  std::size_t read_some(std::span<std::byte> into, std::source_location where = std::source_location::current()) {
    return held_->read_some(into, where);
  }
  void write_all(std::span<const iovec> pieces, std::size_t* written = nullptr,
                 std::source_location where = std::source_location::current()) {
    held_->write_all(pieces, written, where);
  }
  void write_all(std::span<const std::byte> from, std::size_t* written = nullptr,
                 std::source_location where = std::source_location::current()) {
    const iovec piece{const_cast<std::byte*>(from.data()), from.size()};
    held_->write_all(std::span{&piece, 1}, written, where);
  }
  void write_all(std::string_view text, std::size_t* written = nullptr,
                 std::source_location where = std::source_location::current()) {
    write_all(std::as_bytes(std::span{text}), written, where);
  }
  void wait_readable(std::source_location where = std::source_location::current()) { held_->wait_readable(where); }
  /// Ends the write side. Suspends if the stream's own does, as that of TLS. Throws io_error.
  void shutdown_write() { held_->shutdown_write(); }
  /// Same as stream::close. Any thread.
  void close() noexcept {
    if (held_ != nullptr) held_->close();
  }
  [[nodiscard]] bool holds_one() const noexcept { return held_ != nullptr; }

  /// The socket that the bytes go to unchanged, for sendfile(2) and the like; null if there is none, as under TLS. The
  /// any_stream still owns it.
  [[nodiscard]] socket_stream* socket() noexcept { return held_ == nullptr ? nullptr : held_->socket(); }

 private:
  struct base {
    virtual ~base() = default;
    virtual std::size_t read_some(std::span<std::byte> into, const std::source_location& where) = 0;
    virtual void write_all(std::span<const iovec> pieces, std::size_t* written, const std::source_location& where) = 0;
    virtual void wait_readable(const std::source_location& where) = 0;
    virtual void shutdown_write() = 0;
    virtual void close() noexcept = 0;
    virtual socket_stream* socket() noexcept = 0;
  };
  template <class S>
  struct of final : base {
    explicit of(S from) : s{std::move(from)} {}
    std::size_t read_some(std::span<std::byte> into, const std::source_location& where) override {
      return s.read_some(into, where);
    }
    void write_all(std::span<const iovec> pieces, std::size_t* written, const std::source_location& where) override {
      s.write_all(pieces, written, where);
    }
    void wait_readable(const std::source_location& where) override { s.wait_readable(where); }
    void shutdown_write() override { s.shutdown_write(); }
    void close() noexcept override { s.close(); }
    socket_stream* socket() noexcept override {
      if constexpr (std::derived_from<S, socket_stream>) return &s;
      else return nullptr;
    }
    S s;
  };

  std::unique_ptr<base> held_;
};

}  // namespace ramie::net
