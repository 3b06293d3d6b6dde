// Step 6 of docs/tutorial.md: the market closes on time, and all workers compute the day's average price.
#include "market/exchange.hpp"
#include "market/trader.hpp"

#include <chrono>
#include <cstdio>
#include <functional>
#include <mutex>

using namespace market;
using namespace std::chrono_literals;

int main() {
  return ramie::run([] {
    auto books = ramie::spawn_actor<ledger>();
    auto bourse = ramie::spawn_actor<exchange>(
        ramie::actor_options{.mailbox_capacity = 32, .overflow = ramie::overflow::block_sender}, books);
    std::vector<trade> day;
    ramie::mutex lock;

    auto trade_for_ever = [&](int number) {
      for (trader me{number};;) {
        const std::vector<trade> made = bourse.ask(me.next());
        std::lock_guard guard{lock};
        day.insert(day.end(), made.begin(), made.end());
      }
    };
    std::vector<ramie::join_handle<void>> crowd;
    for (int number = 0; number < 50; ++number) crowd.push_back(ramie::spawn([&, number] { trade_for_ever(number); }));

    try {
      ramie::with_timeout(30ms, [&] { crowd.front().join(); });  // never ends by itself
    } catch (const ramie::timeout_error&) {
      std::printf("the bell rings\n");
    }
    for (auto& t : crowd) t.request_stop();  // each wakes up in its `ask`, which throws `cancelled`
    int stopped = 0;
    for (auto& t : crowd) {
      try {
        t.join();
      } catch (const ramie::cancelled&) {
        ++stopped;
      }
    }
    std::printf("%d traders have stopped\n", stopped);

    const auto value = [](const trade& t) { return static_cast<long>(t.price) * t.quantity; };
    const auto volume = [](const trade& t) { return static_cast<long>(t.quantity); };
    auto [cash, shares] =
        ramie::fork_join([&] { return ramie::parallel_reduce(day.begin(), day.end(), 0L, std::plus<>{}, value); },
                         [&] { return ramie::parallel_reduce(day.begin(), day.end(), 0L, std::plus<>{}, volume); });
    const double average = shares == 0 ? 100 : static_cast<double>(cash) / static_cast<double>(shares);
    std::printf("the average price lies between 90 and 110: %s\n", average >= 90 && average <= 110 ? "yes" : "no");
    bourse.stop();
    bourse.join();
    const account sum = books.ask(totals{});
    std::printf("cash adds up to %ld, shares to %ld\n", sum.cash, sum.shares);
  });
}
