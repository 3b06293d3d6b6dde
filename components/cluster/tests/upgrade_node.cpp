// A node in a rolling upgrade: compiled as the old version of a program and as the new one, UPGRADE_VERSION 1 and 2.
// <program> URL NAME: prints "ready", and serves until it is killed. <program> URL NAME OTHER: asks the other node,
// prints what came of it, and ends.
#include <ramie/cluster.hpp>
#include <ramie/ramie.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace upgrade {

using namespace std::chrono_literals;

struct order {
  std::string what;
  std::uint64_t count = 0;
#if UPGRADE_VERSION == 2
  std::string note = "none";
  std::vector<std::string> extras{};
#endif
};
struct receipt {
  std::string understood;
#if UPGRADE_VERSION == 2
  std::int64_t days = 7;
#endif
};
#if UPGRADE_VERSION == 1
struct price {
  std::int64_t cents = 0;
};
struct address {
  std::string street;
};
#else
struct price {
  std::string text;
};
struct address {
  std::vector<std::string> street;
  std::int64_t number = 0;
};
#endif
struct parcel {
  address to;
};
struct invoice {};
struct refund {};

#if UPGRADE_VERSION == 1
RAMIE_WIRE(order, "upgrade.order", (1, what), (2, count))
RAMIE_WIRE(receipt, "upgrade.receipt", (1, understood))
RAMIE_WIRE(price, "upgrade.price", (1, cents))
RAMIE_WIRE(address, "upgrade.address", (1, street))
#else
RAMIE_WIRE(order, "upgrade.order", (1, what), (2, count), (3, note), (4, extras))
RAMIE_WIRE(receipt, "upgrade.receipt", (1, understood), (2, days))
RAMIE_WIRE(price, "upgrade.price", (1, text))
RAMIE_WIRE(address, "upgrade.address", (1, street), (2, number))
#endif
RAMIE_WIRE(parcel, "upgrade.parcel", (1, to))
RAMIE_WIRE(invoice, "upgrade.invoice")
RAMIE_WIRE(refund, "upgrade.refund")

class desk : public ramie::actor<desk> {
 public:
#if UPGRADE_VERSION == 1
  using remote = ramie::messages<order, price, parcel, invoice>;
  receipt on(const order& o) { return {"old desk: " + o.what + " " + std::to_string(o.count)}; }
  std::string on(const price&) { return "handled"; }
  std::string on(invoice) { return "none"; }
#else
  using remote = ramie::messages<order, price, parcel, invoice, refund>;
  receipt on(const order& o) {
    return {
        "new desk: " + o.what + " " + std::to_string(o.count) + " " + o.note + " " + std::to_string(o.extras.size()),
        3};
  }
  std::string on(const price&) { return "handled"; }
  std::int64_t on(invoice) { return 0; }
  std::string on(refund) { return "handled"; }
#endif
  std::string on(const parcel&) { return "handled"; }
};

std::string text_of(const receipt& r) {
#if UPGRADE_VERSION == 1
  return r.understood;
#else
  return r.understood + ", " + std::to_string(r.days) + " days";
#endif
}

template <class Ask>
void say(const char* what, Ask ask) {
  try {
    std::printf("%s: %s\n", what, std::string{ask()}.c_str());
  } catch (const ramie::error& e) {
    std::printf("%s: refused: %s\n", what, e.what());
  }
  std::fflush(stdout);
}

void ask(const ramie::actor_ref<desk>& other) {
#if UPGRADE_VERSION == 1
  say("order", [&] { return text_of(other.ask_for(60s, order{"tea", 3})); });
  say("price", [&] { return other.ask_for(60s, price{5}); });
  say("parcel", [&] { return other.ask_for(60s, parcel{{"Main Street"}}); });
  say("invoice", [&] { return other.ask_for(60s, invoice{}); });
#else
  say("order", [&] { return text_of(other.ask_for(60s, order{"tea", 3, "hot", {"milk"}})); });
  say("price", [&] { return other.ask_for(60s, price{"five"}); });
  say("parcel", [&] { return other.ask_for(60s, parcel{{{"Main Street"}, 1}}); });
  say("invoice", [&] { return std::to_string(other.ask_for(60s, invoice{})); });
  say("refund", [&] { return other.ask_for(60s, refund{}); });
#endif
  // What is told and not taken is left out, and what comes behind it is not.
  other.tell(price{});
  say("after it", [&] { return text_of(other.ask_for(60s, order{"cake", 1})); });
}

}  // namespace upgrade

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  return ramie::run([&] {
    ramie::cluster c{{.url = argv[1], .name = "upgrade", .node = argv[2]}};
    c.knows<upgrade::desk>();
    const auto here = ramie::spawn_actor<upgrade::desk>();
    if (!c.register_name(std::string{"desk-"} + argv[2], here)) return 1;
    if (argc > 3) {
      upgrade::ask(c.whereis<upgrade::desk>(std::string{"desk-"} + argv[3]).value());
      here.stop();
      here.join();
      return 0;
    }
    std::puts("ready");
    std::fflush(stdout);
    ramie::this_fiber::sleep_for(std::chrono::hours{1});
    return 0;
  });
}
