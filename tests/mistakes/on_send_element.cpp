// says: ramie::on_send: the value cannot be made an element of this channel
// A channel of numbers is sent a word.
#include <ramie/channel.hpp>

#include <string>

void program(ramie::channel<int>& c, const std::string& word) {
#ifdef MENDED
  ramie::select(ramie::on_send(c, std::stoi(word), [](ramie::channel_status) {}));
#else
  ramie::select(ramie::on_send(c, word, [](ramie::channel_status) {}));
#endif
}
