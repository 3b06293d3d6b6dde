// Step 4 of docs/tutorial_server.md: each member hears what any of them says, and none waits for a deaf one.
#include "server/client.hpp"
#include "server/room.hpp"

#include <ramie/ramie.hpp>

#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace {

/// One fiber reads, another writes. When either has ended, so does the other.
void talk(net::tcp_stream connection, room& r) {
  room::member me{r, connection, 16};
  ramie::scope both;
  both.spawn([&] {
    try {
      me.send_lines();
    } catch (const net::io_error&) {
      connection.close();  // the reader then fails, too
    }
  });
  try {
    net::buffered_reader reader{connection};
    while (const std::optional<std::string_view> line = reader.read_line()) r.say(std::string{*line} + "\n");
  } catch (const net::io_error&) {
    // The client is gone, or was cut off.
  }
  me.leave();  // the writer sends what is left, and ends
  both.join();
}

}  // namespace

int main() {
  return ramie::run([] {
    net::tcp_listener listener{{"127.0.0.1", 0}};
    room lobby;
    auto server = ramie::spawn(
        [&] { net::serve(listener, [&](net::tcp_stream connection) { talk(std::move(connection), lobby); }); });
    const auto wait_for_size = [&](std::size_t n) {
      while (lobby.size() != n) ramie::this_fiber::yield();
    };

    client ann{"ann", listener.local()}, bob{"bob", listener.local()}, sleeper{"sleeper", listener.local()};
    wait_for_size(3);
    ann.say("good morning");
    ann.print_what_it_hears();
    bob.print_what_it_hears();

    // The sleeper hears nothing. Once the kernel's buffers and its 16 lines are full, it has to go.
    const std::string long_line(10'000, 'z');
    while (lobby.size() == 3) {
      bob.say(long_line);
      ann.hear();
      bob.hear();
    }
    bob.say("good night");
    ann.print_what_it_hears();
    std::printf("%zu are left\n", lobby.size());

    server.request_stop();
  });
}
