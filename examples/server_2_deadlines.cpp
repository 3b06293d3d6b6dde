// Step 2 of docs/tutorial_server.md: a client that says nothing, or takes nothing, is cut off.
#include "server/client.hpp"

#include <ramie/ramie.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <span>

using namespace std::chrono_literals;

namespace {

struct limits {
  std::chrono::milliseconds idle = 30s;     // between two messages
  std::chrono::milliseconds write = 10s;    // until the client has taken an answer
  std::chrono::milliseconds whole = 10min;  // for a connection
};

void echo(net::tcp_stream& connection, const limits& limit) {
  std::array<std::byte, 4096> buffer;
  for (;;) {
    const std::size_t n = ramie::with_timeout(limit.idle, [&] { return connection.read_some(buffer); });
    if (n == 0) return;
    ramie::with_timeout(limit.write, [&] { connection.write_all(std::span<const std::byte>{buffer}.first(n)); });
  }
}

void serve(net::tcp_listener& listener, const limits& limit) {
  net::serve(listener,
             [&](net::tcp_stream connection) { ramie::with_timeout(limit.whole, [&] { echo(connection, limit); }); });
}

}  // namespace

int main() {
  return ramie::run([] {
    net::tcp_listener listener{{"127.0.0.1", 0}};
    const limits short_ones{.idle = 50ms};
    auto server = ramie::spawn([&] { serve(listener, short_ones); });

    client ann{"ann", listener.local()};
    ann.print_what_it_hears();  // says nothing, and waits for an answer

    server.request_stop();
  });
}
