#include "client/pool.hpp"

#include "client/h2.hpp"
#include "wire/text.hpp"

#include <ramie/runtime.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace ramie::http {

namespace {

constexpr std::size_t hosts_most = 1000;  // then those without a connection are forgotten; a guess

}  // namespace

client_pool::client_pool(const client_options& o, std::optional<tls::client_context> c)
    : options{o}, proxies{o.proxies ? *o.proxies : proxy_options::from_environment()}, context_{std::move(c)} {}

std::string client_pool::key_of(const url& to, const proxy* by) {
  std::string own = to.scheme + "://" + to.host + ":" + to.port;
  if (by == nullptr) return own;
  const std::string through = by->at.scheme + "://" + by->at.host + ":" + by->at.port;
  return to.scheme == "http" && !by->is_socks() ? "by " + through : own + " by " + through;
}

std::shared_ptr<client_pool::host> client_pool::host_of(const std::string& key) {
  const std::lock_guard locked{lock_};
  if (hosts_.size() >= hosts_most)
    std::erase_if(hosts_, [](const auto& one) {
      const std::shared_ptr<host>& h = one.second;
      return h.use_count() == 1 && h->idle.empty() && h->shared == nullptr;
    });
  std::shared_ptr<host>& h = hosts_[key];
  if (h == nullptr) h = std::make_shared<host>();
  return h;
}

bool client_pool::take_shared(host& h, link& into) {
  std::shared_ptr<h2_client> shared;
  {
    const std::lock_guard locked{lock_};
    shared = h.shared;
  }
  if (shared == nullptr) return false;
  // Without the lock: it has one of its own, for which a fiber may wait.
  if (shared->is_usable(std::chrono::steady_clock::now())) {
    into.shared = std::move(shared);
    into.is_kept = true;
    return true;
  }
  const std::lock_guard locked{lock_};
  if (h.shared == shared) h.shared.reset();
  return false;
}

void client_pool::close_old(std::chrono::steady_clock::time_point now) {
  std::vector<std::unique_ptr<wire>> old;  // closed without the lock
  const std::lock_guard locked{lock_};
  if (now < look_again_) return;
  look_again_ = now + options.idle;
  for (const auto& [key, h] : hosts_) {
    const auto first_young = std::find_if(h->idle.begin(), h->idle.end(), [&](const auto& k) { return k.until > now; });
    for (auto k = h->idle.begin(); k != first_young; ++k) old.push_back(std::move(k->w));
    h->idle.erase(h->idle.begin(), first_young);
  }
}

namespace {

/// Nothing has come since the last response: neither the end, nor what would pass for the next one's beginning. What
/// TLS has, as tickets, is not looked at.
bool is_silent(wire& w) noexcept {
  net::socket_stream* const s = w.stream.socket();
  if (s == nullptr) return true;
  try {
    std::array<std::byte, 1> any;
    return !s->try_read(any);
  } catch (const net::io_error&) {
    return false;
  }
}

}  // namespace

bool client_pool::take_idle(host& h, link& into) {
  for (;;) {
    std::unique_ptr<wire> w;
    std::vector<host::kept> old;  // closed without the lock
    {
      const std::lock_guard locked{lock_};
      if (h.idle.empty()) return false;
      if (h.idle.back().until <= std::chrono::steady_clock::now()) {
        old.swap(h.idle);  // the youngest is too old
        return false;
      }
      w = std::move(h.idle.back().w);
      h.idle.pop_back();
    }
    if (!is_silent(*w)) continue;
    into.w = std::move(w);
    into.is_kept = true;
    return true;
  }
}

void client_pool::keep(const std::string& key, std::unique_ptr<wire> w) noexcept {
  try {
    const std::lock_guard locked{lock_};
    const auto at = hosts_.find(key);
    if (at == hosts_.end() || at->second->idle.size() >= options.idle_most) return;
    at->second->idle.push_back({std::move(w), std::chrono::steady_clock::now() + options.idle});
  } catch (const std::bad_alloc&) {
    // It is closed.
  }
}

