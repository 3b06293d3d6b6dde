// says: ramie::select: a named case that sends its own copy of a value could send it only once
// The second time, an empty string would be sent.
#include <ramie/channel.hpp>

#include <string>

void program(ramie::channel<std::string>& c) {
  const auto done = [](ramie::channel_status) {};
#ifdef MENDED
  for (int i = 0; i < 2; ++i) ramie::select(ramie::on_send(c, "word", done));
#else
  auto sends = ramie::on_send(c, "word", done);
  for (int i = 0; i < 2; ++i) ramie::select(sends);
#endif
}
