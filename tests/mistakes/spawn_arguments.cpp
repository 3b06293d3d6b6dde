// says: ramie::spawn: the function cannot be called with these arguments
// An argument is missing.
#include <ramie/fiber.hpp>

void program() {
#ifdef MENDED
  ramie::spawn([](int) {}, 1).join();
#else
  ramie::spawn([](int) {}).join();
#endif
}
