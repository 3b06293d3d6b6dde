// Hello over HTTP by ramie::http, started by lab/web/serve.py. Arguments: port, workers, the file of /json, and with
// TLS the files of certificate and key.
#include <ramie/http.hpp>
#include <ramie/ramie.hpp>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace http = ramie::http;
namespace net = ramie::net;

int main(int argc, char** argv) {
  if (argc != 4 && argc != 6) return 2;
  std::ifstream file{argv[3]};
  const std::string json{std::istreambuf_iterator<char>{file}, {}};
  ramie::runtime_options options;
  options.workers = static_cast<unsigned>(std::atoi(argv[2]));
  return ramie::run(options, [&] {
    http::server site;
    site.get("/", [](http::request&, http::response& rs) { rs.send("hello\n"); });
    site.get("/json", [&](http::request&, http::response& rs) { rs.send_json(json); });
    site.upgrade("/echo", [](http::request&, http::websocket& w) {
      while (auto m = w.receive()) {
        if (m->is_text) w.send(m->data);
        else w.send_binary(m->data);
      }
    });
    net::tcp_listener listener{{"127.0.0.1", static_cast<std::uint16_t>(std::atoi(argv[1]))}};
    if (argc == 4) {
      site.serve(listener);
    } else {
      site.serve(listener,
                 ramie::tls::server_context{{.certificates = {{argv[4], argv[5]}}, .alpn = http::server::protocols()}});
    }
  });
}
