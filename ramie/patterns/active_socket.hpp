// Actors that own message sockets and listeners: datagrams and connections come to the actor as messages, as the bytes
// of an active stream do (active.hpp). The protocol is in active.cpp.
//
//   class clock : public ramie::actor<clock> {
//    public:
//     explicit clock(const net::endpoint& at) : socket_{net::udp_socket{at}, self()} { socket_.activate(socket_.always); }
//     void on(const net::datagram& m) { socket_->send_to(m.from(), time_of_day()); }
//     void on(net::ended) { stop(); }
//
//    private:
//     net::active_socket<net::udp_socket> socket_;
//   };
#pragma once

#include <ramie/net/datagram.hpp>
#include <ramie/net/listener.hpp>
#include <ramie/net/select.hpp>
#include <ramie/patterns/active_note.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

namespace ramie::net {

/// Message to the owner of an active message socket: one message of a peer's, perhaps an empty one. The handler may
/// keep it.
class datagram {
 public:
  datagram(std::unique_ptr<std::byte[]> block, std::size_t size, bool truncated, const endpoint& sender,
           const void* by) noexcept
      : block_{std::move(block)},
        by_{by},
        sender_{sender},
        size_{static_cast<std::uint32_t>(size)},
        truncated_{truncated} {}
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {block_.get(), size_}; }
  [[nodiscard]] std::string_view text() const noexcept { return {reinterpret_cast<const char*>(block_.get()), size_}; }
  /// Its sender. Empty for a connected seqpacket socket.
  [[nodiscard]] const endpoint& from() const noexcept { return sender_; }
  /// It was longer than `piece`: the rest is lost.
  [[nodiscard]] bool is_truncated() const noexcept { return truncated_; }
  /// For actors with several: has it come by this socket? (By its place: one that was moved meanwhile is another.)
  [[nodiscard]] bool is_of(const detail::active_base& x) const noexcept { return by_ == &x; }

 private:
  std::unique_ptr<std::byte[]> block_;
  const void* by_;
  endpoint sender_;
  std::uint32_t size_;
  bool truncated_;
};

/// Message to the owner of an active listener: a connection, a tcp_stream or a unix_stream.
template <class Stream>
struct accepted {
  Stream stream;
  const void* from = nullptr;
  [[nodiscard]] bool is_of(const detail::active_base& x) const noexcept { return from == &x; }
};

namespace detail {

template <bool ends_at_empty>
taken take_datagram(active_note& n, std::error_code& why);
extern template taken take_datagram<false>(active_note& n, std::error_code& why);
extern template taken take_datagram<true>(active_note& n, std::error_code& why);

template <class A, class Socket>
inline constexpr active_type active_socket_type =
    active_type_of<A, datagram, &take_datagram<std::same_as<Socket, unix_seqpacket>>>();

taken take_connection(active_note& n, listener& from, handle& into, std::error_code& why);

/// An active listener but for its class.
template <class Listener>
class active_acceptor : public active_base {
 public:
  using stream_type = decltype(std::declval<Listener&>().accept());

  [[nodiscard]] Listener* operator->() noexcept { return &listener_; }
  [[nodiscard]] Listener& operator*() noexcept { return listener_; }

 protected:
  explicit active_acceptor(Listener l) noexcept : listener_{std::move(l)} {}
  active_acceptor(active_acceptor&&) noexcept = default;
  ~active_acceptor() = default;

  template <class A>
  void begin_accepting(const actor_ref<A>& owner) {
    begin(*owner.cell(), type_for<A>, socket_access::record(listener_), 1);
  }

  Listener listener_;

 private:
  static taken take(active_note& n, std::error_code& why) {
    auto& self = *static_cast<active_acceptor*>(n.owner);
    handle h;
    const taken what = take_connection(n, self.listener_, h, why);
    if (what == taken::piece)
      static_cast<note_of<accepted<stream_type>>&>(n).fill(socket_access::made_of(self.listener_, std::move(h)),
                                                           n.owner);
    return what;
  }
  template <class A>
  static constexpr active_type type_for = active_type_of<A, accepted<stream_type>, &take>();
};

}  // namespace detail

