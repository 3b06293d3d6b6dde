// A TCP proxy: `example_proxy PORT HOST:PORT [IDLE_MS]` takes connections to PORT of this machine and passes them on to
// HOST:PORT, until Ctrl-C or SIGTERM. The end of one direction is passed on while the other goes on (half-close). A
// connection ends when nothing has moved, in either direction, for IDLE_MS (a minute), or when a side takes nothing for
// that long. Without arguments it stands between a client and a server of its own, so that there is something to see.
#include <ramie/net.hpp>
#include <ramie/ramie.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
#include <string>
#include <utility>

namespace net = ramie::net;
using namespace std::chrono_literals;

namespace {

using clock_type = std::chrono::steady_clock;

struct target {
  std::string host, service;
  std::chrono::milliseconds idle = 60s;
};

/// Two connections as one: what comes from either goes to the other.
class tunnel {
 public:
  tunnel(net::tcp_stream client, net::tcp_stream server, std::chrono::milliseconds idle)
      : client_{std::move(client)}, server_{std::move(server)}, idle_{idle} {}

  /// Returns when both directions have ended. Throws io_error, timeout_error.
  void run() {
    ramie::scope both;  // if one direction fails, the other is stopped
    both.spawn([this] { pass(client_, server_); });
    both.spawn([this] { pass(server_, client_); });
    both.join();
  }

 private:
  void pass(net::tcp_stream& from, net::tcp_stream& to) {
    std::array<std::byte, 16 * 1024> buffer;
    while (const std::size_t n = read_in_time(from, buffer)) {
      ramie::with_timeout(idle_, [&] { to.write_all(std::span<const std::byte>{buffer}.first(n)); });
      moved_at_ = clock_type::now();
    }
    to.shutdown_write();
  }

  /// Waits as long as something moves somewhere: during a download the client may be silent.
  std::size_t read_in_time(net::tcp_stream& from, std::span<std::byte> into) {
    for (;;) {
      const clock_type::time_point deadline = moved_at_.load() + idle_;
      try {
        return ramie::with_deadline(deadline, [&] { return from.read_some(into); });
      } catch (const ramie::timeout_error&) {
        if (moved_at_.load() + idle_ <= deadline) throw;
      }
    }
  }

  net::tcp_stream client_, server_;
  std::chrono::milliseconds idle_;
  std::atomic<clock_type::time_point> moved_at_ = clock_type::now();
};

/// The first address that answers, each within two seconds.
net::tcp_stream connect(const target& to) {
  std::string why = "it has no address";
  for (const net::endpoint& at : net::resolve(to.host, to.service)) {
    try {
      return ramie::with_timeout(2s, [&] { return net::tcp_stream::connect(at); });
    } catch (const net::io_error& e) {
      why = e.what();
    } catch (const ramie::timeout_error&) {
      why = "no answer from " + at.to_string();
    }
  }
  throw ramie::error{"cannot connect to " + to.host + ": " + why};
}

/// Until the listener is closed, or a signal has come, and all connections have ended.
void serve(net::tcp_listener& listener, const target& to, net::signals* stop = nullptr) {
  net::serve(listener,
             [&](net::tcp_stream client) {
               net::tcp_stream server = connect(to);
               tunnel{std::move(client), std::move(server), to.idle}.run();
             },
             {.stop_on = stop, .on_failure = [](const std::exception_ptr& why) {
                try {
                  std::rethrow_exception(why);
                } catch (const std::exception& e) {
                  std::fprintf(stderr, "proxy: a connection ends: %s\n", e.what());
                }
              }});
}

void show() {
  net::tcp_listener counter{{"127.0.0.1", 0}}, proxy{{"127.0.0.1", 0}};
  auto server = ramie::spawn([&] {  // answers once the client has said all it has to say
    net::tcp_stream connection = counter.accept();
    net::buffered_reader reader{connection};
    int lines = 0;
    while (reader.read_line()) ++lines;
    connection.write_all("it was " + std::to_string(lines) + " lines\n");
  });
  const target to{"127.0.0.1", std::to_string(counter.local().port())};
  auto between = ramie::spawn([&] { serve(proxy, to); });
  net::tcp_stream connection = net::tcp_stream::connect(proxy.local());
  connection.write_all("one\ntwo\nthree\n");
  connection.shutdown_write();
  net::buffered_reader reader{connection};
  std::printf("%s\n", std::string{reader.read_line().value_or("no answer")}.c_str());
  server.join();
  proxy.close();
  between.join();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 1) return ramie::run(show);
  const std::string where = argc > 2 ? argv[2] : "";
  const std::size_t colon = where.rfind(':');
  if (argc > 4 || colon == std::string::npos) {
    std::fprintf(stderr, "usage: example_proxy PORT HOST:PORT [IDLE_MS]\n");
    return 2;
  }
  target to{where.substr(0, colon), where.substr(colon + 1)};
  if (argc > 3) to.idle = std::chrono::milliseconds{std::atoi(argv[3])};
  return ramie::run([&] {
    net::tcp_listener listener{{"127.0.0.1", static_cast<std::uint16_t>(std::atoi(argv[1]))}};
    net::signals stop{SIGINT, SIGTERM};
    std::printf("listening at %s\n", listener.local().to_string().c_str());
    std::fflush(stdout);
    serve(listener, to, &stop);
  });
}
