// Philosophers share forks: each needs both beside its plate to eat. std::scoped_lock takes them in
// a way that cannot deadlock.
#include <ramie/ramie.hpp>

#include <array>
#include <cstddef>
#include <cstdio>
#include <mutex>

int main() {
  return ramie::run([] {
    constexpr std::size_t seats = 5;
    std::array<ramie::mutex, seats> forks;
    std::array<int, seats> meals{};
    ramie::scope table;
    for (std::size_t seat = 0; seat < seats; ++seat)
      table.spawn([&, seat] {
        for (int course = 0; course < 100; ++course) {
          ramie::this_fiber::yield();  // thinks
          const std::scoped_lock both{forks[seat], forks[(seat + 1) % seats]};
          ++meals[seat];
        }
      });
    table.join();
    for (std::size_t seat = 0; seat < seats; ++seat) std::printf("philosopher %zu ate %d times\n", seat, meals[seat]);
  });
}