/// A message socket that its actor owns: a udp_socket, unix_datagram or unix_seqpacket. The actor has
/// on(net::datagram), on(net::ended) and, if it likes, on(net::paused) and on(net::receive_failed). A connected
/// seqpacket socket ends as a stream does; the others end when they are closed elsewhere. As with active_stream:
/// everything is for the actor's own handlers, constructor and destructor; one message at most is in the mailbox, and
/// what comes meanwhile waits in the kernel, which drops datagrams that find no room; and what comes counts as a
/// message.
template <std::derived_from<message_socket> Socket>
class active_socket : public detail::active_base {
 public:
  static constexpr std::uint32_t piece_default = 64 * 1024;  // no UDP message is longer

  /// Passive at first. `owner` is the actor's self(). `piece`: the longest message that comes whole, at least 1; a
  /// buffer of that size exists only while a message does. Throws invalid_argument, io_error with io_errc::closed,
  /// std::bad_alloc.
  template <class A>
  active_socket(Socket s, const actor_ref<A>& owner, std::uint32_t piece = piece_default) : socket_{std::move(s)} {
    static_assert(
        ramie::detail::handles_message<A, datagram> && ramie::detail::handles_message<A, ended>,
        "ramie: an actor that owns a message socket needs on(ramie::net::datagram) and on(ramie::net::ended)");
    begin(*owner.cell(), detail::active_socket_type<A, Socket>, detail::socket_access::record(socket_), piece);
  }
  active_socket(active_socket&&) noexcept = default;
  active_socket& operator=(active_socket&&) = delete;
  ~active_socket() { end(); }

  /// For send_to, send, connect and so on. Not for receiving while it is active.
  [[nodiscard]] Socket* operator->() noexcept { return &socket_; }
  [[nodiscard]] Socket& operator*() noexcept { return socket_; }

  /// Nothing comes from now on. That it has ended or paused may be in the mailbox already.
  void close() noexcept {
    end();
    socket_.close();
  }
  /// The socket, for a fiber say; nothing that arrived is lost, but what is in a message already.
  [[nodiscard]] Socket release() noexcept {
    end();
    return std::move(socket_);
  }

 private:
  Socket socket_;
};

/// A listener that its actor owns: a tcp_listener or unix_listener. The actor has on(net::accepted<net::tcp_stream>),
/// or of a unix_stream, on(net::ended) and, if it likes, on(net::paused). One connection at a time is a message: those
/// that the actor has not asked for wait in the kernel's backlog, which is how a server says that it has enough. In a
/// shortage (EMFILE and so on, as with tcp_listener::accept) the actor waits in its turn, 1 to 100 ms, and tries again
/// after the mail that came meanwhile. Otherwise as active_stream.
template <std::derived_from<listener> Listener>
class active_listener : public detail::active_acceptor<Listener> {
 public:
  /// Passive at first. `owner` is the actor's self(). Throws io_error with io_errc::closed, std::bad_alloc.
  template <class A>
  active_listener(Listener l, const actor_ref<A>& owner) : detail::active_acceptor<Listener>{std::move(l)} {
    static_assert(
        ramie::detail::handles_message<A, accepted<typename active_listener::stream_type>> &&
            ramie::detail::handles_message<A, ended>,
        "ramie: an actor that owns a listener needs on(ramie::net::accepted<ramie::net::tcp_stream>), or of a "
        "unix_stream, and on(ramie::net::ended)");
    this->begin_accepting(owner);
  }
  active_listener(active_listener&&) noexcept = default;
  active_listener& operator=(active_listener&&) = delete;
  ~active_listener() { this->end(); }

  /// Stops listening: connections in the backlog are refused. That it has ended or paused may be in the mailbox
  /// already.
  void close() noexcept {
    this->end();
    this->listener_.close();
  }
  /// The listener, for a fiber say. No connection is lost, but one that is in a message already.
  [[nodiscard]] Listener release() noexcept {
    this->end();
    return std::move(this->listener_);
  }
};

}  // namespace ramie::net
