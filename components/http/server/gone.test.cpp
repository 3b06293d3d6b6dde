// Clients that are gone while their handlers are at work.
// Mostly waits.
#include "../testing.hpp"

#include <gtest/gtest.h>

#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>

namespace ramie::http {
namespace {

using namespace std::chrono_literals;

/// A handler that waits until it is cancelled, or for `go_on`.
struct patient_handler {
  event begun, go_on, ended;
  std::atomic<bool> cancelled_{false};

  void operator()(response& rs) {
    begun.set();
    try {
      go_on.wait();
      rs.send("waited");
    } catch (const cancelled&) {
      cancelled_.store(true);
      ended.set();
      throw;
    }
    ended.set();
  }
};

TEST(http_gone, a_handler_ends_with_its_client) {
  const tls::certificates files;
  for (const bool encrypted : {false, true})
    for (const bool resets : {false, true})
      ramie::run([&] {
        server s;
        patient_handler h;
        s.get("/", [&](request&, response& rs) { h(rs); });
        const tls::server_context mine{{.certificates = {{files.chain(), files.key()}}}};
        std::optional<served> at;
        if (encrypted) at.emplace(s, mine);
        else at.emplace(s);
        net::tcp_stream below = net::tcp_stream::connect(at->at());
        const int fd = below.native_handle();
        net::any_stream c{std::move(below)};
        if (encrypted)
          c = tls::stream::connect(std::move(c), tls::client_context{{.roots = files.roots()}}, "127.0.0.1");
        c.write_all(get("/"));
        h.begun.wait();
        if (resets) {
          const linger at_once{1, 0};  // close sends a reset
          EXPECT_EQ(::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
        }
        c.close();
        h.ended.wait();
        EXPECT_TRUE(h.cancelled_.load()) << (encrypted ? "encrypted" : "plain") << (resets ? ", reset" : "");
        while (s.statistics().open != 0) this_fiber::sleep_for(1ms);
        EXPECT_EQ(s.statistics().requests, 1u);
      });
}

TEST(http_gone, a_client_that_only_stops_talking_gets_its_response) {
  ramie::run([] {
    server s;
    s.get("/", [](request&, response& rs) {
      this_fiber::sleep_for(300ms);
      rs.send("here");
    });
    server waits{{.half_close_grace = std::chrono::nanoseconds::max()}};
    waits.get("/", [](request&, response& rs) {
      this_fiber::sleep_for(2500ms);
      rs.send("here");
    });
    const served at{s}, there{waits};
    EXPECT_EQ(body_of(ask(at.at(), get("/"))), "here");
    EXPECT_EQ(body_of(ask(there.at(), get("/"))), "here");
  });
}

TEST(http_gone, a_stream_to_head_ends_with_its_client) {
  net::with_workers([] {
    server s;
    event ended;
    s.get("/", [&](request&, response& rs) {
      try {
        for (;;) rs.write("x");
      } catch (const cancelled&) {
        ended.set();
        throw;
      }
    });
    s.get("/other", [](request&, response& rs) { rs.send("other"); });
    const served at{s};
    net::tcp_stream c = net::tcp_stream::connect(at.at());
    c.write_all("HEAD / HTTP/1.1\r\nhost: x\r\n\r\n");
    std::array<std::byte, 4096> part;
    EXPECT_GT(c.read_some(part), 0u);
    EXPECT_EQ(body_of(ask(at.at(), get("/other"))), "other");  // others run meanwhile
    c.close();
    ended.wait();
  });
}

}  // namespace
}  // namespace ramie::http
