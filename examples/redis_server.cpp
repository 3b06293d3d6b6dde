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

/// Until the listener is closed. Clients that are still there are then cut off.
void serve(net::tcp_listener& listener) {
  redis::database db;
  ramie::counting_semaphore<> room{10'000};  // when there is none, clients wait in the listener's backlog
  ramie::scope fibers;
  fibers.spawn([&] {
    for (;;) {
      ramie::this_fiber::sleep_for(100ms);
      db.keys.remove_expired();
    }
  });
  try {
    for (;;) {
      room.acquire();
      fibers.spawn([&, connection = listener.accept()]() mutable {
        try {
          redis::session{std::move(connection), db}.run();
        } catch (const net::io_error&) {
          // The client is gone. The others are not affected.
        }
        room.release();
      });
    }
  } catch (const net::io_error&) {
    // The listener was closed.
  }
  fibers.cancel();
  fibers.join();
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
    auto server = ramie::spawn([&] { serve(listener); });
    if (argc > 1) {
      net::signals stop{SIGINT, SIGTERM};
      std::printf("listening at %s; try: redis-cli -p %d\n", listener.local().to_string().c_str(),
                  listener.local().port());
      std::fflush(stdout);
      stop.wait();
    } else {
      show(listener.local());
    }
    listener.close();
    server.join();
  });
}
