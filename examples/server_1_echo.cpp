// Step 1 of docs/tutorial_server.md: a server that sends back what it gets.
#include "server/client.hpp"

#include <ramie/ramie.hpp>

#include <array>
#include <cstddef>
#include <span>

namespace {

void echo(net::tcp_stream connection) {
  std::array<std::byte, 4096> buffer;
  while (const std::size_t n = connection.read_some(buffer))
    connection.write_all(std::span<const std::byte>{buffer}.first(n));
}

}  // namespace

int main() {
  return ramie::run([] {
    net::tcp_listener listener{{"127.0.0.1", 0}};  // port 0: any that is free
    auto server = ramie::spawn([&] { net::serve(listener, echo); });

    client ann{"ann", listener.local()}, bob{"bob", listener.local()};
    bob.say("hello");
    ann.say("good morning");
    ann.print_what_it_hears();
    bob.print_what_it_hears();

    server.request_stop();
  });
}
