// Actors that own connections: what arrives comes to the actor as messages, so that a connection with nothing to say
// needs no fiber, no stack and no buffer. The protocol is in active.cpp.
//
//   class echo : public ramie::actor<echo> {
//    public:
//     explicit echo(net::tcp_stream s) : peer_{std::move(s), self()} { peer_.activate(); }
//     void on(net::received m) {
//       peer_->write_all(m.bytes());
//       peer_.activate();
//     }
//     void on(net::ended) { stop(); }
//
//    private:
//     net::active_stream<net::tcp_stream> peer_;
//   };
#pragma once

#include <ramie/net/pipe.hpp>
#include <ramie/net/select.hpp>
#include <ramie/net/stream.hpp>
#include <ramie/patterns/active_note.hpp>
#include <ramie/poll/system.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

namespace ramie::net {

/// Message to the owner of an active stream: the next bytes of it, at least one. The handler may keep them.
class received {
 public:
  received(std::unique_ptr<std::byte[]> block, std::size_t size, const void* from) noexcept
      : block_{std::move(block)}, size_{size}, from_{from} {}
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {block_.get(), size_}; }
  [[nodiscard]] std::string_view text() const noexcept { return {reinterpret_cast<const char*>(block_.get()), size_}; }
  /// For actors with several: is it of this stream? (By its place: one that was moved meanwhile is another.)
  [[nodiscard]] bool is_of(const detail::active_base& x) const noexcept { return from_ == &x; }

 private:
  std::unique_ptr<std::byte[]> block_;
  std::size_t size_;
  const void* from_;
};

namespace detail {

/// Reads once, without waiting, as a system call of system.hpp does.
using active_reader = system::result (*)(int fd, void* to, std::size_t size) noexcept;
taken take_bytes(active_note& n, std::error_code& why, active_reader read);

template <active_reader read>
taken take_bytes_by(active_note& n, std::error_code& why) {
  return take_bytes(n, why, read);
}
template <class A, active_reader read>
inline constexpr active_type active_type_for = active_type_of<A, received, &take_bytes_by<read>>();

/// A pipe's end is read by another system call than a socket.
template <class S>
inline constexpr active_reader reader_of = std::derived_from<S, socket_stream> ? &system::receive : &system::read;

}  // namespace detail

/// A stream that its actor owns, as a member most often. The actor has on(net::received), on(net::ended) and, if it
/// likes, on(net::paused). Everything here is for the actor's own handlers, constructor and destructor. A handler that
/// writes suspends while the peer takes nothing, and its actor handles nothing meanwhile. It counts as a message what
/// comes here: set_receive_timeout sees it.
template <std::derived_from<stream> S>
class active_stream : public detail::active_base {
 public:
  static constexpr std::uint32_t piece_default = 16 * 1024;  // of buffered_reader, too: a guess

  /// Passive at first. `owner` is the actor's self(). `piece`: the most bytes that come at once, at least 1; a buffer
  /// of that size exists only while a message does. Throws invalid_argument, io_error with io_errc::closed,
  /// std::bad_alloc.
  template <class A>
  active_stream(S s, const actor_ref<A>& owner, std::uint32_t piece = piece_default) : stream_{std::move(s)} {
    static_assert(ramie::detail::handles_message<A, received> && ramie::detail::handles_message<A, ended>,
                  "ramie: an actor that owns a stream needs on(ramie::net::received) and on(ramie::net::ended)");
    begin(*owner.cell(), detail::active_type_for<A, detail::reader_of<S>>, detail::socket_access::record(stream_),
          piece);
  }
  active_stream(active_stream&&) noexcept = default;
  active_stream& operator=(active_stream&&) = delete;
  ~active_stream() { end(); }

  /// For write_all, shutdown_write, peer and so on. Not for reading while it is active.
  [[nodiscard]] S* operator->() noexcept { return &stream_; }
  [[nodiscard]] S& operator*() noexcept { return stream_; }

  /// No piece comes from now on. That it has ended or paused may be in the mailbox already.
  void close() noexcept {
    end();
    stream_.close();
  }
  /// The stream, for a fiber say; nothing that arrived is lost, but what is in a message already.
  [[nodiscard]] S release() noexcept {
    end();
    return std::move(stream_);
  }

 private:
  S stream_;
};

}  // namespace ramie::net
