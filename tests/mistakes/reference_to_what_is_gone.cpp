// says: ramie::spawn: the function must return a value
// The fiber, and its variables, end before the reference is used.
#include <ramie/runtime.hpp>

int main() {
#ifdef MENDED
  return ramie::run([] {
    int local = 1;
    return local;
  });
#else
  return ramie::run([]() -> int& {
    static thread_local int local = 1;
    return local;
  });
#endif
}
