// says: ramie::on_recv: the function must take a std::optional of the element, which is empty when the channel is
// closed The element is an int, so the function takes an int.
#include <ramie/channel.hpp>

void program(ramie::channel<int>& c) {
#ifdef MENDED
  ramie::select(ramie::on_recv(c, [](std::optional<int>) {}));
#else
  ramie::select(ramie::on_recv(c, [](int) {}));
#endif
}
