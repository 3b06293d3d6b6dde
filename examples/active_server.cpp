// A server whose listener and connections are actors: what arrives comes to them as messages, so a client with nothing
// to say has no fiber, no stack and no buffer in the server. Each connection asks for one piece at a time, so a client
// that floods it is stopped by its own full buffers; the door asks for as many clients as there is room for, and the
// others wait in the backlog. `example_active_server PORT` serves this machine until it is killed; without a port it
// serves clients of its own, so that there is something to see.
#include <ramie/net.hpp>
#include <ramie/ramie.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace net = ramie::net;

namespace {

constexpr std::size_t line_most = 1000;
constexpr int clients_most = 50;

/// Answers each line by its number and its length.
class connection : public ramie::actor<connection> {
 public:
  explicit connection(net::tcp_stream client) : client_{std::move(client), self(), line_most} { client_.activate(); }

  void on(const net::received& piece) {
    line_ += piece.text();
    std::string answers;
    for (std::size_t end; (end = line_.find('\n')) != std::string::npos; line_.erase(0, end + 1))
      answers += "line " + std::to_string(++lines_) + " has " + std::to_string(end) + " characters\n";
    if (line_.size() > line_most) return stop();  // not a client of this protocol
    try {
      client_->write_all(answers);
      client_.activate();  // the next piece
    } catch (const net::io_error&) {
      stop();  // the client is gone
    }
  }
  void on(net::ended) { stop(); }

 private:
  net::active_stream<net::tcp_stream> client_;
  std::string line_;
  int lines_ = 0;
};

class door : public ramie::actor<door> {
 public:
  explicit door(net::tcp_listener listener) : listener_{std::move(listener), self()} {
    listener_.activate(clients_most);
  }

  void on(net::accepted<net::tcp_stream> client) { monitor(ramie::spawn_actor<connection>(std::move(client.stream))); }
  void on(const ramie::down&) { listener_.activate(); }  // one has left
  void on(net::ended) { stop(); }

 private:
  net::active_listener<net::tcp_listener> listener_;
};

void ask(net::tcp_stream& server, std::string_view text, int answers) {
  server.write_all(text);
  net::buffered_reader reader{server};
  for (int i = 0; i < answers; ++i) std::printf("%s\n", std::string{reader.read_line().value_or("nothing")}.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  return ramie::run([&] {
    net::tcp_listener listener{{"127.0.0.1", static_cast<std::uint16_t>(argc > 1 ? std::atoi(argv[1]) : 0)}};
    const net::endpoint at = listener.local();
    auto server = ramie::spawn_actor<door>(std::move(listener));
    if (argc > 1) {
      server.join();
      return 0;
    }
    std::vector<net::tcp_stream> clients;
    for (int i = 0; i < 100; ++i) clients.push_back(net::tcp_stream::connect(at));
    ask(clients[0], "hello\nis anybody there?\n", 2);
    ask(clients[49], "I am inside\n", 1);
    clients.erase(clients.begin(), clients.begin() + 50);  // they leave, and there is room for the others
    ask(clients[49], "I was last\n", 1);
    clients.clear();
    server.stop();
    server.join();
    return 0;
  });
}
