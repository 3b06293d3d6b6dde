// says: ramie::select: a case that sends a value given as an rvalue refers to that value; make the case in the call of
// The value is gone before the select begins.
#include <ramie/channel.hpp>

#include <string>

void program(ramie::channel<std::string>& c) {
  const auto done = [](ramie::channel_status) {};
#ifdef MENDED
  std::string word = "word";
  auto sends = ramie::on_send(c, std::ref(word), done);
#else
  auto sends = ramie::on_send(c, std::string{"word"}, done);
#endif
  ramie::select(sends);
}
