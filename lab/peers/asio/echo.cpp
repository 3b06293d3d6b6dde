// The server of experiment 6 on Boost.Asio, which ramie-lab's load drives.
//
//   asio_echo --style=callback|coroutine --workers=N
//
// One io_context that N threads run. A connection has one operation under way at a time, so it needs no strand.
#include <utility>  // first: Boost 1.74 needs it and does not include it

#include <boost/asio.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

struct connection : std::enable_shared_from_this<connection> {
  explicit connection(tcp::socket s) : socket{std::move(s)} {}

  void read() {
    socket.async_read_some(asio::buffer(data),
                           [self = shared_from_this()](const boost::system::error_code& error, std::size_t n) {
                             if (!error) self->write(n);
                           });
  }

  void write(std::size_t n) {
    asio::async_write(socket, asio::buffer(data, n),
                      [self = shared_from_this()](const boost::system::error_code& error, std::size_t) {
                        if (!error) self->read();
                      });
  }

  tcp::socket socket;
  std::array<char, 4096> data;
};

void accept_by_callback(tcp::acceptor& acceptor) {
  acceptor.async_accept([&acceptor](const boost::system::error_code& error, tcp::socket socket) {
    if (!error) {
      socket.set_option(tcp::no_delay{true});
      std::make_shared<connection>(std::move(socket))->read();
    }
    accept_by_callback(acceptor);
  });
}

asio::awaitable<void> echo(tcp::socket socket) {
  std::array<char, 4096> data;
  try {
    for (;;) {
      const std::size_t n = co_await socket.async_read_some(asio::buffer(data), asio::use_awaitable);
      co_await asio::async_write(socket, asio::buffer(data, n), asio::use_awaitable);
    }
  } catch (const boost::system::system_error&) {
    // The client is gone.
  }
}

asio::awaitable<void> accept_by_coroutine(tcp::acceptor& acceptor) {
  for (;;) {
    tcp::socket socket = co_await acceptor.async_accept(asio::use_awaitable);
    socket.set_option(tcp::no_delay{true});
    asio::co_spawn(acceptor.get_executor(), echo(std::move(socket)), asio::detached);
  }
}

}  // namespace

int main(int argc, char** argv) {
  int workers = 1;
  bool by_coroutine = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.rfind("--workers=", 0) == 0) {
      workers = std::atoi(word.c_str() + 10);
    } else if (word == "--style=coroutine") {
      by_coroutine = true;
    } else if (word != "--style=callback") {
      std::fprintf(stderr, "asio_echo: what is %s?\n", word.c_str());
      return 2;
    }
  }
  asio::io_context context{workers};
  tcp::acceptor acceptor{context, {asio::ip::address_v4::loopback(), 0}};
  acceptor.listen(4096);
  if (by_coroutine) asio::co_spawn(context, accept_by_coroutine(acceptor), asio::detached);
  else accept_by_callback(acceptor);
  std::printf("port %d\n", acceptor.local_endpoint().port());
  std::fflush(stdout);
  std::vector<std::thread> threads;
  for (int i = 1; i < workers; ++i) threads.emplace_back([&] { context.run(); });
  context.run();
}
