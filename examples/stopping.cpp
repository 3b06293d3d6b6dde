// Asking fibers to stop, waiting with a limit, and blocking calls.
#include <ramie/ramie.hpp>

#include <chrono>
#include <cstdio>
#include <stop_token>

using namespace std::chrono_literals;

int main() {
  return ramie::run([] {
    auto sleeper = ramie::spawn([] { ramie::this_fiber::sleep_for(1h); });
    if (!sleeper.join_for(1ms)) std::puts("still asleep");
    sleeper.request_stop();  // a fiber that waits anywhere wakes and throws ramie::cancelled; join() rethrows it
    try {
      sleeper.join();
    } catch (const ramie::cancelled&) {
      std::puts("cancelled");
    }

    auto worker = ramie::spawn([](std::stop_token stop) {
      long rounds = 0;
      do {
        ramie::this_fiber::yield();
        ++rounds;
      } while (!stop.stop_requested());
      return rounds;
    });
    ramie::this_fiber::sleep_for(1ms);
    worker.request_stop();
    std::puts(worker.join() > 0 ? "worked" : "idled");

    std::printf("%d\n", ramie::blocking([] { return 6 * 7; }));  // runs on a helper thread; this fiber waits
  });
}