client_pool::link client_pool::get(const url& to, const proxy* by, bool fresh) {
  link l;
  close_old(std::chrono::steady_clock::now());
  const std::shared_ptr<host> h = host_of(key_of(to, by));
  if (!fresh && (take_shared(*h, l) || take_idle(*h, l))) return l;
  const auto connected = [&] { return with_timeout(options.connect_time, [&] { return connect(*h, to, by); }); };
  const auto may_be_2 = [&] {
    if (options.versions == http_versions::only_1) return false;
    if (to.scheme != "https" && options.versions != http_versions::only_2) return false;
    const std::lock_guard locked{lock_};
    return !h->speaks_1;
  };
  if (may_be_2()) {  // P2
    h->connecting.acquire();
    struct at_end {
      counting_semaphore<1>& s;
      ~at_end() { s.release(); }
    } const last{h->connecting};
    if (take_shared(*h, l)) return l;
    if (may_be_2()) return connected();
  }
  return connected();
}

/// P3.
net::any_stream client_pool::tunnel(net::any_stream through, const url& to, const proxy& by) {
  wire w{std::move(through), options.header_most, options.write_time};
  const std::string name = to.host.find(':') == std::string::npos ? to.host : "[" + to.host + "]",
                    at = name + ":" + to.port;
  std::string head = "CONNECT " + at + " HTTP/1.1\r\nhost: " + at + "\r\n";
  if (!by.authorization.empty()) head += "proxy-authorization: " + by.authorization + "\r\n";
  w.write(head + "\r\n");
  std::size_t end = 0;
  while ((end = w.input().find("\r\n\r\n")) == std::string_view::npos)
    if (w.fill(options.response_time) == 0) refuse_response("a proxy's head ends, or does not");
  const std::string_view line = w.input().substr(0, w.input().find("\r\n"));
  if (!line.starts_with("HTTP/1.") || line.size() < 12 || line[8] != ' ' || line[9] != '2')
    throw net::io_error{"HTTP proxy says \"" + std::string{line.substr(0, 80)} + "\"",
                        std::error_code{EPROTO, std::system_category()}};
  w.consume(end + 4);
  // The server of TLS does not speak first.
  if (!w.input().empty()) refuse_response("a proxy sent more than its head");
  return std::move(w.stream);
}

/// A stream that the host, or a proxy that is to ask it, is at the other end of.
net::any_stream client_pool::to_proxy(const url& to, const proxy& by) {
  net::any_stream s = connect_to(by.at);
  if (by.at.scheme == "https") {
    tls::stream encrypted = tls::stream::connect(std::move(s), proxy_context(), by.at.host);
    if (encrypted.details().alpn == "h2")
      refuse_response("the proxy was offered HTTP/2, which is not spoken to proxies");
    s = std::move(encrypted);
  }
  if (by.is_socks()) socks_connect(s, to.host, static_cast<std::uint16_t>(*parse_number(to.port)), by.login);
  else if (to.scheme == "https") s = tunnel(std::move(s), to, by);
  return s;
}

tls::client_context client_pool::context() {
  const std::lock_guard locked{context_lock_};
  if (!context_) {
    std::vector<std::string> alpn;
    if (options.versions != http_versions::only_1) alpn.emplace_back("h2");
    if (options.versions != http_versions::only_2) alpn.emplace_back("http/1.1");
    context_.emplace(tls::client_options{.alpn = std::move(alpn)});
  }
  return *context_;
}

tls::client_context client_pool::proxy_context() {
  if (options.proxies && options.proxies->context) return *options.proxies->context;
  const std::lock_guard locked{context_lock_};
  if (!proxy_context_) proxy_context_.emplace(tls::client_options{});
  return *proxy_context_;
}

client_pool::link client_pool::connect(host& h, const url& to, const proxy* by) {
  net::any_stream s = by == nullptr ? net::any_stream{connect_to(to)} : to_proxy(to, *by);
  bool is_2 = options.versions == http_versions::only_2 && (by == nullptr || by->is_socks() || to.scheme == "https");
  if (to.scheme == "https") {
    tls::stream encrypted = tls::stream::connect(std::move(s), context(), to.host);
    const bool agreed = encrypted.details().alpn == "h2";
    if (is_2 && !agreed) refuse_response("the server does not speak HTTP/2");
    is_2 = agreed;
    s = std::move(encrypted);
  }
  link l;
  l.w = std::make_unique<wire>(std::move(s), options.header_most, options.write_time);
  if (is_2) l.shared = std::make_shared<h2_client>(std::move(l.w), options);
  const std::lock_guard locked{lock_};
  h.speaks_1 = !is_2;
  if (is_2) h.shared = l.shared;
  return l;
}

}  // namespace ramie::http
