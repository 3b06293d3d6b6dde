#include <ramie/ramie.hpp>

int main() {
  return ramie::run([] { return ramie::spawn([] { return 42; }).join() == 42 ? 0 : 1; });
}
