// Step 2 of docs/tutorial.md: the book belongs to an actor, so that many can trade at once.
#include "market/exchange.hpp"

#include <cstdio>

using namespace market;

int main() {
  return ramie::run([] {
    auto bourse = ramie::spawn_actor<exchange>();

    auto seller = ramie::spawn([&] { return bourse.ask(order{1, side::sell, 100, 5}); });
    std::printf("the seller finds %zu buyers\n", seller.join().size());

    auto buyer = ramie::spawn([&] { return bourse.ask(order{2, side::buy, 102, 3}); });
    for (const trade& t : buyer.join()) std::printf("the buyer gets %d at %d\n", t.quantity, t.price);
  });
}
