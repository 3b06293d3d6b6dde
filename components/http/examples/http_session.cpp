// A client that logs in, and bears with a server that is overloaded for a moment. `./run example http_session`
#include <ramie/http.hpp>
#include <ramie/ramie.hpp>

#include <atomic>
#include <cstdio>

namespace http = ramie::http;
namespace net = ramie::net;

int main() {
  return ramie::run([] {
    std::atomic<int> asked{0};
    http::server shop;
    shop.post("/login", [](http::request&, http::response& rs) {
      rs.cookie("session", "plum", {.secure = false});  // there is no TLS here
      rs.send("welcome\n");
    });
    shop.get("/basket", [&](http::request& rq, http::response& rs) {
      if (asked.fetch_add(1) < 2) return rs.status(503).send("too much to do\n");
      rs.send("the basket of " + std::string{rq.cookie("session").value_or("nobody")} + "\n");
    });
    net::tcp_listener listener{{"127.0.0.1", 0}};
    auto serving = ramie::spawn([&] { shop.serve(listener); });
    const std::string at = "http://" + listener.local().to_string();

    http::client c{{.retries_most = 3, .cookies = true}};
    std::printf("%s", c.post(at + "/login", "name=plum").body().c_str());
    std::printf("%s", c.get(at + "/basket").body().c_str());  // after two retries
    std::printf("asked %d times\n", asked.load());

    shop.stop();
    serving.join();
  });
}
