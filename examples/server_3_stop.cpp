// Step 3 of docs/tutorial_server.md: at SIGTERM no new client is let in, and those that are there may finish.
#include "server/client.hpp"

#include <ramie/ramie.hpp>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <span>

using namespace std::chrono_literals;

namespace {

void echo(net::tcp_stream connection) {
  std::array<std::byte, 4096> buffer;
  while (const std::size_t n = ramie::with_timeout(30s, [&] { return connection.read_some(buffer); }))
    ramie::with_timeout(10s, [&] { connection.write_all(std::span<const std::byte>{buffer}.first(n)); });
}

}  // namespace

int main() {
  return ramie::run([] {
    net::tcp_listener listener{{"127.0.0.1", 0}};
    net::signals stop{SIGINT, SIGTERM};
    auto server = ramie::spawn([&] { net::serve(listener, echo, {.stop_on = &stop, .drain = 100ms}); });

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
