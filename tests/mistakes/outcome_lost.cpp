// says: ramie::select: a case of on_recv or on_send without a function loses its outcome here
// What is received goes nowhere.
#include <ramie/channel.hpp>

void program(ramie::channel<int>& a, ramie::channel<int>& b) {
#ifdef MENDED
  static_cast<void>(ramie::select_value(ramie::on_recv(a), ramie::on_recv(b)));
#else
  ramie::select(ramie::on_recv(a), ramie::on_recv(b));
#endif
}
