// Time limits, stop requests, and clean-up that neither interrupts.
#include <ramie/ramie.hpp>

#include <chrono>
#include <cstdio>
#include <stdexcept>

using namespace std::chrono_literals;

struct told_at_end {
  const char* text;
  ~told_at_end() { std::puts(text); }
};

int slow() {
  const told_at_end end{"destructors run"};
  ramie::this_fiber::sleep_for(1h);
  return 1;
}

int main() {
  return ramie::run([] {
    try {
      ramie::with_timeout(5ms, [&] { return slow(); });  // also with_deadline(t, f)
    } catch (const ramie::timeout_error&) {
      std::puts("too slow");
    }

    // Nested limits: the earliest wins, and it is its own call that throws.
    ramie::with_timeout(1h, [] {
      try {
        ramie::with_timeout(5ms, slow);
      } catch (const ramie::timeout_error&) {
        std::puts("the inner one");
      }
    });

    ramie::channel<int> never;
    auto h = ramie::spawn([&] {
      try {
        never.recv();
      } catch (const ramie::cancelled&) {
        ramie::shield([] { ramie::this_fiber::sleep_for(1ms); });  // not cancelled inside
        std::puts("cleaned up");
        throw;
      }
    });
    h.request_stop();  // a fiber waiting anywhere wakes and throws ramie::cancelled; join() rethrows it
    try {
      h.join();
    } catch (const ramie::cancelled&) {
      std::puts("cancelled");
    }

    // A child that fails ends the others' waits.
    ramie::scope s;
    s.spawn([&] { never.recv(); });
    s.spawn([] { throw std::runtime_error{"a child failed"}; });
    try {
      s.join();
    } catch (const std::runtime_error& e) {
      std::puts(e.what());
    }
  });
}
