// The stream over an engine.
//
//  T1 `lock` guards the engine. It is held for no wait and no system call, so a mutex, whose waits are not cancelled,
//     will do. `out` is the engine's, under the lock.
//  T2 What is in `out` is sent by the holder of `sending`, in the order in which it was encrypted: it takes all of
//     `out` into `under_way`, writes that, and looks again. If a write is cut short, the rest stays in `under_way`, and
//     the next holder goes on there: records are neither lost nor sent twice.
//  T3 A fiber that has added to `out` becomes the holder, or leaves it to the present one: a writer waits for
//     `sending`, since it owes its caller back-pressure; a reader (which answers key updates) only tries. If that fails,
//     the holder has not looked for the last time: it looks again after it has released `sending`.
#include "context.hpp"

#include <ramie/fiber.hpp>
#include <ramie/sync.hpp>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace ramie::tls {

namespace {

constexpr std::size_t record_most = 16 * 1024;  // of TLS
constexpr std::size_t out_most = 64 * 1024;     // encrypted before the first of it is sent; a guess

bool is_address(const std::string& host) {
  std::array<unsigned char, 16> parsed;
  return inet_pton(AF_INET, host.c_str(), parsed.data()) == 1 || inet_pton(AF_INET6, host.c_str(), parsed.data()) == 1;
}

/// The certificate has to be for `host`, and the server is told which one it is.
void expect_host(SSL* ssl, const std::string& host, bool verify) {
  if (is_address(host)) {
    if (verify && X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host.c_str()) != 1)
      throw_errors("TLS host " + host);
    return;
  }
  if (SSL_set_tlsext_host_name(ssl, host.c_str()) != 1) throw_errors("TLS host " + host);
  if (!verify) return;
  SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  if (SSL_set1_host(ssl, host.c_str()) != 1) throw_errors("TLS host " + host);
}

details details_of(SSL* ssl) {
  details d;
  d.spoken = SSL_version(ssl) == TLS1_3_VERSION ? version::tls_1_3 : version::tls_1_2;
  d.cipher = SSL_get_cipher_name(ssl);
  const unsigned char* name = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl, &name, &size);
  if (size != 0) d.alpn.assign(reinterpret_cast<const char*>(name), size);
  if (const char* asked = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name)) d.server_name = asked;
  d.resumed = SSL_session_reused(ssl) == 1;
  if (X509* peer = SSL_get0_peer_certificate(ssl)) {
    const owned<BIO, BIO_free_all> text{BIO_new(BIO_s_mem())};
    if (text != nullptr && X509_NAME_print_ex(text.get(), X509_get_subject_name(peer), 0, XN_FLAG_RFC2253) >= 0) {
      char* begin = nullptr;
      const long n = BIO_get_mem_data(text.get(), &begin);
      d.peer_subject.assign(begin, static_cast<std::size_t>(n));
    }
  }
  ERR_clear_error();
  return d;
}

}  // namespace

struct stream::state {
  state(net::any_stream over, SSL_CTX* context) : below{std::move(over)}, tls{context} {}

  void handshake(const std::source_location& where);
  void flush(bool owes_back_pressure, const std::source_location& where);
  void send_all(const std::source_location& where);
  [[nodiscard]] bool fill(const std::source_location& where);

  // Alive as long as `tls`.
  std::shared_ptr<const server_files> files;
  client_mark mark;

  net::any_stream below;
  mutex lock;
  engine tls;
  counting_semaphore<1> sending{1};
  std::string under_way;
  tls::details agreed;
};

void stream::state::send_all(const std::source_location& where) {
  for (;;) {
    if (under_way.empty()) {
      const std::lock_guard locked{lock};
      if (tls.out.empty()) return;
      std::swap(under_way, tls.out);
    }
    std::size_t sent = 0;
    try {
      below.write_all(under_way, &sent, where);
    } catch (...) {
      under_way.erase(0, sent);
      throw;
    }
    under_way.clear();
    if (under_way.capacity() > out_most) under_way.shrink_to_fit();
  }
}

void stream::state::flush(bool owes_back_pressure, const std::source_location& where) {
  for (;;) {
    if (owes_back_pressure) sending.acquire(where);
    else if (!sending.try_acquire()) return;
    try {
      send_all(where);
    } catch (...) {
      sending.release();
      throw;
    }
    sending.release();
    const std::lock_guard locked{lock};
    if (tls.out.empty()) return;
  }
}

/// Reads more of what the peer sent; false at the end. Nothing of it is lost if it throws.
bool stream::state::fill(const std::source_location& where) {
  const std::size_t n = below.read_some(tls.room(), where);
  const std::lock_guard locked{lock};
  tls.arrived(n);
  return n != 0;
}

void stream::state::handshake(const std::source_location& where) {
  for (;;) {
    engine::outcome o = engine::outcome::done;
    std::exception_ptr failure;
    try {
      o = tls.handshake();
    } catch (const net::io_error&) {
      failure = std::current_exception();
    }
    try {
      flush(true, where);  // also the alert that says why
    } catch (const net::io_error&) {
      if (!failure) throw;
    }
    if (failure) std::rethrow_exception(failure);
    if (o == engine::outcome::done) break;
    if (o == engine::outcome::ended) throw net::io_error{"TLS handshake", net::io_errc::unexpected_end};
    static_cast<void>(fill(where));  // at the end OpenSSL says what is missing
  }
  agreed = details_of(tls.ssl());
}

