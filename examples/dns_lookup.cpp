// Looks up the addresses of a host by asking name servers: `example_dns_lookup NAME [SERVER...]`, where a server is an
// ADDRESS or ADDRESS:PORT; without any, those of /etc/resolv.conf. Without arguments it asks a server of its own, which
// does not answer the first questions, so that there is something to see. Exits with 1 if there is no address.
// (Programs that want what the system's own resolver says, with /etc/hosts and the like, call ramie::net::resolve.)
#include "dns/resolver.hpp"

#include <ramie/net.hpp>
#include <ramie/ramie.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace net = ramie::net;
using namespace std::chrono_literals;

namespace {

constexpr std::uint16_t dns_port = 53;

net::endpoint server_of(const std::string& text) {
  const auto colons = std::ranges::count(text, ':');
  const bool has_port = text.starts_with('[') || colons == 1;  // "::1" has none
  return has_port ? net::endpoint::parse(text) : net::endpoint{text, dns_port};
}

std::vector<net::endpoint> servers_of_the_system() {
  std::vector<net::endpoint> servers;
  std::ifstream file{"/etc/resolv.conf"};
  for (std::string word; file >> word;)
    if (word == "nameserver" && file >> word) servers.push_back(server_of(word));
  return servers;
}

/// Knows one name. Says nothing to the first two questions.
void serve(net::udp_socket& socket) {
  std::array<std::byte, 512> buffer;
  try {
    for (int count = 0;; ++count) {
      const auto [size, from, truncated] = socket.receive_from(buffer);
      if (count < 2 || size < 12) continue;
      std::string reply{reinterpret_cast<const char*>(buffer.data()), std::min(size, buffer.size())};
      const bool is_known = reply.substr(12).starts_with(std::string_view{"\4plum\5fruit\0\0\1", 14});
      reply[2] = '\x81', reply[3] = '\x80', reply[7] = is_known ? '\1' : '\0';
      if (is_known) reply += std::string_view{"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\xc0\0\2\1", 16};
      socket.send_to(from, std::as_bytes(std::span{reply}));
    }
  } catch (const net::io_error&) {
    // closed
  }
}

void show() {
  net::udp_socket socket{{"127.0.0.1", 0}};
  auto server = ramie::spawn([&] { serve(socket); });
  const dns::resolver resolver{{socket.local()}, {.timeout = 50ms, .rounds = 8}};
  for (const std::string& address : resolver.look_up("plum.fruit")) std::printf("%s\n", address.c_str());
  std::printf("%zu addresses of plum.vegetable\n", resolver.look_up("plum.vegetable").size());
  socket.close();
  server.join();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 1) return ramie::run(show);
  return ramie::run([&] {
    std::vector<net::endpoint> servers;
    for (int i = 2; i < argc; ++i) servers.push_back(server_of(argv[i]));
    if (servers.empty()) servers = servers_of_the_system();
    try {
      const std::vector<std::string> found = dns::resolver{servers, {}}.look_up(argv[1]);
      for (const std::string& address : found) std::printf("%s\n", address.c_str());
      if (found.empty()) std::fprintf(stderr, "%s has no address\n", argv[1]);
      return found.empty() ? 1 : 0;
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s\n", e.what());
      return 1;
    }
  });
}
