#include "context.hpp"

#include <ramie/runtime.hpp>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <utility>

namespace ramie::tls {

namespace {

/// OpenSSL's own message says less about a file that is missing.
void check_readable(const std::string& path) {
  errno = 0;
  if (!std::ifstream{path}.is_open())
    throw net::io_error{"TLS: open " + path, {errno != 0 ? errno : ENOENT, std::system_category()}};
}

owned_context make_context(const SSL_METHOD* method, version oldest) {
  ERR_clear_error();
  owned_context made{SSL_CTX_new(method)};
  if (made == nullptr) throw_errors("TLS context");
  SSL_CTX_set_min_proto_version(made.get(), oldest == version::tls_1_3 ? TLS1_3_VERSION : TLS1_2_VERSION);
  // Without renegotiation calls that write never have to read (E3); without compression there is no CRIME.
  SSL_CTX_set_options(made.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(made.get(), SSL_MODE_RELEASE_BUFFERS);  // idle connections hold 34 KB less
  return made;
}

void use_certificate(SSL_CTX* c, const certificate_files& files) {
  check_readable(files.chain);
  check_readable(files.key);
  if (SSL_CTX_use_certificate_chain_file(c, files.chain.c_str()) != 1) throw_errors("TLS certificate " + files.chain);
  if (SSL_CTX_use_PrivateKey_file(c, files.key.c_str(), SSL_FILETYPE_PEM) != 1) throw_errors("TLS key " + files.key);
  if (SSL_CTX_check_private_key(c) != 1) throw_errors("TLS key " + files.key + " is not that of " + files.chain);
}

void use_revocations(SSL_CTX* c, const std::string& path) {
  if (path.empty()) return;
  check_readable(path);
  X509_STORE* store = SSL_CTX_get_cert_store(c);
  X509_LOOKUP* lookup = X509_STORE_add_lookup(store, X509_LOOKUP_file());
  if (lookup == nullptr || X509_load_crl_file(lookup, path.c_str(), X509_FILETYPE_PEM) < 1)
    throw_errors("TLS revocations " + path);
  X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK);
}

}  // namespace

std::string alpn_on_wire(const std::vector<std::string>& names) {
  std::string wire;
  for (const std::string& name : names) {
    if (name.empty() || name.size() > 255)
      throw invalid_argument{"ramie: tls: alpn: a name of " + std::to_string(name.size()) +
                             " bytes; 1 to 255 are possible"};
    wire += static_cast<char>(name.size());
    wire += name;
  }
  return wire;
}

// ---- servers -------------------------------------------------------------------------------------------------------

server_files::server_files(const server_options& options) : alpn{alpn_on_wire(options.alpn)} {
  static constexpr unsigned char id[] = "ramie";  // sessions of clients with certificates need one
  for (const certificate_files& files : options.certificates) {
    SSL_CTX* c = contexts.emplace_back(make_context(TLS_server_method(), options.oldest)).get();
    use_certificate(c, files);
    SSL_CTX_set_session_id_context(c, id, sizeof id - 1);
    if (!options.client_roots.empty()) {
      check_readable(options.client_roots);
      if (SSL_CTX_load_verify_file(c, options.client_roots.c_str()) != 1)
        throw_errors("TLS client_roots " + options.client_roots);
      SSL_CTX_set_client_CA_list(c, SSL_load_client_CA_file(options.client_roots.c_str()));
      SSL_CTX_set_verify(c, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
      use_revocations(c, options.crl);
    }
  }
  SSL_CTX* first = contexts.front().get();
  SSL_CTX_set_tlsext_servername_callback(first, &choose_certificate);
  SSL_CTX_set_tlsext_servername_arg(first, this);
  if (alpn.empty()) return;
  // The chosen certificate's is asked.
  for (const owned_context& c : contexts) SSL_CTX_set_alpn_select_cb(c.get(), &choose_protocol, this);
}

void server_files::share_ticket_keys_of(const server_files& other) {
  std::array<unsigned char, 80> keys;  // the only size that OpenSSL takes
  if (SSL_CTX_get_tlsext_ticket_keys(other.contexts.front().get(), keys.data(), keys.size()) == 1)
    SSL_CTX_set_tlsext_ticket_keys(contexts.front().get(), keys.data(), keys.size());
}

int server_files::choose_certificate(SSL* ssl, int*, void* self) noexcept {
  const auto& all = static_cast<server_files*>(self)->contexts;
  const char* name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  if (name == nullptr) return SSL_TLSEXT_ERR_NOACK;
  for (const owned_context& c : all)
    if (X509_check_host(SSL_CTX_get0_certificate(c.get()), name, 0, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS, nullptr) ==
        1) {
      if (c != all.front()) SSL_set_SSL_CTX(ssl, c.get());
      return SSL_TLSEXT_ERR_OK;
    }
  return SSL_TLSEXT_ERR_NOACK;
}

int server_files::choose_protocol(SSL*, const unsigned char** out, unsigned char* out_size, const unsigned char* in,
                                  unsigned in_size, void* self) noexcept {
  const std::string& ours = static_cast<server_files*>(self)->alpn;
  unsigned char* found = nullptr;
  const int how = SSL_select_next_proto(&found, out_size, reinterpret_cast<const unsigned char*>(ours.data()),
                                        static_cast<unsigned>(ours.size()), in, in_size);
  *out = found;
  return how == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

server_context::server_context(server_options options) : shared_{std::make_shared<shared>()} {
  if (options.certificates.empty())
    throw invalid_argument{"ramie: tls: server_options: certificates is empty; a server needs at least one"};
  if (!options.crl.empty() && options.client_roots.empty())
    throw invalid_argument{"ramie: tls: server_options: crl without client_roots: no certificate would be checked"};
  shared_->options = std::move(options);
  reload();
}

void server_context::reload() {
  // All of it on one thread, in one call: see E1 and E2 in engine.hpp.
  shared& s = *shared_;
  auto fresh = blocking([&s] { return std::make_shared<server_files>(s.options); });
  const std::shared_ptr<const server_files> before = s.get();
  if (before != nullptr) fresh->share_ticket_keys_of(*before);
  const std::lock_guard locked{s.lock};
  s.current = std::move(fresh);
}

// ---- clients -------------------------------------------------------------------------------------------------------

void session_store::put(const std::string& host, SSL_SESSION* session) noexcept {
  owned<SSL_SESSION, SSL_SESSION_free> kept{session};
  try {
    const std::lock_guard locked{lock_};
    if (const auto at = of_host_.find(host); at != of_host_.end()) {
      entries_.erase(at->second);
      of_host_.erase(at);
    }
    entries_.emplace_front(host, std::move(kept));
    of_host_[host] = entries_.begin();
    while (entries_.size() > most_) {
      of_host_.erase(entries_.back().first);
      entries_.pop_back();
    }
  } catch (const std::bad_alloc&) {
    // The next connection makes a full handshake.
  }
}

owned<SSL_SESSION, SSL_SESSION_free> session_store::take(const std::string& host) {
  const std::lock_guard locked{lock_};
  const auto at = of_host_.find(host);
  if (at == of_host_.end()) return nullptr;
  owned<SSL_SESSION, SSL_SESSION_free>& stored = at->second->second;
  if (SSL_SESSION_get_protocol_version(stored.get()) < TLS1_3_VERSION) {
    SSL_SESSION_up_ref(stored.get());
    return owned<SSL_SESSION, SSL_SESSION_free>{stored.get()};
  }
  owned<SSL_SESSION, SSL_SESSION_free> taken = std::move(stored);
  entries_.erase(at->second);
  of_host_.erase(at);
  return taken;
}

int client_context::shared::keep_session(SSL* ssl, SSL_SESSION* session) noexcept {
  const auto* mark = static_cast<const client_mark*>(SSL_get_app_data(ssl));
  if (mark == nullptr) return 0;
  mark->of->sessions.put(mark->host, session);
  return 1;
}

client_context::shared::shared(client_options o)
    : options{std::move(o)},
      context{make_context(TLS_client_method(), options.oldest)},
      sessions{options.sessions_most} {
  SSL_CTX* c = context.get();
  if (options.verify) {
    if (options.roots.empty()) {
      if (SSL_CTX_set_default_verify_paths(c) != 1) throw_errors("TLS: the system's roots");
    } else {
      check_readable(options.roots);
      if (SSL_CTX_load_verify_file(c, options.roots.c_str()) != 1) throw_errors("TLS roots " + options.roots);
    }
    use_revocations(c, options.crl);
    SSL_CTX_set_verify(c, SSL_VERIFY_PEER, nullptr);
  }
  if (!options.identity.empty()) use_certificate(c, options.identity.front());
  if (const std::string wire = alpn_on_wire(options.alpn); !wire.empty())
    SSL_CTX_set_alpn_protos(c, reinterpret_cast<const unsigned char*>(wire.data()), static_cast<unsigned>(wire.size()));
  SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(c, &keep_session);
}

client_context::client_context(client_options options) {
  if (options.identity.size() > 1)
    throw invalid_argument{"ramie: tls: client_options: identity has " + std::to_string(options.identity.size()) +
                           " entries; one is possible"};
  shared_ = blocking([&] { return std::make_shared<shared>(std::move(options)); });
}

}  // namespace ramie::tls