stream::stream() noexcept = default;
stream::stream(stream&&) noexcept = default;
stream& stream::operator=(stream&&) noexcept = default;
stream::~stream() = default;
stream::stream(std::unique_ptr<state> made) noexcept : state_{std::move(made)} {}

stream stream::accept(net::any_stream over, const server_context& context, std::source_location where) {
  const std::shared_ptr<const server_files> files = context.shared_->get();
  auto made = std::make_unique<state>(std::move(over), files->contexts.front().get());
  made->files = files;
  SSL_set_accept_state(made->tls.ssl());
  made->handshake(where);
  return stream{std::move(made)};
}

stream stream::connect(net::any_stream over, const client_context& context, std::string_view host,
                       std::source_location where) {
  const std::shared_ptr<client_context::shared>& shared = context.shared_;
  if (host.empty() || host.find('\0') != std::string_view::npos)
    throw invalid_argument{"ramie: tls: connect: host has to be a name or an address"};
  auto made = std::make_unique<state>(std::move(over), shared->context.get());
  made->mark = {shared, std::string{host}};
  SSL* ssl = made->tls.ssl();
  SSL_set_app_data(ssl, &made->mark);
  SSL_set_connect_state(ssl);
  ERR_clear_error();
  expect_host(ssl, made->mark.host, shared->options.verify);
  if (const auto earlier = shared->sessions.take(made->mark.host)) SSL_set_session(ssl, earlier.get());
  made->handshake(where);
  return stream{std::move(made)};
}

namespace {

template <class State>
State& opened(const std::unique_ptr<State>& s, const char* what) {
  if (s == nullptr) throw net::io_error{what, net::io_errc::closed};
  return *s;
}

}  // namespace

std::size_t stream::read_some(std::span<std::byte> into, std::source_location where) {
  state& s = opened(state_, "TLS read");
  if (into.empty()) return 0;
  for (;;) {
    std::size_t got = 0;
    engine::outcome o;
    bool must_send;
    {
      const std::lock_guard locked{s.lock};
      o = s.tls.read(into, got);
      must_send = !s.tls.out.empty();
    }
    try {
      if (must_send) s.flush(false, where);
    } catch (...) {
      if (o != engine::outcome::done) throw;  // else what was read would be lost; the next call finds it as well
    }
    if (o == engine::outcome::done) return got;
    if (o == engine::outcome::ended) return 0;
    static_cast<void>(s.fill(where));
  }
}

void stream::write_all(std::span<const iovec> pieces, std::size_t* written, std::source_location where) {
  state& s = opened(state_, "TLS write");
  std::size_t ignored = 0;
  std::size_t& done = written == nullptr ? ignored : *written;
  done = 0;
  this_fiber::throw_if_stopped();  // what is encrypted counts as written
  std::string joined;              // small pieces become one record
  std::size_t skip = 0;
  while (!pieces.empty()) {
    std::span<const std::byte> part{static_cast<const std::byte*>(pieces.front().iov_base) + skip,
                                    pieces.front().iov_len - skip};
    part = part.first(std::min(part.size(), record_most));
    skip += part.size();
    if (skip == pieces.front().iov_len) {
      pieces = pieces.subspan(1);
      skip = 0;
    }
    if (!joined.empty() || (!pieces.empty() && part.size() < record_most)) {
      joined.append(reinterpret_cast<const char*>(part.data()), part.size());
      if (joined.size() < record_most && !pieces.empty()) continue;
      part = std::as_bytes(std::span{joined});
    }
    bool full = false;
    while (!part.empty()) {
      const auto record = part.first(std::min(part.size(), record_most));
      const std::lock_guard locked{s.lock};
      s.tls.write(record);
      done += record.size();
      full = s.tls.out.size() >= out_most;
      part = part.subspan(record.size());
    }
    joined.clear();
    if (full || pieces.empty()) s.flush(true, where);
  }
}

void stream::write_all(std::span<const std::byte> from, std::size_t* written, std::source_location where) {
  const iovec piece{const_cast<std::byte*>(from.data()), from.size()};
  write_all(std::span{&piece, 1}, written, where);
}

void stream::write_all(std::string_view text, std::size_t* written, std::source_location where) {
  write_all(std::as_bytes(std::span{text}), written, where);
}

void stream::wait_readable(std::source_location where) {
  state& s = opened(state_, "TLS read");
  {
    const std::lock_guard locked{s.lock};
    if (s.tls.has_input()) return;
    s.tls.give_back_room();
  }
  // The only one who tries is the reader, that is this fiber, so nobody misses it meanwhile (T3).
  if (s.sending.try_acquire()) {
    if (s.under_way.empty() && s.under_way.capacity() > engine::kept_most) std::string{}.swap(s.under_way);
    s.sending.release();
  }
  s.below.wait_readable(where);
}

void stream::shutdown_write() {
  state& s = opened(state_, "TLS shutdown");
  {
    const std::lock_guard locked{s.lock};
    s.tls.shut_down();
  }
  s.flush(true, std::source_location::current());
}

void stream::close() noexcept {
  if (state_ != nullptr) state_->below.close();
}

const details& stream::details() const noexcept {
  static const tls::details none{};
  return state_ == nullptr ? none : state_->agreed;
}

}  // namespace ramie::tls
