// What the tests of HTTP share: a server on a free port of this machine, and a client that says what it is told to.
#pragma once

#include "../tls/testing.hpp"

#include <ramie/http.hpp>
#include <ramie/net/testing.hpp>

#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace ramie::http {

inline net::tcp_listener on_any_port() { return net::tcp_listener{{"127.0.0.1", 0}}; }

/// Serves as long as it lives.
class served {
 public:
  explicit served(server& s) : server_{s}, fiber_{spawn([this] { server_.serve(listener_); })} {}
  served(server& s, const tls::server_context& c)
      : server_{s}, fiber_{spawn([this, c] { server_.serve(listener_, c); })} {}
  served(const served&) = delete;
  served& operator=(const served&) = delete;
  ~served() {
    server_.stop();
    try {
      fiber_.join();
    } catch (const std::exception& e) {
      ADD_FAILURE() << "the server has failed: " << e.what();
    }
  }
  [[nodiscard]] net::endpoint at() const { return listener_.local(); }
  [[nodiscard]] std::string port() const { return std::to_string(at().port()); }

 private:
  server& server_;
  net::tcp_listener listener_ = on_any_port();
  join_handle<void> fiber_;
};

/// Sends `text` and returns all that comes until the server ends the connection; "" if it just cuts it.
inline std::string ask(const net::endpoint& at, std::string_view text) {
  net::tcp_stream s = net::tcp_stream::connect(at);
  std::string all;
  try {
    s.write_all(text);
    s.shutdown_write();
    std::array<std::byte, 4096> part;
    while (const std::size_t n = s.read_some(part)) all += net::text_of(std::span{part}.first(n));
  } catch (const net::io_error&) {
    // It was reset; what came before counts.
  }
  return all;
}

inline std::string get(const std::string& target, const std::string& fields = {}) {
  return "GET " + target + " HTTP/1.1\r\nhost: localhost\r\n" + fields + "\r\n";
}

/// "HTTP/1.1 404 ..." as 404; 0 for no response.
inline int status_of(std::string_view response) {
  return response.size() < 12 || !response.starts_with("HTTP/1.1 ") ? 0 : std::stoi(std::string{response.substr(9, 3)});
}
inline std::string body_of(std::string_view response) {
  const std::size_t end = response.find("\r\n\r\n");
  return end == std::string_view::npos ? std::string{} : std::string{response.substr(end + 4)};
}
inline bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// A file of the project, or of its folder for tools; "" if it is not there. This program is in build/<preset>/bin.
inline std::string project_file(const std::string& name) {
  std::error_code ignored;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const std::filesystem::path found = own.parent_path().parent_path().parent_path().parent_path() / name;
  return std::filesystem::exists(found, ignored) ? found.string() : std::string{};
}

/// What a program of this machine prints; nullopt if there is none of that name.
inline std::optional<net::child_output> run_program(std::vector<std::string> arguments) {
  try {
    return net::run_child(std::move(arguments));
  } catch (const net::io_error& e) {
    if (e.code() == std::errc::no_such_file_or_directory) return std::nullopt;
    throw;
  }
}

/// Calls f(client, address, way) for both versions of HTTP, plain and encrypted, beside a server that `add` was given.
template <class Add, class F>
void each_way(Add add, F f) {
  const tls::certificates files;
  for (const std::string version : {"h2", "http/1.1"})
    for (const bool encrypted : {false, true})
      net::with_workers([&] {
        server s;
        add(s);
        const tls::server_context mine{{.certificates = {{files.chain(), files.key()}}, .alpn = server::protocols()}};
        std::optional<served> at;
        if (encrypted) at.emplace(s, mine);
        else at.emplace(s);
        client c{{.versions = version == "h2" && !encrypted ? http_versions::only_2 : http_versions{},
                  .proxies = proxy_options{}},
                 tls::client_context{{.roots = files.roots(), .alpn = {version}}}};
        f(c, (encrypted ? "https" : "http") + std::string{"://127.0.0.1:"} + at->port(),
          version + (encrypted ? " encrypted" : ""));
      });
}

}  // namespace ramie::http
