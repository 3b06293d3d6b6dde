// Step 5 of docs/tutorial_server.md: how much there may be of everything.
#include "server/client.hpp"

#include <ramie/ramie.hpp>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>

using namespace std::chrono_literals;

namespace {

struct limits {
  std::size_t connections = 10'000;
  std::size_t line_bytes = 1000;
  std::chrono::milliseconds idle = 30s;
};

void echo_lines(net::tcp_stream& connection, const limits& limit) {
  net::buffered_reader reader{connection, limit.line_bytes};
  try {
    while (const auto line = ramie::with_timeout(limit.idle, [&] { return reader.read_line(); }))
      connection.write_all(std::string{*line} + "\n");
  } catch (const net::io_error& e) {
    if (e.code() != net::io_errc::too_long) throw;
    connection.write_all("a line has at most " + std::to_string(limit.line_bytes) + " bytes\n");
  }
}

void serve(net::tcp_listener& listener, const limits& limit) {
  net::serve(listener, [&](net::tcp_stream connection) { echo_lines(connection, limit); },
             {.connections_most = limit.connections});
}

}  // namespace

int main() {
  return ramie::run([] {
    net::tcp_listener listener{{"127.0.0.1", 0}};
    const limits few{.connections = 2, .line_bytes = 20};
    auto server = ramie::spawn([&] { serve(listener, few); });

    client ann{"ann", listener.local()}, bob{"bob", listener.local()};
    ann.say("hello");
    ann.print_what_it_hears();
    bob.say("hello");
    bob.print_what_it_hears();

    client carl{"carl", listener.local()};  // connected by the kernel, and not yet accepted
    carl.say("is anybody there?");
    ann.say("a line of more than 20 bytes");
    ann.print_what_it_hears();
    ann.print_what_it_hears();
    carl.print_what_it_hears();

    server.request_stop();
  });
}
