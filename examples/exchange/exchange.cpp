// A market as a service: orders by HTTP and JSON, the book and the tape live by WebSocket, a page that shows both.
// Every order is in PostgreSQL before it is acknowledged. `./run exchange` starts it with a database of its own.
#include "api.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace http = ramie::http;
namespace net = ramie::net;
namespace pg = ramie::postgres;
using namespace std::chrono_literals;

namespace {

struct settings {
  std::string database{};
  int port = 0;
};

settings read_arguments(int argc, char** argv) {
  settings s;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--database") == 0) s.database = argv[i + 1];
    else if (std::strcmp(argv[i], "--port") == 0) s.port = std::atoi(argv[i + 1]);
  }
  return s;
}

void serve(const settings& s, ramie::runtime& machine) {
  net::signals stop{SIGINT, SIGTERM};
  pg::pool db{{.where = s.database, .most = 8}};
  exchange::services all{db};
  all.data.prepare();

  // The database may be away for a while: it is tried again and again, but not in a hurry.
  ramie::supervisor board{
      {.max_restarts = 1'000'000, .within = 1h, .name = "exchange", .backoff = {.first = 50ms, .most = 1s}}};
  all.orders.pool = board.spawn_pool<exchange::order_actor>({.lifetime = ramie::child_lifetime::transient,
                                                             .max_restarts = 1'000'000,
                                                             .within = 1h,
                                                             .backoff = {.first = 50ms, .most = 1s}});
  all.engine = board.spawn_actor<exchange::place_request, exchange::withdraw_request, exchange::expire>(
      {.actor = {.mailbox_capacity = 10'000,
                 .overflow = ramie::overflow::fail,
                 .name = "engine",
                 .asks_wait_for_restart = true}},
      [&all](exchange::engine_box& box) { exchange::run_engine(all, box); });

  all.ready.wait();

  http::server site;
  exchange::add_routes(site, all, machine);
  net::tcp_listener listener{{"127.0.0.1", static_cast<std::uint16_t>(s.port)}};
  auto serving = ramie::spawn([&] { site.serve(listener); });
  std::printf("the exchange is open: http://%s/\n", listener.local().to_string().c_str());
  std::fflush(stdout);

  stop.wait();
  std::printf("the exchange closes\n");
  all.news.close();
  site.stop();  // orders under way are answered
  serving.join();
}

}  // namespace

int main(int argc, char** argv) {
  const settings s = read_arguments(argc, argv);
  if (s.database.empty() && argc > 1) {
    std::fprintf(stderr, "usage: %s --database \"host=... dbname=...\" [--port N]\n", argv[0]);
    return 2;
  }
  if (argc == 1) {
    std::printf("usage: %s --database \"host=... dbname=...\" [--port N]; see ./run exchange --help\n", argv[0]);
    return 0;
  }
  try {
    ramie::runtime machine;
    machine.run([&] { serve(s, machine); });
  } catch (const ramie::error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
