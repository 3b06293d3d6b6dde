// Step 5 of docs/tutorial.md: an exchange that fails, and is restarted.
#include "market/exchange.hpp"

#include <chrono>
#include <cstdio>

using namespace market;
using namespace std::chrono_literals;

int main() {
  return ramie::run([] {
    ramie::supervisor board{{.max_restarts = 3, .within = 1h}};
    auto bourse =
        board.spawn_actor<exchange>(ramie::child_options{.actor = {.name = "exchange", .asks_wait_for_restart = true}});

    auto place = [&](order o) {
      try {
        std::printf("%zu trades\n", bourse.ask(o).size());
      } catch (const ramie::actor_down& e) {
        std::printf("%s\n", e.what());
      }
    };
    place({1, side::sell, 100, 5});
    place({2, side::buy, 100, 3});
    place({3, side::buy, -1, 3});   // the book throws, which ends the actor
    place({4, side::buy, 100, 3});  // the same reference; a new exchange with an empty book
    std::printf("restarted %d time(s)\n", static_cast<int>(board.restarts()));
  });
}
