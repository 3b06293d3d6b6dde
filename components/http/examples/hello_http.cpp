// A web server. `./run example hello_http PORT` serves this machine until Ctrl-C; without a port it serves one client
// of its own, so that there is something to see.
#include <ramie/http.hpp>
#include <ramie/ramie.hpp>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace http = ramie::http;
namespace net = ramie::net;

namespace {

void show(const net::endpoint& server) {
  net::tcp_stream s = net::tcp_stream::connect(server);
  s.write_all("GET /hello/plum HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
  net::buffered_reader reader{s};
  while (const auto line = reader.read_line())
    if (!line->starts_with("date:")) std::printf("%s\n", std::string{*line}.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  return ramie::run([&] {
    http::server site;
    site.get("/", [](http::request&, http::response& rs) { rs.send("hello\n"); });
    site.get("/hello/{name}",
             [](http::request&, http::response& rs, const std::string& name) { rs.send("hello, " + name + "\n"); });
    net::tcp_listener listener{{"127.0.0.1", static_cast<std::uint16_t>(argc > 1 ? std::atoi(argv[1]) : 0)}};
    auto serving = ramie::spawn([&] { site.serve(listener); });
    if (argc > 1) {
      net::signals stop{SIGINT, SIGTERM};
      std::printf("http://%s\n", listener.local().to_string().c_str());
      std::fflush(stdout);
      stop.wait();
    } else {
      show(listener.local());
    }
    site.stop();
    serving.join();
  });
}
