// Fetches all URLs that it is given, at the same time. `./run example curl_fetch URL...`; without one it only says so.
#include <ramie/curl.hpp>
#include <ramie/ramie.hpp>

#include <chrono>
#include <cstdio>
#include <string>

using namespace std::chrono_literals;

namespace {

void fetch(ramie::curl::client& web, const std::string& url) {
  try {
    const ramie::curl::response r =
        ramie::with_timeout(10s, [&] { return web.perform({.url = url, .follow_redirects = true}); });
    std::printf("%s: %ld, %zu bytes\n", url.c_str(), r.status, r.body.size());
  } catch (const ramie::error& e) {
    std::printf("%s: %s\n", url.c_str(), e.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) std::printf("usage: %s URL...\n", argv[0]);
  return ramie::run([&] {
    ramie::curl::client web;
    ramie::scope all;
    for (int i = 1; i < argc; ++i) all.spawn([&web, url = std::string{argv[i]}] { fetch(web, url); });
    all.join();
  });
}
