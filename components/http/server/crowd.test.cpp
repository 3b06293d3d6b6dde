// Many connections at a time: those that send nothing, or never a whole request, take up nobody else's room.
#include "../testing.hpp"

#include "../../tls/testing.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <string>
#include <vector>

namespace ramie::http {
namespace {

using namespace std::chrono_literals;

#if RAMIE_TSAN || RAMIE_ASAN
constexpr int crowd = 500;
#else
constexpr int crowd = 10'000;
#endif

/// So many descriptors, if this process may have them.
bool may_open(rlim_t count) {
  rlimit now{};
  if (::getrlimit(RLIMIT_NOFILE, &now) != 0) return false;
  if (now.rlim_cur >= count) return true;
  now.rlim_cur = count;
  if (now.rlim_max < count) return false;
  return ::setrlimit(RLIMIT_NOFILE, &now) == 0;
}

/// Without an end by time: what ends here was displaced.
const server_limits patient{
    .connections_most = 400, .unfinished_most = 200, .handshake_time = 1h, .header_time = 1h, .idle = 1h};

TEST(http_crowd, connections_that_send_nothing_end_when_newer_ones_come) {
  if (!may_open(crowd + 2000)) GTEST_SKIP() << "needs " << crowd + 2000 << " descriptors";
  ramie::run([] {
    server s{patient};
    s.get("/", [](request&, response& rs) { rs.send("hello"); });
    const served at{s};
    // These have been asked something, and stay.
    std::vector<net::tcp_stream> used;
    for (int i = 0; i < 50; ++i) {
      used.push_back(net::tcp_stream::connect(at.at()));
      used.back().write_all(get("/"));
      std::array<std::byte, 4096> part;
      EXPECT_GT(used.back().read_some(part), 0u);
    }
    std::vector<net::tcp_stream> silent;
    for (int i = 0; i < crowd; ++i) {
      silent.push_back(net::tcp_stream::connect(at.at()));
      if (i % 3 == 1) silent.back().write_all("G");
      if (i % 3 == 2) silent.back().write_all("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    }
    EXPECT_EQ(status_of(ask(at.at(), get("/"))), 200);
    for (net::tcp_stream& c : used) {
      c.write_all(get("/"));
      std::array<std::byte, 4096> part;
      EXPECT_GT(c.read_some(part), 0u);
    }
    // The oldest are those that ended.
    static_cast<void>(net::code_of([&] { EXPECT_EQ(net::read_all(silent.front()), ""); }));  // or it was reset
    silent.back().write_all(get("/"));
    std::array<std::byte, 4096> part;
    EXPECT_GT(silent.back().read_some(part), 0u);
    EXPECT_GE(s.statistics().displaced, static_cast<unsigned>(crowd) - 200u - 1u);
    while (s.statistics().open > 260) this_fiber::sleep_for(1ms);  // the last ones have been closed, and notice it
  });
}

TEST(http_crowd, half_open_handshakes_of_tls_end_when_newer_ones_come) {
  if (!may_open(crowd + 2000)) GTEST_SKIP() << "needs " << crowd + 2000 << " descriptors";
  const tls::certificates files;
  ramie::run([&] {
    server s{patient};
    s.get("/", [](request&, response& rs) { rs.send("hello"); });
    const served at{s, tls::server_context{{.certificates = {{files.chain(), files.key()}}}}};
    std::vector<net::tcp_stream> silent;
    for (int i = 0; i < crowd; ++i) {
      silent.push_back(net::tcp_stream::connect(at.at()));
      // The beginning of a record with a ClientHello.
      if (i % 2 == 1) silent.back().write_all(std::string_view{"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", 9});
    }
    client c{{}, tls::client_context{{.roots = files.roots()}}};
    EXPECT_EQ(c.get("https://127.0.0.1:" + at.port() + "/").body(), "hello");
    EXPECT_GE(s.statistics().displaced, static_cast<unsigned>(crowd) - 200u - 1u);
  });
}

TEST(http_crowd, a_full_server_ends_the_oldest_that_has_not_asked_anything) {
  ramie::run([] {
    server s{{.connections_most = 2, .header_time = 1h, .idle = 1h}};
    s.get("/", [](request&, response& rs) { rs.send("hello"); });
    const served at{s};
    net::tcp_stream used = net::tcp_stream::connect(at.at());
    used.write_all(get("/"));
    std::array<std::byte, 4096> part;
    EXPECT_GT(used.read_some(part), 0u);
    net::tcp_stream silent = net::tcp_stream::connect(at.at());
    silent.write_all("GET / HT");
    while (s.statistics().open < 2) this_fiber::sleep_for(1ms);
    EXPECT_EQ(status_of(ask(at.at(), get("/"))), 200);
    // A connection closed before the server has read what was sent is reset.
    static_cast<void>(net::code_of([&] { EXPECT_EQ(net::read_all(silent), ""); }));
    EXPECT_EQ(s.statistics().displaced, 1u);
    used.write_all(get("/"));
    EXPECT_GT(used.read_some(part), 0u);
  });
}

TEST(http_crowd, a_stop_under_load_loses_no_request_that_was_taken) {
  net::with_workers([] {
    server s;
    std::atomic<int> handled{0};
    s.get("/", [&](request&, response& rs) {
      ++handled;
      this_fiber::yield();
      rs.send("hello");
    });
    std::atomic<int> answered{0}, broken{0};
    event enough;
    net::tcp_listener listener{{"127.0.0.1", 0}};
    auto serving = spawn([&] { s.serve(listener); });
    scope clients;
    for (int i = 0; i < 32; ++i)
      clients.spawn([&] {
        try {
          net::tcp_stream c = net::tcp_stream::connect(listener.local());
          net::buffered_reader in{c};
          for (;;) {
            c.write_all(get("/"));
            if (!in.read_line()) return;  // it ended between two requests
            bool is_last = false;
            for (std::string_view field = in.read_line().value(); !field.empty(); field = in.read_line().value())
              is_last |= field == "connection: close";
            std::array<std::byte, 5> body;
            if (!in.read_exactly(body)) ++broken;
            if (++answered == 1000) enough.set();
            if (is_last) return;
          }
        } catch (const net::io_error&) {
          // Reset while it wrote a request that was not taken.
        } catch (const std::bad_optional_access&) {
          ++broken;
        }
      });
    enough.wait();
    s.stop();
    serving.join();
    listener.close();
    clients.join();
    EXPECT_EQ(broken.load(), 0);
    EXPECT_EQ(handled.load(), answered.load());
  });
}

}  // namespace
}  // namespace ramie::http
