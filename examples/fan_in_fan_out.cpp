// A stream of readings goes to several filters (fan-out), and their output is merged again (fan-in): once by a channel
// that all of them send to, once by select over a channel for each.
#include <ramie/ramie.hpp>

#include <array>
#include <cstdio>
#include <optional>

bool is_prime(int n) {
  for (int d = 2; d * d <= n; ++d)
    if (n % d == 0) return false;
  return n > 1;
}

/// Any filter may take any number. All send to one channel, which the last filter closes.
int sum_by_one_channel() {
  ramie::channel<int> numbers{4};
  ramie::channel<int> primes{4};
  auto source = ramie::spawn([&] {
    for (int n = 1; n <= 200 && numbers.send(n) == ramie::channel_status::ok; ++n) {
    }
    numbers.close();
  });
  auto filters = ramie::spawn([&] {
    ramie::scope all;
    for (int i = 0; i < 4; ++i)
      all.spawn([&] {
        for (const int n : numbers)
          if (is_prime(n) && primes.send(n) != ramie::channel_status::ok) break;
      });
    all.join();
    primes.close();
  });
  int sum = 0;
  for (const int p : primes) sum += p;
  source.join();
  filters.join();
  return sum;
}

/// Each filter has a share of the numbers and a channel of its own; select takes from one that is ready.
std::array<int, 2> sums_by_select() {
  ramie::channel<int> even, odd;
  auto share = [](ramie::channel<int>& out, int first) {
    for (int n = first; n <= 200; n += 2)
      if (is_prime(n) && out.send(n) != ramie::channel_status::ok) break;
    out.close();
  };
  auto one = ramie::spawn([&] { share(even, 2); });
  auto other = ramie::spawn([&] { share(odd, 1); });

  std::array<int, 2> sums{};
  bool even_open = true;
  bool odd_open = true;
  auto add = [](bool& open, int& sum, std::optional<int> n) {
    if (n) sum += *n;
    else open = false;
  };
  while (even_open && odd_open)
    ramie::select(ramie::on_recv(even, [&](std::optional<int> n) { add(even_open, sums[0], n); }),
                  ramie::on_recv(odd, [&](std::optional<int> n) { add(odd_open, sums[1], n); }));
  for (const int n : even) sums[0] += n;  // one channel is drained; the other may not be
  for (const int n : odd) sums[1] += n;
  one.join();
  other.join();
  return sums;
}

int main() {
  return ramie::run([] {
    std::printf("primes up to 200: %d\n", sum_by_one_channel());
    const auto [even, odd] = sums_by_select();
    std::printf("even ones: %d, odd ones: %d\n", even, odd);
  });
}
