// Step 3 of docs/tutorial_server.md: at SIGTERM no new client is let in, and those that are there may finish.
#include "server/client.hpp"

#include <ramie/ramie.hpp>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <span>
#include <utility>

using namespace std::chrono_literals;

namespace {

void echo(net::tcp_stream connection) {
  std::array<std::byte, 4096> buffer;
  while (const std::size_t n = ramie::with_timeout(30s, [&] { return connection.read_some(buffer); }))
    ramie::with_timeout(10s, [&] { connection.write_all(std::span<const std::byte>{buffer}.first(n)); });
}

/// Returns when the listener has been closed and all clients have left.
void serve(net::tcp_listener& listener) {
  ramie::scope connections;
  try {
    for (;;)
      connections.spawn([connection = listener.accept()]() mutable {
        try {
          echo(std::move(connection));
        } catch (const ramie::error&) {
          // The client is gone, or was too slow.
        }
      });
  } catch (const net::io_error&) {
    // The listener was closed.
  }
  connections.join();
}

void run_until_stopped(net::tcp_listener& listener, std::chrono::milliseconds grace) {
  net::signals stop{SIGINT, SIGTERM};
  auto server = ramie::spawn([&] { serve(listener); });
  stop.wait();
  listener.close();
  if (!server.join_for(grace)) server.request_stop();  // from now on each wait of the rest throws `cancelled`
}

}  // namespace

int main() {
  return ramie::run([] {
    net::tcp_listener listener{{"127.0.0.1", 0}};
    auto server = ramie::spawn([&] { run_until_stopped(listener, 100ms); });

    client ann{"ann", listener.local()}, bob{"bob", listener.local()};
    ann.say("one");
    ann.print_what_it_hears();
    bob.say("two");
    bob.print_what_it_hears();
    std::raise(SIGTERM);
    ann.leave();
    bob.print_what_it_hears();  // stays longer than it may
    server.join();
    std::printf("the server has ended\n");
  });
}
