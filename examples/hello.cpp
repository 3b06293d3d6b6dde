// Fibers: started, joined, their results collected.
#include <ramie/ramie.hpp>

#include <cstdio>
#include <vector>

int main() {
  return ramie::run([] {  // one worker per available CPU; returns main's int, or 0
    std::vector<ramie::join_handle<int>> squares;
    for (int i = 0; i < 10; ++i) squares.push_back(ramie::spawn([i] { return i * i; }));
    for (auto& s : squares) std::printf("%d\n", s.join());
  });
}
