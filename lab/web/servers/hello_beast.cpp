// Hello over HTTP by Boost.Beast on Boost.Asio's coroutines: port, threads, the file of /json.
#include <boost/asio.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;

std::string json;

asio::awaitable<void> session(tcp::socket socket) {
  try {
    beast::tcp_stream stream{std::move(socket)};
    beast::flat_buffer buffer;
    for (;;) {
      http::request<http::string_body> request;
      stream.expires_after(std::chrono::seconds{75});
      co_await http::async_read(stream, buffer, request, asio::use_awaitable);
      http::response<http::string_body> response{http::status::ok, request.version()};
      const bool is_json = request.target() == "/json";
      response.set(http::field::content_type, is_json ? "application/json" : "text/plain; charset=utf-8");
      response.keep_alive(request.keep_alive());
      response.body() = is_json ? json : "hello\n";
      response.prepare_payload();
      co_await http::async_write(stream, response, asio::use_awaitable);
      if (!request.keep_alive()) co_return;
    }
  } catch (const std::exception&) {
    // The client is gone.
  }
}

asio::awaitable<void> listen(tcp::endpoint at) {
  tcp::acceptor acceptor{co_await asio::this_coro::executor, at};
  for (;;) {
    tcp::socket s = co_await acceptor.async_accept(asio::use_awaitable);
    s.set_option(tcp::no_delay{true});
    asio::co_spawn(acceptor.get_executor(), session(std::move(s)), asio::detached);
  }
}

int main(int, char** argv) {
  std::ifstream file{argv[3]};
  json.assign(std::istreambuf_iterator<char>{file}, {});
  const int threads = std::atoi(argv[2]);
  asio::io_context context{threads};
  asio::co_spawn(context,
                 listen({asio::ip::make_address("127.0.0.1"), static_cast<unsigned short>(std::atoi(argv[1]))}),
                 asio::detached);
  std::vector<std::thread> more;
  for (int i = 1; i < threads; ++i) more.emplace_back([&] { context.run(); });
  context.run();
}
