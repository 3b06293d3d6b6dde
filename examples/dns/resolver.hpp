// Asks name servers for addresses, by UDP with a time limit and retries, by TCP if an answer is too long for UDP.
#pragma once

#include "message.hpp"

#include <ramie/net.hpp>
#include <ramie/ramie.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dns {

namespace net = ramie::net;

struct no_answer : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class resolver {
 public:
  struct options {
    std::chrono::milliseconds timeout{1000};  // for an answer; twice as long in each later round
    int rounds = 3;                           // in each, all servers are asked in turn
  };

  explicit resolver(std::vector<net::endpoint> servers, const options& o) : servers_{std::move(servers)}, options_{o} {}

  /// IPv4 before IPv6; empty if there is no such name or it has no address. Suspends. Throws no_answer,
  /// std::invalid_argument, `cancelled`.
  [[nodiscard]] std::vector<std::string> look_up(const std::string& name) const {
    ramie::scope both;
    auto v4 = both.spawn([&] { return ask(name, kind::a); });
    auto v6 = both.spawn([&] { return ask(name, kind::aaaa); });
    both.join();
    std::vector<std::string> all = std::move(v4.get());
    all.insert(all.end(), v6.get().begin(), v6.get().end());
    return all;
  }

 private:
  [[nodiscard]] std::vector<std::string> ask(const std::string& name, kind k) const {
    std::string why = "there is no server";
    std::chrono::milliseconds timeout = options_.timeout;
    for (int round = 0; round < options_.rounds; ++round, timeout *= 2)
      for (const net::endpoint& server : servers_) {
        try {
          answer a = ramie::with_timeout(timeout, [&] { return ask_once(server, name, k); });
          if (a.code == 0 || a.code == 3) return std::move(a.addresses);
          why = server.to_string() + " answers with error " + std::to_string(a.code);
        } catch (const ramie::timeout_error&) {
          why = server.to_string() + " does not answer";
        } catch (const net::io_error& e) {
          why = e.what();  // "connection refused": nobody listens there
        } catch (const bad_message& e) {
          why = server.to_string() + ": " + e.what();
        }
      }
    throw no_answer{"cannot look up " + name + ": " + why};
  }

  /// Each question comes from a port of its own with a number of its own, so that nobody can guess what a false answer
  /// would have to look like. The socket is connected: the kernel drops what comes from elsewhere.
  [[nodiscard]] static answer ask_once(const net::endpoint& server, const std::string& name, kind k) {
    const auto id = static_cast<std::uint16_t>(std::random_device{}());
    const std::string asked = question(id, name, k);
    net::udp_socket socket{{server.family() == AF_INET ? "0.0.0.0" : "::", 0}};
    socket.connect(server);
    socket.send(std::as_bytes(std::span{asked}));
    for (std::array<char, 1500> buffer;;) {
      const std::size_t n = socket.receive(std::as_writable_bytes(std::span{buffer}));
      answer a;
      try {
        a = parse({buffer.data(), std::min(n, buffer.size())});
      } catch (const bad_message&) {
        continue;  // not from the server, or the server is broken: then it does not answer
      }
      if (!answers(a, id, asked)) continue;  // an answer to an earlier question, or a false one
      return a.truncated ? ask_by_tcp(server, id, asked) : a;
    }
  }

  [[nodiscard]] static answer ask_by_tcp(const net::endpoint& server, std::uint16_t id, const std::string& asked) {
    net::tcp_stream connection = net::tcp_stream::connect(server);
    std::string length;
    put16(length, static_cast<unsigned>(asked.size()));
    connection.write_all(length + asked);
    std::array<std::byte, 2> size{};
    if (!connection.read_exactly(size)) throw bad_message{"no answer by TCP"};
    std::string text(std::to_integer<std::size_t>(size[0]) << 8 | std::to_integer<std::size_t>(size[1]), '\0');
    if (!connection.read_exactly(std::as_writable_bytes(std::span{text}))) throw bad_message{"no answer by TCP"};
    answer a = parse(text);
    if (!answers(a, id, asked)) throw bad_message{"the answer to another question"};
    return a;
  }

  [[nodiscard]] static bool answers(const answer& a, std::uint16_t id, std::string_view asked) {
    constexpr std::size_t header = 12;
    return a.id == id && a.question == asked.substr(header);
  }

  std::vector<net::endpoint> servers_;
  options options_;
};

}  // namespace dns
