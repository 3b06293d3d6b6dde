#include <ramie/ramie.hpp>

#include <cstdio>

int main() {
  return ramie::run([] {
    auto answer = ramie::spawn([] { return 41; });
    std::printf("%d\n", answer.join() + 1);
  });
}
