// What a client's requests share: connections that are kept, and how new ones are made.
//
//  P1 A connection of HTTP/1.1 belongs to one request at a time. It comes back when its response was read to the end.
//  P2 A connection of HTTP/2 is shared by all requests to its host. Where a host may speak it, one fiber connects, holding
//     the host's `connecting`, and the others wait for what comes of that; once a host has chosen HTTP/1.1 nobody waits.
//  P3 Through a proxy, "http" goes over connections to the proxy, whatever the host; "https" goes through a tunnel
//     (CONNECT) that is the host's own, as all goes through a proxy of SOCKS.
#pragma once

#include "client/cookies.hpp"
#include "client/proxies.hpp"
#include "client/retries.hpp"
#include "client/transfer.hpp"
#include "wire/url.hpp"
#include "wire/wire.hpp"

#include <ramie/http/client.hpp>
#include <ramie/sync.hpp>

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace ramie::http {

class h2_client;

struct client_pool : std::enable_shared_from_this<client_pool> {
  client_pool(const client_options& o, std::optional<tls::client_context> c);

  /// One connection, of either version.
  struct link {
    std::unique_ptr<wire> w;
    std::shared_ptr<h2_client> shared;
    bool is_kept = false;
  };
  /// A kept one, unless `fresh`, or a new one. Suspends. Throws io_error, timeout_error, `cancelled`.
  [[nodiscard]] link get(const url& to, const proxy* by, bool fresh);
  /// P1.
  void keep(const std::string& key, std::unique_ptr<wire> w) noexcept;
  /// Null: directly.
  [[nodiscard]] const proxy* proxy_for(const url& to) const { return proxies.find(to); }
  [[nodiscard]] static std::string key_of(const url& to, const proxy* by);

  const client_options options;
  const proxy_rules proxies;
  retry_budget budget;
  cookie_jar cookies;

 private:
  struct host {
    struct kept {
      std::unique_ptr<wire> w;
      std::chrono::steady_clock::time_point until;
    };
    std::vector<kept> idle;  // the oldest first
    std::shared_ptr<h2_client> shared;
    bool speaks_1 = false;
    counting_semaphore<1> connecting{1};
  };
  [[nodiscard]] std::shared_ptr<host> host_of(const std::string& key);
  [[nodiscard]] bool take_shared(host& h, link& into);
  [[nodiscard]] bool take_idle(host& h, link& into);
  /// Kept connections whose time is over, of all hosts. Once in `idle`.
  void close_old(std::chrono::steady_clock::time_point now);
  [[nodiscard]] link connect(host& h, const url& to, const proxy* by);
  [[nodiscard]] net::any_stream tunnel(net::any_stream through, const url& to, const proxy& by);
  [[nodiscard]] net::any_stream to_proxy(const url& to, const proxy& by);
  [[nodiscard]] tls::client_context context();
  [[nodiscard]] tls::client_context proxy_context();

  std::optional<tls::client_context> context_, proxy_context_;  // made at the first use
  mutex context_lock_;
  std::mutex lock_;  // of what follows; nobody suspends under it
  std::chrono::steady_clock::time_point look_again_;
  std::map<std::string, std::shared_ptr<host>> hosts_;
};

}  // namespace ramie::http
