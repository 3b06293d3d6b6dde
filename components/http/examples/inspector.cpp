// The live page. `./run example inspector PORT` serves it until Ctrl-C, beside a small shop to look at: clerks and
// packers, supervised; orders that come over a channel; clients of an echo server. Without a port it asks for the
// page's data itself, once.
#include <ramie/http.hpp>
#include <ramie/ramie.hpp>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace http = ramie::http;
namespace net = ramie::net;
using namespace std::chrono_literals;

namespace {

struct order {
  int number;
};

class packer : public ramie::actor<packer> {
 public:
  void on(const order&) { ramie::this_fiber::sleep_for(4ms); }
};

class clerk : public ramie::actor<clerk> {
 public:
  explicit clerk(ramie::actor_ref<packer> to) : to_{std::move(to)} {}
  void on(const order& o) {
    ramie::this_fiber::sleep_for(1ms);
    to_.tell(o);
  }

 private:
  ramie::actor_ref<packer> to_;
};

/// Runs until it is cancelled.
void keep_shop() {
  ramie::supervisor shop{{.name = "shop"}};
  const auto packers = shop.spawn_supervisor({.name = "packers"});
  const auto clerks = shop.spawn_supervisor({.name = "clerks"});
  std::vector<ramie::actor_ref<clerk>> staff;
  for (const char* name : {"ada", "bo", "cy"}) {
    auto helper = packers.spawn_actor<packer>(ramie::child_options{.actor = {.name = std::string{"for "} + name}});
    staff.push_back(clerks.spawn_actor<clerk>(ramie::child_options{.actor = {.name = name}}, helper));
  }

  ramie::channel<order> orders{16};
  ramie::mutex till;
  net::tcp_listener listener{{"127.0.0.1", 0}};
  ramie::scope all;
  all.spawn(ramie::fiber_options{.name = "customers"}, [&] {
    for (int i = 0;; ++i) {
      (void)orders.send(order{i});
      ramie::this_fiber::sleep_for(1ms);
    }
  });
  all.spawn(ramie::fiber_options{.name = "foreman"}, [&] {
    while (auto o = orders.recv()) staff[static_cast<std::size_t>(o->number) % staff.size()].tell(*o);
  });
  for (int i = 0; i < 5; ++i)
    all.spawn(ramie::fiber_options{.name = "cashier " + std::to_string(i)}, [&] {
      for (;;) {
        const std::lock_guard locked{till};
        ramie::this_fiber::sleep_for(50ms);
      }
    });
  all.spawn(ramie::fiber_options{.name = "echo"}, [&] {
    for (;;)
      all.spawn([s = listener.accept()]() mutable {
        std::array<std::byte, 256> buffer;
        while (const std::size_t n = s.read_some(buffer)) s.write_all(std::span{buffer}.first(n));
      });
  });
  for (int i = 0; i < 20; ++i)
    all.spawn(ramie::fiber_options{.name = "client " + std::to_string(i)}, [&, i] {
      net::tcp_stream s = net::tcp_stream::connect(listener.local());
      std::array<std::byte, 256> buffer;
      for (;;) {
        s.write_all("hello");
        (void)s.read_some(buffer);
        ramie::this_fiber::sleep_for(20ms * (i + 1));
      }
    });
  all.join();
}

void ask_once(const http::inspector& page) {
  const std::string url = page.url();
  std::string state;
  // The shop has only just begun.
  while (state.find("\"name\":\"client 19\"") == std::string::npos ||
         state.find("\"name\":\"cy\"") == std::string::npos)
    state = http::client{}.get(url + "api/state").body();
  std::printf("the page shows client 19 and cy\n");
}

}  // namespace

int main(int argc, char** argv) {
  ramie::runtime busy{{.name = "shop"}};
  http::inspector page{busy, {.at = {"127.0.0.1", static_cast<std::uint16_t>(argc > 1 ? std::atoi(argv[1]) : 0)}}};
  busy.run([&] {
    auto shop = ramie::spawn(ramie::fiber_options{.name = "shop"}, [] { keep_shop(); });
    if (argc > 1) {
      net::signals stop{SIGINT, SIGTERM};
      std::printf("%s\n", page.url().c_str());
      std::fflush(stdout);
      stop.wait();
    } else {
      ask_once(page);
    }
    shop.request_stop();
  });
}
