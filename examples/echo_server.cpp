// An echo server that stops gracefully at Ctrl-C or SIGTERM: it accepts no more connections, lets open ones end
// for up to ten seconds, and then cuts them off. `example_echo_server PORT` serves this machine until then; without a
// port it serves one client of its own, so that there is something to see.
#include <ramie/net.hpp>
#include <ramie/ramie.hpp>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>

namespace net = ramie::net;
using namespace std::chrono_literals;

namespace {

void echo(net::tcp_stream connection) {
  std::array<std::byte, 4096> buffer;
  while (const std::size_t n = connection.read_some(buffer))
    connection.write_all(std::span<const std::byte>{buffer}.first(n));
}

void be_a_client(const net::endpoint& server) {
  net::tcp_stream connection = net::tcp_stream::connect(server);
  net::buffered_reader reader{connection};
  for (const char* line : {"hello", "is anybody there?", "goodbye"}) {
    connection.write_all(std::string{line} + "\n");
    std::printf("%s\n", std::string{reader.read_line().value_or("nothing came back")}.c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  return ramie::run([&] {
    net::tcp_listener listener{{"127.0.0.1", static_cast<std::uint16_t>(argc > 1 ? std::atoi(argv[1]) : 0)}};
    net::signals stop{SIGINT, SIGTERM};
    ramie::in_scope([&](ramie::scope& all) {
      if (argc > 1) {
        std::printf("listening at %s\n", listener.local().to_string().c_str());
        std::fflush(stdout);
      } else {
        all.spawn([&] {
          be_a_client(listener.local());
          listener.close();
        });
      }
      net::serve(listener, echo, {.stop_on = &stop, .drain = 10s});
    });
  });
}
