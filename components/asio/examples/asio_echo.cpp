// A server that is written for Boost.Asio's coroutines, and a client whose fibers use Asio's sockets: both on ramie's
// workers.
#include <ramie/asio.hpp>
#include <ramie/ramie.hpp>

#include <boost/asio.hpp>

#include <cstdio>
#include <string>

namespace net = boost::asio;
using net::ip::tcp;

namespace {

net::awaitable<void> echo(tcp::socket s) {
  std::string line;
  try {
    while (co_await net::async_read_until(s, net::dynamic_buffer(line), '\n', net::use_awaitable) != 0) {
      co_await net::async_write(s, net::buffer(line), net::use_awaitable);
      line.clear();
    }
  } catch (const boost::system::system_error&) {
    // The client has gone.
  }
}

std::string ask(ramie::asio::context& io, const tcp::endpoint& server, const std::string& text) {
  tcp::socket s{io.get_executor()};
  s.async_connect(server, ramie::asio::yield);
  net::async_write(s, net::buffer(text + "\n"), ramie::asio::yield);
  std::string line;
  net::async_read_until(s, net::dynamic_buffer(line), '\n', ramie::asio::yield);
  return line;
}

void talk(ramie::runtime& rt) {
  ramie::asio::context io{rt};
  tcp::acceptor listener{io.get_executor(), {net::ip::address_v4::loopback(), 0}};
  auto fruit = ramie::spawn([&] { return ask(io, listener.local_endpoint(), "plum"); });
  // Suspends until the coroutine has ended, and its socket with it: the context outlives all that uses it.
  net::co_spawn(io.get_executor(), echo(listener.async_accept(ramie::asio::yield)), ramie::asio::yield);
  std::printf("%s", fruit.join().c_str());
}

}  // namespace

int main() {
  ramie::runtime rt;
  rt.run([&] { talk(rt); });
}
