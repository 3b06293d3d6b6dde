// A pipeline: numbers fan out to several workers, their results fan in again.
#include <ramie/ramie.hpp>

#include <cstdint>
#include <cstdio>
#include <map>

struct result {
  std::uint64_t number;
  int steps;
};

// How many steps n takes to 1: even numbers are halved, odd ones become 3n + 1.
int steps_to_one(std::uint64_t n) {
  int steps = 0;
  for (; n != 1; ++steps) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
  return steps;
}

int main() {
  return ramie::run([] {
    ramie::channel<std::uint64_t> numbers{16};
    ramie::channel<result> results{16};

    auto source = ramie::spawn([&] {
      for (std::uint64_t n = 1; n <= 1000; ++n)
        if (numbers.send(n) != ramie::channel_status::ok) break;
      numbers.close();
    });
    auto stage = ramie::spawn([&] {
      ramie::scope workers;
      for (int i = 0; i < 4; ++i)
        workers.spawn([&] {
          for (const std::uint64_t n : numbers)
            if (results.send({n, steps_to_one(n)}) != ramie::channel_status::ok) break;
        });
      workers.join();
      results.close();  // when the last of them is done
    });

    std::map<int, std::uint64_t> longest;
    for (const result& r : results)  // in the order of arrival
      if (auto [it, is_new] = longest.try_emplace(r.steps, r.number); !is_new && r.number < it->second)
        it->second = r.number;
    const auto& [steps, number] = *longest.rbegin();
    std::printf("%llu takes %d steps\n", static_cast<unsigned long long>(number), steps);
    source.join();
    stage.join();
  });
}
