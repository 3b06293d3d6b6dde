#include <ramie/curl.hpp>
#include <ramie/net/testing.hpp>

#include <curl/curl.h>

#include <atomic>
#include <functional>

namespace ramie::curl {
namespace {

using namespace std::chrono_literals;

/// A server of HTTP/1.1 that is just enough: `answer(request)` is what it sends. It ends each connection after that.
class server {
 public:
  explicit server(std::function<std::string(const std::string&)> answer)
      : answer_{std::move(answer)}, fiber_{spawn([this] { serve(); })} {}
  ~server() {
    listener_.close();
    fiber_.join();
  }
  [[nodiscard]] std::string url(const std::string& path) const {
    return "http://" + listener_.local().to_string() + path;
  }
  std::atomic<int> connections{0};

 private:
  void serve() {
    scope all;
    try {
      for (;;) {
        auto s = std::make_shared<net::tcp_stream>(listener_.accept());
        ++connections;
        all.spawn([this, s] { talk(*s); });
      }
    } catch (const net::io_error&) {
    }
    all.cancel();
  }
  void talk(net::tcp_stream& s) {
    try {
      net::buffered_reader in{s};
      std::string asked;
      std::size_t length = 0;
      while (const auto line = in.read_line()) {
        if (line->empty()) break;
        asked += std::string{*line} + "\n";
        if (line->starts_with("Content-Length: ")) length = std::stoul(std::string{line->substr(16)});
      }
      std::string body(length, '\0');
      static_cast<void>(in.read_exactly(std::as_writable_bytes(std::span{body})));
      s.write_all(answer_(asked + "\n" + body));
      s.shutdown_write();
    } catch (const net::io_error&) {
    }
  }
  std::function<std::string(const std::string&)> answer_;
  net::tcp_listener listener_{{"127.0.0.1", 0}};
  join_handle<void> fiber_;
};

// The server ends each connection after its answer, and has to say so: else a client may send its next request there.
std::string ok(const std::string& body) {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\nConnection: close\r\nX-Kind: Plum\r\n\r\n" + body;
}

TEST(curl_client, transfers_for_many_fibers) {
  net::with_workers([] {
    server s{[](const std::string& asked) { return ok(asked.substr(0, asked.find(" HTTP"))); }};
    client web;
    scope all;
    for (int i = 0; i < 200; ++i)
      all.spawn([&, i] {
        const std::string path = "/" + std::to_string(i);
        const response r = web.perform({.url = s.url(path)});
        EXPECT_EQ(r.status, 200);
        EXPECT_EQ(r.body, "GET " + path);
        EXPECT_EQ(r.header("x-kind"), "Plum");
      });
    all.join();
    EXPECT_EQ(s.connections.load(), 200);
  });
}

TEST(curl_client, sends_bodies_and_headers) {
  run([] {
    server s{[](const std::string& asked) { return ok(asked); }};
    client web;
    const std::string large(300'000, 'x');
    const response r =
        web.perform({.url = s.url("/"), .method = "PUT", .headers = {"X-Fruit: apple", "Expect:"}, .body = large});
    EXPECT_TRUE(r.body.starts_with("PUT / HTTP/1.1"));
    EXPECT_NE(r.body.find("X-Fruit: apple"), std::string::npos);
    EXPECT_TRUE(r.body.ends_with("\n" + large));
    std::size_t size = 0;
    EXPECT_EQ(
        web.perform({.url = s.url("/"), .body = large, .sink = [&](std::string_view part) { size += part.size(); }})
            .body,
        "");
    EXPECT_GT(size, large.size());
    const response head = web.perform({.url = s.url("/"), .method = "HEAD", .configure = [](void* easy) {
                                         curl_easy_setopt(static_cast<CURL*>(easy), CURLOPT_USERAGENT, "a test");
                                       }});
    EXPECT_EQ(head.status, 200);
    EXPECT_EQ(head.body, "");
  });
}

TEST(curl_client, tells_why_a_transfer_failed) {
  run([] {
    server s{[](const std::string& asked) {
      return asked.starts_with("GET /cut") ? std::string{"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"}
                                           : ok(std::string(10'000, 'x'));
    }};
    client web;
    const auto code_of = [&](const request& r) {
      try {
        static_cast<void>(web.perform(r));
      } catch (const transfer_error& e) {
        return e.code();
      }
      return 0;
    };
    EXPECT_EQ(code_of({.url = s.url("/cut")}), CURLE_PARTIAL_FILE);
    EXPECT_EQ(code_of({.url = "http://127.0.0.1:1/"}), CURLE_COULDNT_CONNECT);
    EXPECT_EQ(code_of({.url = "nonsense://x"}), CURLE_UNSUPPORTED_PROTOCOL);
    EXPECT_EQ(code_of({.url = s.url("/"), .body_most = 9'999}), CURLE_WRITE_ERROR);
    EXPECT_THROW(static_cast<void>(web.perform(
                     {.url = s.url("/"), .sink = [](std::string_view) { throw std::runtime_error{"no"}; }})),
                 std::runtime_error);
    EXPECT_EQ(code_of({.url = s.url("/"), .body_most = 10'000}), 0);
  });
}

TEST(curl_client, ends_transfers_that_are_cancelled) {
  net::with_workers([] {
    net::tcp_listener silent{{"127.0.0.1", 0}};
    client web;
    const std::string url = "http://" + silent.local().to_string() + "/";
    std::vector<join_handle<void>> all;
    all.reserve(50);
    for (int i = 0; i < 50; ++i)
      all.push_back(spawn([&] {
        EXPECT_THROW(with_timeout(2ms, [&] { static_cast<void>(web.perform({.url = url})); }), timeout_error);
      }));
    auto stopped = spawn([&] { static_cast<void>(web.perform({.url = url})); });
    for (auto& f : all) f.join();
    stopped.request_stop();
    EXPECT_THROW(stopped.join(), cancelled);
    // The client goes on.
    server s{[](const std::string&) { return ok("here"); }};
    EXPECT_EQ(web.perform({.url = s.url("/")}).body, "here");
  });
}

TEST(curl_client, is_cancelled_at_any_moment) {
  run([] {
    server s{[](const std::string&) { return ok(std::string(100'000, 'x')); }};
    client web;
    for (int i = 0; i < 200; ++i) try {
        with_timeout(std::chrono::microseconds{i * 20}, [&] { static_cast<void>(web.perform({.url = s.url("/")})); });
      } catch (const timeout_error&) {
      }
    EXPECT_EQ(web.perform({.url = s.url("/")}).body.size(), 100'000u);
  });
}

}  // namespace
}  // namespace ramie::curl
