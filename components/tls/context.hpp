// What contexts consist of.
#pragma once

#include "engine.hpp"

#include <list>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace ramie::tls {

/// As ALPN has it on the wire: each name behind a byte with its length. Throws invalid_argument.
[[nodiscard]] std::string alpn_on_wire(const std::vector<std::string>& names);

/// What a server's connections use until the next reload. Not changed once it is made.
struct server_files {
  explicit server_files(const server_options& options);
  void share_ticket_keys_of(const server_files& other);

  std::vector<owned_context> contexts;  // one a certificate; the first one's callback chooses among them
  std::string alpn;

 private:
  static int choose_certificate(SSL* ssl, int*, void* self) noexcept;
  static int choose_protocol(SSL*, const unsigned char** out, unsigned char* out_size, const unsigned char* in,
                             unsigned in_size, void* self) noexcept;
};

struct server_context::shared {
  server_options options;
  std::mutex lock;  // of `current`; nobody suspends under it
  std::shared_ptr<const server_files> current;

  [[nodiscard]] std::shared_ptr<const server_files> get() {
    const std::lock_guard locked{lock};
    return current;
  }
};

/// A session a host, the one used last in front. Called back by OpenSSL, so it locks a plain mutex and never suspends.
class session_store {
 public:
  explicit session_store(std::size_t most) : most_{most} {}
  void put(const std::string& host, SSL_SESSION* session) noexcept;  // takes ownership
  /// Of TLS 1.3 each is given once, as RFC 8446 (C.4) advises against linking connections.
  [[nodiscard]] owned<SSL_SESSION, SSL_SESSION_free> take(const std::string& host);

 private:
  using entry = std::pair<std::string, owned<SSL_SESSION, SSL_SESSION_free>>;
  std::size_t most_;
  std::mutex lock_;
  std::list<entry> entries_;
  std::map<std::string, std::list<entry>::iterator> of_host_;
};

struct client_context::shared {
  explicit shared(client_options o);
  client_options options;
  owned_context context;
  session_store sessions;

  static int keep_session(SSL* ssl, SSL_SESSION* session) noexcept;
};

/// What a client's SSL carries: whose session it is. The stream's state owns it.
struct client_mark {
  std::shared_ptr<client_context::shared> of;
  std::string host;
};

}  // namespace ramie::tls
