// A server that hands its socket over to a new process, as for an upgrade. The socket listens all the time, so no
// client is refused. (What systemd starts finds its sockets by net::given_sockets.)
#include <ramie/net.hpp>
#include <ramie/ramie.hpp>

#include <cstdio>
#include <string>

namespace net = ramie::net;

namespace {

std::string ask(const net::endpoint& server) {
  net::tcp_stream connection = net::tcp_stream::connect(server);
  net::buffered_reader reader{connection};
  return std::string{reader.read_line().value_or("nothing")};
}

void answer_one(net::tcp_listener& listener, const std::string& who) {
  listener.accept().write_all("hello from the " + who + " process\n");
}

}  // namespace

int main(int argc, char** argv) {
  return ramie::run([&] {
    if (argc == 2) {
      net::tcp_listener listener = net::tcp_listener::adopt(3);
      answer_one(listener, argv[1]);
      return 0;
    }
    net::tcp_listener listener{{"127.0.0.1", 0}};
    const net::endpoint at = listener.local();
    auto first = ramie::spawn([&] { return ask(at); });
    answer_one(listener, "old");
    std::printf("%s\n", first.join().c_str());

    net::child fresh{{argv[0], "new"}, {.descriptors = {listener.native_handle()}}};
    listener.close();
    std::printf("%s\n", ask(at).c_str());
    return fresh.wait().code;
  });
}
