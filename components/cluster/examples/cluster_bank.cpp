// A bank on one node, and its customers on another: cluster_bank URL serve, and cluster_bank URL deposit 5. With the
// URL alone it is both nodes in one process.
#include <ramie/cluster.hpp>
#include <ramie/ramie.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

using namespace std::chrono_literals;

namespace bank {

struct deposit {
  std::int64_t amount = 0;
};
struct balance {};
RAMIE_WIRE(deposit, "bank.deposit", (1, amount))
RAMIE_WIRE(balance, "bank.balance")

class account : public ramie::actor<account> {
 public:
  using remote = ramie::messages<deposit, balance>;  // what other nodes may send
  void on(deposit d) { total_ += d.amount; }
  std::int64_t on(balance) { return total_; }

 private:
  std::int64_t total_ = 0;
};

int serve(const std::string& url) {
  ramie::cluster c{{.url = url, .name = "shop", .node = "bank"}};
  c.knows<account>();
  const ramie::actor_ref<account> vault = ramie::spawn_actor<account>();
  if (!c.register_name("vault", vault)) {
    std::puts("there is a vault already");
    return 1;
  }
  vault.join();
  return 0;
}

int deposit_there(const std::string& url, std::int64_t amount) {
  ramie::cluster c{{.url = url, .name = "shop", .node = "customer"}};
  c.knows<account>();
  const std::optional<ramie::actor_ref<account>> vault = c.whereis<account>("vault");
  if (!vault) {
    std::puts("there is no vault");
    return 1;
  }
  vault->tell(deposit{amount});  // as if it were here
  try {
    std::printf("balance: %lld\n", static_cast<long long>(vault->ask_for(60s, balance{})));
  } catch (const ramie::actor_down& down) {
    std::printf("the bank is gone: %s\n", down.what());  // node_lost, if its machine is
    return 1;
  }
  return 0;
}

int both(const std::string& url) {
  ramie::cluster c{{.url = url, .name = "shop", .node = "bank"}};
  c.knows<account>();
  const ramie::actor_ref<account> vault = ramie::spawn_actor<account>();
  c.register_name("vault", vault);
  const int done = deposit_there(url, 5);
  vault.stop();
  vault.join();
  return done;
}

}  // namespace bank

int main(int argc, char** argv) {
  if (argc < 2) {
    std::puts("cluster_bank URL [serve | deposit AMOUNT], e.g. cluster_bank nats://127.0.0.1:4222 serve");
    return 2;
  }
  const std::string url = argv[1];
  const std::string what = argc > 2 ? argv[2] : "";
  return ramie::run([&] {
    if (what == "serve") return bank::serve(url);
    if (what == "deposit") return bank::deposit_there(url, argc > 3 ? std::atoll(argv[3]) : 1);
    return bank::both(url);
  });
}
