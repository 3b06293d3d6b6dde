// Fork and join: recursion, a scope of children, loops and reductions over ranges.
#include <ramie/ramie.hpp>

#include <cstdio>
#include <functional>
#include <numeric>
#include <vector>

long fib(int n) {
  if (n < 2) return n;
  auto [a, b] = ramie::fork_join([=] { return fib(n - 1); },
                                 [=] { return fib(n - 2); });  // two or more; void gives std::monostate
  return a + b;
}

int main() {
  return ramie::run([] {
    std::printf("fib(25) = %ld\n", fib(25));

    std::vector<int> parts{1, 2, 3, 4};
    ramie::scope s;  // children end before it does
    for (auto& part : parts) s.spawn([&part] { part *= 10; });
    s.join();  // rethrows the first failure, after dropping children that had not started
    std::printf("parts: %d %d %d %d\n", parts[0], parts[1], parts[2], parts[3]);

    const int n = 1000;
    std::vector<long> v(n);
    ramie::parallel_for(0, n,
                        [&](int i) { v[static_cast<std::size_t>(i)] = i; });  // grain chosen by the runtime, or given
    const long total = ramie::parallel_reduce(v.begin(), v.end(), 0L, std::plus<>{});
    std::printf("total = %ld\n", total);
  });
}
