// A chat over TCP, whose handler may throw: that connection ends, the others go on, and the server is told why.
// `./run example chat_server PORT` serves until Ctrl-C; without a port it serves three clients of its own.
#include "server/client.hpp"
#include "server/room.hpp"

#include <ramie/ramie.hpp>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace {

/// "/repeat 3 hurray" is said three times, and ten times at most. What is no number is an exception of std::stoi, and
/// nobody here catches it.
std::string heard(std::string_view line) {
  if (!line.starts_with("/repeat ")) return std::string{line} + "\n";
  line.remove_prefix(8);
  const int times = std::min(std::stoi(std::string{line}), 10);
  std::string all;
  for (int i = 0; i < times; ++i) all += line.substr(line.find(' ') + 1);
  return all + "\n";
}

/// One fiber reads, another writes. When one of them fails, so does the other, and this call.
void talk(net::tcp_stream connection, room& lobby) {
  room::member me{lobby, connection, 16};
  ramie::in_scope([&](ramie::scope& s) {
    s.spawn([&] { me.send_lines(); });
    net::buffered_reader reader{connection, 1000};
    while (const auto line = reader.read_line()) lobby.say(heard(*line));
    me.leave();  // the writer sends what is left, and ends
  });
}

void tell(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& e) {
    std::printf("a connection has failed: %s\n", e.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  return ramie::run([&] {
    net::tcp_listener listener{{"127.0.0.1", argc > 1 ? std::atoi(argv[1]) : 0}};
    room lobby;
    ramie::event told;
    const auto failed = [&](const std::exception_ptr& failure) {
      tell(failure);
      told.set();
    };
    net::signals stop{SIGINT, SIGTERM};
    auto server = ramie::spawn([&] {
      net::serve(listener, [&](net::tcp_stream connection) { talk(std::move(connection), lobby); },
                 {.connections_most = 1000, .stop_on = &stop, .on_failure = failed});
    });
    if (argc > 1) {
      std::printf("nc 127.0.0.1 %d\n", listener.local().port());
      std::fflush(stdout);
      return server.join();
    }
    const auto wait_for_size = [&](std::size_t n) {
      while (lobby.size() != n) ramie::this_fiber::yield();
    };
    client ann{"ann", listener.local()}, bob{"bob", listener.local()}, cy{"cy", listener.local()};
    wait_for_size(3);
    ann.say("/repeat 3 hurray!");
    for (client* c : {&ann, &bob, &cy}) c->print_what_it_hears();
    bob.say("/repeat often hurray!");
    told.wait();
    bob.print_what_it_hears();
    wait_for_size(2);
    cy.say("what was that?");
    for (client* c : {&ann, &cy}) c->print_what_it_hears();
    server.request_stop();
  });
}
