// Step 4 of docs/tutorial.md: a tape that shows the trades, but never delays the market.
#include "market/exchange.hpp"
#include "market/trader.hpp"

#include <cstdio>
#include <optional>

using namespace market;

int main() {
  return ramie::run([] {
    auto bourse = ramie::spawn_actor<exchange>();
    ramie::channel<trade> tape{64};
    ramie::channel<int> bell;  // nothing is ever sent: it is closed when the market closes
    long missed = 0;

    auto display = ramie::spawn([&] {
      long shown = 0;
      auto show = [&](std::optional<trade> t) { shown += t ? 1 : 0; };
      for (bool open = true; open;)
        ramie::select(ramie::on_recv(tape, show), ramie::on_recv(bell, [&](std::optional<int>) { open = false; }));
      while (auto t = tape.try_recv()) show(t);
      return shown;
    });

    long made = 0;
    trader me{1};
    for (int i = 0; i < 1000; ++i)
      for (const trade& t : bourse.ask(me.next())) {
        ++made;
        if (tape.try_send(t) != ramie::channel_status::ok) ++missed;
      }
    bell.close();
    const long shown = display.join();
    std::printf("%ld trades; each was shown or missed: %s\n", made, shown + missed == made ? "yes" : "no");
  });
}
