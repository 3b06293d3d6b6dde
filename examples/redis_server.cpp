// A server that speaks the protocol of Redis, for redis-cli and redis-benchmark: GET, SET (EX, PX), DEL, EXPIRE, TTL,
// INCR, PUBLISH, SUBSCRIBE, UNSUBSCRIBE, PING, ECHO, QUIT. `example_redis_server PORT` serves this machine until Ctrl-C
// or SIGTERM; without a port it serves two clients of its own, so that there is something to see.
#include "redis/session.hpp"

#include <ramie/net.hpp>
#include <ramie/ramie.hpp>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

namespace net = ramie::net;
using namespace std::chrono_literals;

namespace {

/// Until the listener is closed, or a signal has come. Clients that are still there are then cut off.
void serve(net::tcp_listener& listener, net::signals& stop) {
  redis::database db;
  ramie::in_scope([&](ramie::scope& all) {
    all.spawn([&] {  // if it fails, so does the server
      for (;;) {
        ramie::this_fiber::sleep_for(100ms);
        db.keys.remove_expired();
      }
    });
    net::serve(listener, [&](net::tcp_stream connection) { redis::session{std::move(connection), db}.run(); },
               {.connections_most = 10'000, .stop_on = &stop, .drain = 0s});
    all.cancel();
  });
}

class client {
 public:
  explicit client(const net::endpoint& server) : connection_{net::tcp_stream::connect(server)} {}
  void say(std::string_view request) {
    std::printf("> %s\n", std::string{request}.c_str());
    connection_.write_all(std::string{request} + "\r\n");
  }
  void hear(int lines) {
    for (; lines > 0; --lines) std::printf("%s\n", std::string{reader_.read_line().value_or("(the end)")}.c_str());
  }

 private:
  net::tcp_stream connection_;
  net::buffered_reader<net::tcp_stream> reader_{connection_};
};

void show(const net::endpoint& server) {
  client one{server}, other{server};
  one.say("SET fruit plum");
  one.hear(1);
  one.say("GET fruit");
  one.hear(2);
  one.say("INCR visitors\r\nINCR visitors\r\nTTL visitors");
  one.hear(3);
  one.say("SUBSCRIBE news");
  one.hear(6);
  other.say("PUBLISH news ripe");
  other.hear(1);
  one.hear(7);
}

}  // namespace

int main(int argc, char** argv) {
  return ramie::run([&] {
    net::tcp_listener listener{{"127.0.0.1", static_cast<std::uint16_t>(argc > 1 ? std::atoi(argv[1]) : 0)}};
    net::signals stop{SIGINT, SIGTERM};
    ramie::in_scope([&](ramie::scope& all) {
      if (argc > 1) {
        std::printf("listening at %s; try: redis-cli -p %d\n", listener.local().to_string().c_str(),
                    listener.local().port());
        std::fflush(stdout);
      } else {
        all.spawn([&] {
          show(listener.local());
          listener.close();
        });
      }
      serve(listener, stop);
    });
  });
}
