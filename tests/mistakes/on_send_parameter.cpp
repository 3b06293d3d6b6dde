// says: ramie::on_send: the function must take a channel_status: ok or closed
// Nothing is received, so the function takes nothing.
#include <ramie/channel.hpp>

void program(ramie::channel<int>& c) {
#ifdef MENDED
  ramie::select(ramie::on_send(c, 1, [](ramie::channel_status) {}));
#else
  ramie::select(ramie::on_send(c, 1, [] {}));
#endif
}
