// Asks servers by HTTP. `./run example http_fetch URL...` asks for all of them at once; without any it asks a server of
// its own, so that there is something to see.
#include <ramie/http.hpp>
#include <ramie/ramie.hpp>

#include <cstdio>
#include <string>
#include <vector>

namespace http = ramie::http;
namespace net = ramie::net;

int main(int argc, char** argv) {
  return ramie::run([&] {
    http::server site;
    site.get("/{}", [](http::request&, http::response& rs, const std::string& what) { rs.send("a " + what + "\n"); });
    net::tcp_listener listener{{"127.0.0.1", 0}};
    auto serving = ramie::spawn([&] { site.serve(listener); });

    std::vector<std::string> urls{argv + 1, argv + argc};
    if (urls.empty())
      for (const char* what : {"plum", "cherry"}) urls.push_back("http://" + listener.local().to_string() + "/" + what);

    http::client c;
    std::vector<ramie::join_handle<std::string>> answers;
    answers.reserve(urls.size());
    for (const std::string& url : urls)
      answers.push_back(ramie::spawn([&] {
        http::client_response r = c.get(url);
        return std::to_string(r.status()) + " " + r.body();
      }));
    for (auto& answer : answers) std::printf("%s", answer.join().c_str());

    site.stop();
    serving.join();
  });
}
