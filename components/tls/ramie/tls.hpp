// TLS over any stream, by OpenSSL 3: servers and clients. An optional component, the library ramie::tls.
//
// Clients verify the server's certificate and name unless they are told not to. Failures are io_errors: of the stream
// below, or with a code of `tls::errc`; the message says what OpenSSL says, never a key or what was sent.
#pragma once

#include <ramie/net.hpp>

#include <cstddef>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace ramie::tls {

/// Why TLS failed.
enum class errc {
  protocol = 1,    // no common version or cipher, a broken record, an alert of the peer: see the message
  untrusted,       // the peer's certificate leads to no known root; it may be signed by itself
  expired,         // or not valid yet
  wrong_host,      // the certificate is for other names
  revoked,         // the CRL file says so
  no_certificate,  // a client was asked for one and has none
};
[[nodiscard]] std::error_code make_error_code(errc code) noexcept;

enum class version : unsigned char { tls_1_2, tls_1_3 };

/// Two files in PEM format: the certificate followed by those of its issuers, and its private key.
struct certificate_files {
  std::string chain, key;
};

struct server_options {
  std::vector<certificate_files> certificates{};  // a client gets the first that has the name it asks for, or the first
  std::vector<std::string> alpn{};                // protocols that are spoken, best first, as "h2", "http/1.1"
  std::string client_roots{};                     // if given, clients need a certificate of one of these authorities
  std::string crl{};                              // certificates that its issuers revoked; for those of clients
  version oldest = version::tls_1_2;
};

/// What all connections of a server share. Copies are cheap and mean the same. Any thread.
class server_context {
 public:
  /// Reads the files: blocks for some milliseconds on a plain thread, suspends in a fiber. Throws io_error that names
  /// the file, invalid_argument.
  explicit server_context(server_options options);
  /// Reads all files again. Connections that exist keep what they have; if this throws, everything is as before.
  /// Sessions from before can still be resumed. Suspends. Throws as the constructor does.
  void reload();

 private:
  friend class stream;
  struct shared;
  std::shared_ptr<shared> shared_;
};

struct client_options {
  bool verify = true;   // false accepts any certificate: for experiments
  std::string roots{};  // trusted authorities in PEM; if empty, the system's
  std::string crl{};    // certificates that its issuers revoked; then every issuer of a server needs one
  std::vector<certificate_files> identity{};  // none or one: what servers get that ask for it
  std::vector<std::string> alpn{};            // protocols that are spoken, best first
  version oldest = version::tls_1_2;
  std::size_t sessions_most = 1000;  // for resumption, one a host; a guess
};

/// What the connections of a client share, sessions to be resumed among them. Copies are cheap and mean the same. Any
/// thread.
class client_context {
 public:
  /// Same as server_context's. Reading the system's roots takes some ten milliseconds.
  explicit client_context(client_options options = {});

 private:
  friend class stream;
  friend struct client_mark;
  struct shared;
  std::shared_ptr<shared> shared_;
};

/// What was agreed in the handshake.
struct details {
  version spoken = version::tls_1_3;
  std::string cipher;
  std::string alpn;          // empty: none
  std::string server_name;   // what the client asked for; empty if it did not, or for an address
  std::string peer_subject;  // of its certificate, as "CN=example.org"; empty if it has none
  bool resumed = false;      // the session of an earlier connection
};

/// A connection. One fiber may read while another writes. Movable; a moved-from or default-made one is closed.
class stream {
 public:
  stream() noexcept;
  stream(stream&&) noexcept;
  stream& operator=(stream&&) noexcept;
  ~stream();

  /// Handshakes as the server, as the client; returns when it is done. `over` is any stream, and closed if this throws.
  /// `host`: the server's name or address, which its certificate has to have. A deadline is given by with_timeout.
  /// Suspends. Throws io_error, `cancelled`.
  [[nodiscard]] static stream accept(net::any_stream over, const server_context& context,
                                     std::source_location where = std::source_location::current());
  [[nodiscard]] static stream connect(net::any_stream over, const client_context& context, std::string_view host,
                                      std::source_location where = std::source_location::current());

  /// Same as net::stream's. An end without the peer's close_notify is io_errc::unexpected_end: somebody may have cut
  /// it. Suspends. Throws io_error, `cancelled`; nothing is lost by that.
  std::size_t read_some(std::span<std::byte> into, std::source_location where = std::source_location::current());
  /// Same as net::stream's. If this throws, `written` bytes have been encrypted, and what is left of them is sent by
  /// the next write, if there is one.
  void write_all(std::span<const iovec> pieces, std::size_t* written = nullptr,
                 std::source_location where = std::source_location::current());
  void write_all(std::span<const std::byte> from, std::size_t* written = nullptr,
                 std::source_location where = std::source_location::current());
  void write_all(std::string_view text, std::size_t* written = nullptr,
                 std::source_location where = std::source_location::current());
  /// Waits for bytes of the peer, without a buffer. They may be half a record: the next read may still wait.
  void wait_readable(std::source_location where = std::source_location::current());
  /// Sends the close_notify; reading still works. Suspends. Throws io_error, `cancelled`.
  void shutdown_write();
  /// Ends all calls under way with io_errc::closed, without a close_notify. Any thread.
  void close() noexcept;

  [[nodiscard]] const tls::details& details() const noexcept;

 private:
  struct state;
  explicit stream(std::unique_ptr<state> made) noexcept;
  std::unique_ptr<state> state_;
};

}  // namespace ramie::tls

template <>
struct std::is_error_code_enum<ramie::tls::errc> : std::true_type {};
