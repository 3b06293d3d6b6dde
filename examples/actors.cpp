// Actors: objects that handle one message at a time and never share their state.
#include <ramie/ramie.hpp>

#include <chrono>
#include <cstdio>
#include <variant>

using namespace std::chrono_literals;

struct deposit {
  int amount;
};
struct balance {};

class account : public ramie::actor<account> {
 public:
  explicit account(int start) : total_{start} {}
  void on(deposit m) { total_ += m.amount; }
  int on(balance) { return total_; }  // a request: the return value is the reply

 private:
  int total_;
};

int main() {
  return ramie::run([] {
    ramie::actor_ref<account> acc = ramie::spawn_actor<account>(100);  // copyable, keeps no actor alive by itself
    acc.tell(deposit{5});                                              // never blocks on an unbounded mailbox
    const int b = acc.ask(balance{});                                  // suspends the caller
    const int c = acc.ask_for(1min, balance{});
    auto later = acc.ask_async(balance{});  // ramie::future<int>
    std::printf("%d %d %d\n", b, c, later.get());

    auto bounded = ramie::spawn_actor<account>(
        ramie::actor_options{.mailbox_capacity = 1000, .overflow = ramie::overflow::block_sender, .name = "bounded"},
        1);
    for (int i = 0; i < 5000; ++i) bounded.tell(deposit{1});
    std::printf("%d\n", bounded.ask(balance{}));

    // A fiber with a mailbox.
    auto loop = ramie::spawn_actor<deposit, balance>([](ramie::mailbox<deposit, balance>& box) {
      int sum = 0;
      while (auto m = box.receive()) {
        if (const auto* d = std::get_if<deposit>(&*m)) sum += d->amount;
        else std::printf("the loop has %d\n", sum);
      }
    });
    loop.tell(deposit{7});
    loop.tell(deposit{8});
    loop.tell(balance{});
    loop.stop();
    loop.join();

    ramie::register_name("bank", acc);
    if (auto found = ramie::whereis<account>("bank")) std::printf("%d\n", found->ask(balance{}));

    acc.stop();
    std::printf("%s\n", to_string(acc.join().kind()));
    try {
      acc.ask(balance{});
    } catch (const ramie::actor_down& e) {
      std::printf("%s\n", e.what());
    }
  });
}
