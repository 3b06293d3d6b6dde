// Step 3 of docs/tutorial.md: two hundred traders at once.
#include "market/exchange.hpp"
#include "market/trader.hpp"

#include <atomic>
#include <cstdio>

using namespace market;

int main() {
  return ramie::run([] {
    auto books = ramie::spawn_actor<ledger>();
    auto bourse = ramie::spawn_actor<exchange>(books);
    std::atomic<int> orders{0};

    ramie::scope crowd;
    for (int number = 0; number < 200; ++number)
      crowd.spawn([&, me = trader{number}]() mutable {
        for (int i = 0; i < 20; ++i) {
          bourse.ask(me.next());
          ++orders;
        }
      });
    crowd.join();

    const account sum = books.ask(totals{});
    std::printf("%d orders; cash adds up to %ld, shares to %ld\n", orders.load(), sum.cash, sum.shares);
  });
}
