#include "engine.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/x509_vfy.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace ramie::tls {

namespace {

constexpr std::size_t room_size = 17 * 1024;  // a whole record fits: of at most 16 KiB + 256 + 5 bytes in TLS 1.3

class category final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "ramie::tls"; }
  [[nodiscard]] std::string message(int code) const override {
    switch (static_cast<errc>(code)) {
      case errc::protocol: return "TLS failed";
      case errc::untrusted: return "the peer's certificate is not trusted";
      case errc::expired: return "the peer's certificate has expired, or is not valid yet";
      case errc::wrong_host: return "the peer's certificate is for another host";
      case errc::revoked: return "the peer's certificate has been revoked";
      case errc::no_certificate: return "the peer has no certificate";
    }
    return "unknown";
  }
};

errc meaning_of(long verification) noexcept {
  switch (verification) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID: return errc::expired;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH: return errc::wrong_host;
    case X509_V_ERR_CERT_REVOKED: return errc::revoked;
    default: return errc::untrusted;
  }
}

}  // namespace

std::error_code make_error_code(errc code) noexcept {
  static const category one;
  return {static_cast<int>(code), one};
}

std::string drain_errors() {
  std::string text;
  while (const unsigned long e = ERR_get_error()) {
    const char* reason = ERR_reason_error_string(e);
    if (!text.empty()) text += "; ";
    text += reason != nullptr ? std::string{reason} : "error " + std::to_string(e);
  }
  return text;
}

void throw_errors(const std::string& what) {
  const std::string text = drain_errors();
  throw net::io_error{text.empty() ? what : what + ": " + text, errc::protocol};
}

// ---- the BIO -------------------------------------------------------------------------------------------------------

struct engine_bio {
  static engine& of(BIO* b) noexcept { return *static_cast<engine*>(BIO_get_data(b)); }

  static int read(BIO* b, char* into, int size) noexcept {
    engine& e = of(b);
    BIO_clear_retry_flags(b);
    const std::size_t n = std::min(static_cast<std::size_t>(size), e.in_end_ - e.in_begin_);
    if (n == 0) {
      if (e.peer_ended_) return 0;
      BIO_set_retry_read(b);
      return -1;
    }
    std::memcpy(into, e.in_.get() + e.in_begin_, n);
    e.in_begin_ += n;
    return static_cast<int>(n);
  }
  static int write(BIO* b, const char* from, int size) noexcept {
    try {
      of(b).out.append(from, static_cast<std::size_t>(size));
      return size;
    } catch (const std::bad_alloc&) {
      return -1;
    }
  }
  static long control(BIO* b, int what, long, void*) noexcept {
    if (what == BIO_CTRL_FLUSH) return 1;
    if (what == BIO_CTRL_EOF) return of(b).peer_ended_ ? 1 : 0;
    return 0;
  }
  static BIO_METHOD* method() {
    static BIO_METHOD* const made = [] {
      BIO_METHOD* m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "ramie");
      if (m == nullptr) throw std::bad_alloc{};
      BIO_meth_set_read(m, &read);
      BIO_meth_set_write(m, &write);
      BIO_meth_set_ctrl(m, &control);
      return m;
    }();
    return made;
  }
};

// ---- the engine ----------------------------------------------------------------------------------------------------

engine::engine(SSL_CTX* context) {
  ERR_clear_error();
  BIO* b = BIO_new(engine_bio::method());
  ssl_ = b == nullptr ? nullptr : SSL_new(context);
  if (ssl_ == nullptr) {
    BIO_free(b);
    throw_errors("TLS: no connection could be made");
  }
  BIO_set_data(b, this);
  BIO_set_init(b, 1);
  SSL_set_bio(ssl_, b, b);
}

engine::~engine() {
  // Otherwise SSL_free forbids to resume a session whose connection was not shut down, as TLS 1.0 had it.
  if (SSL_is_init_finished(ssl_) == 1) SSL_set_shutdown(ssl_, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
  SSL_free(ssl_);
}

engine::outcome engine::judge(int result, const char* what) {
  if (result == 1) return outcome::done;
  switch (SSL_get_error(ssl_, result)) {
    case SSL_ERROR_WANT_READ: return outcome::needs_input;
    case SSL_ERROR_ZERO_RETURN: return outcome::ended;
    default: break;
  }
  if (peer_ended_ && in_begin_ == in_end_) {
    static_cast<void>(drain_errors());
    throw net::io_error{what, net::io_errc::unexpected_end};
  }
  const long verification = SSL_get_verify_result(ssl_);
  if (verification != X509_V_OK && SSL_is_init_finished(ssl_) == 0 && SSL_get_verify_mode(ssl_) != SSL_VERIFY_NONE) {
    static_cast<void>(drain_errors());
    throw net::io_error{std::string{what} + ": " + X509_verify_cert_error_string(verification),
                        meaning_of(verification)};
  }
  const unsigned long last = ERR_peek_last_error();
  if (ERR_GET_LIB(last) == ERR_LIB_SSL && ERR_GET_REASON(last) == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) {
    static_cast<void>(drain_errors());
    throw net::io_error{what, errc::no_certificate};
  }
  throw_errors(what);
}

engine::outcome engine::handshake() {
  ERR_clear_error();
  return judge(SSL_do_handshake(ssl_), "TLS handshake");
}

engine::outcome engine::read(std::span<std::byte> into, std::size_t& got) {
  ERR_clear_error();
  got = 0;
  return judge(SSL_read_ex(ssl_, into.data(), into.size(), &got), "TLS read");
}

void engine::write(std::span<const std::byte> from) {
  ERR_clear_error();
  std::size_t taken = 0;
  if (judge(SSL_write_ex(ssl_, from.data(), from.size(), &taken), "TLS write") != outcome::done || taken != from.size())
    throw net::io_error{"TLS write", errc::protocol};
}

void engine::shut_down() {
  ERR_clear_error();
  // 0: sent, and the peer's has not come yet.
  if (SSL_shutdown(ssl_) < 0) throw_errors("TLS shutdown");
}

std::span<std::byte> engine::room() {
  if (in_ == nullptr) in_.reset(new std::byte[room_size]);
  return {in_.get(), room_size};
}

void engine::arrived(std::size_t n) noexcept {
  if (n == 0) peer_ended_ = true;
  in_begin_ = 0;
  in_end_ = n;
}

void engine::give_back_room() noexcept {
  if (in_begin_ == in_end_) in_.reset();
  if (out.empty() && out.capacity() > kept_most) std::string{}.swap(out);
}

}  // namespace ramie::tls
