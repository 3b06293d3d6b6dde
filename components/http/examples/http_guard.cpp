// A server with an access log, and a part that wants a token. `./run example http_guard`
#include <ramie/http.hpp>
#include <ramie/ramie.hpp>

#include <cstdio>
#include <string>

namespace http = ramie::http;
namespace net = ramie::net;

int main() {
  return ramie::run([] {
    http::server site;
    site.on_response([](const http::request& rq, const http::response_summary& became) {
      std::printf("%s %s: %d, %zu bytes\n", std::string{rq.method()}.c_str(), std::string{rq.target()}.c_str(),
                  became.status, static_cast<std::size_t>(became.body_bytes));
    });
    site.use("/private", [](http::request& rq, http::response& rs, const auto& next) {
      if (rq.header("authorization") == "Bearer plum") return next();
      rs.status(401).send("who are you?\n");
    });
    site.get("/private/{name}",
             [](http::request&, http::response& rs, const std::string& name) { rs.send("the " + name + "\n"); });

    net::tcp_listener listener{{"127.0.0.1", 0}};
    auto serving = ramie::spawn([&] { site.serve(listener); });
    const std::string diary = "http://" + listener.local().to_string() + "/private/diary";
    http::client c;
    const std::string refused = c.get(diary).body();
    const std::string read = c.request(diary, {.headers = {{"authorization", "Bearer plum"}}}).body();
    site.stop();
    serving.join();
    std::printf("%s%s", refused.c_str(), read.c_str());
  });
}
