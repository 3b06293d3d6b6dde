// Clients that break the rules of HTTP/1.1, or use up what they can: a 4xx, or the end of the connection, and nobody
// else notices.
// Mostly waits.
#include "../testing.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>

namespace ramie::http {
namespace {

using namespace std::chrono_literals;

void add_routes(server& s) {
  s.get("/", [](request&, response& rs) { rs.send("hello\n"); });
  s.post("/", [](request& rq, response& rs) { rs.send("got " + rq.body()); });
}

TEST(http_hostile, no_request_hides_behind_another) {
  // Whatever the server takes for the end of the first, "GET /hidden" must never be answered.
  const std::string hidden = "GET /hidden HTTP/1.1\r\nhost: x\r\n\r\n";
  const std::string post = "POST / HTTP/1.1\r\nhost: x\r\n";
  const struct {
    const char* what;
    std::string text;
    int status;
  } all[] = {
      {"both lengths", post + "content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n" + hidden, 400},
      {"both lengths, other order", post + "transfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n0\r\n\r\n" + hidden,
       400},
      {"two lengths", post + "content-length: 0\r\ncontent-length: 40\r\n\r\n" + hidden, 400},
      {"two equal lengths", post + "content-length: 0\r\ncontent-length: 0\r\n\r\n" + hidden, 400},
      {"a list of lengths", post + "content-length: 0, 40\r\n\r\n" + hidden, 400},
      {"a length with a sign", post + "content-length: +0\r\n\r\n" + hidden, 400},
      {"a negative length", post + "content-length: -1\r\n\r\n" + hidden, 400},
      {"a huge length", post + "content-length: 18446744073709551616\r\n\r\n" + hidden, 400},
      {"a hexadecimal length", post + "content-length: 0x10\r\n\r\n" + hidden, 400},
      {"an empty length", post + "content-length:\r\n\r\n" + hidden, 400},
      {"a coding that is not known", post + "transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + hidden, 501},
      {"chunked, not last", post + "transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n" + hidden, 501},
      {"two codings", post + "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n" + hidden, 400},
      {"a coding with a tab",
       post +
           "transfer-encoding:\x0b"
           "chunked\r\n\r\n0\r\n\r\n" +
           hidden,
       400},
      {"chunks in HTTP/1.0", "POST / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n" + hidden, 400},
      {"a space before the colon", post + "content-length : 40\r\n\r\n" + hidden, 400},
      {"a folded header", post + "x: y\r\n content-length: 40\r\n\r\n" + hidden, 400},
      {"a folded length", post + "content-length:\r\n 40\r\n\r\n" + hidden, 400},
      {"a bare LF", post + "x: y\ncontent-length: 40\r\n\r\n" + hidden, 400},
      {"a bare CR", post + "x: y\rcontent-length: 40\r\n\r\n" + hidden, 400},
      {"bare LFs only", "GET / HTTP/1.1\nhost: x\n\n" + hidden, 400},
      {"a NUL", post + std::string("x: a\0b\r\n\r\n", 10) + hidden, 400},
      {"no host", "GET / HTTP/1.1\r\n\r\n" + hidden, 400},
      {"two hosts", "GET / HTTP/1.1\r\nhost: x\r\nhost: y\r\n\r\n" + hidden, 400},
      {"two hosts in one", "GET / HTTP/1.1\r\nhost: x,y\r\n\r\n" + hidden, 400},
      {"a host with a user", "GET / HTTP/1.1\r\nhost: x@y\r\n\r\n" + hidden, 400},
      {"a host with no number as its port", "GET / HTTP/1.1\r\nhost: x:y\r\n\r\n" + hidden, 400},
      {"a host that is no name", "GET / HTTP/1.1\r\nhost: <x>\r\n\r\n" + hidden, 400},
      {"a host with a slash", "GET / HTTP/1.1\r\nhost: x/y\r\n\r\n" + hidden, 400},
      {"no version", "GET /\r\n\r\n" + hidden, 400},
      {"a version that is not known", "GET / HTTP/3.0\r\nhost: x\r\n\r\n" + hidden, 505},
      {"a target with a user", "GET http://y@x/ HTTP/1.1\r\nhost: x\r\n\r\n" + hidden, 400},
      {"a target without a host", "GET http:///x HTTP/1.1\r\nhost: x\r\n\r\n" + hidden, 400},
      {"a target with a fragment", "GET /#x HTTP/1.1\r\nhost: x\r\n\r\n" + hidden, 400},
      {"a target that begins with no slash", "GET x HTTP/1.1\r\nhost: x\r\n\r\n" + hidden, 400},
      {"everything as a target", "GET * HTTP/1.1\r\nhost: x\r\n\r\n" + hidden, 400},
      {"a tunnel to a path", "CONNECT / HTTP/1.1\r\nhost: x\r\n\r\n" + hidden, 400},
      {"a target of an unknown scheme", "GET ftp://x/ HTTP/1.1\r\nhost: x\r\n\r\n" + hidden, 400},
      {"a target of a tunnel", "CONNECT x:80 HTTP/1.1\r\nhost: x:80\r\n\r\n" + hidden, 400},
      {"a control character in the target", "GET /\x01 HTTP/1.1\r\nhost: x\r\n\r\n" + hidden, 400},
      {"no method", " / HTTP/1.1\r\nhost: x\r\n\r\n" + hidden, 400},
      {"a header without a name", post + ": y\r\n\r\n" + hidden, 400},
      {"a header without a colon", post + "xy\r\n\r\n" + hidden, 400},
      {"a TLS client", std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n\n", 13), 400},
  };
  ramie::run([&] {
    server s;
    add_routes(s);
    std::string seen;
    s.get("/hidden", [&](request&, response& rs) { rs.send(seen += "x"); });
    const served at{s};
    for (const auto& one : all) {
      const int status = status_of(ask(at.at(), one.text));
      EXPECT_EQ(status, one.status) << one.what;
      EXPECT_EQ(seen, "") << one.what;
      seen.clear();
    }
    EXPECT_EQ(status_of(ask(at.at(), get("/"))), 200);
  });
}

TEST(http_hostile, the_target_names_the_host) {
  ramie::run([] {
    server s;
    s.get("/",
          [](request& rq, response& rs) { rs.send(std::string{rq.authority()} + " " + std::string{rq.target()}); });
    const served at{s};
    const auto say = [&](const std::string& line, const std::string& fields = "host: x\r\n") {
      return body_of(ask(at.at(), line + "\r\n" + fields + "\r\n"));
    };
    EXPECT_EQ(say("GET /?a HTTP/1.1"), "x /?a");
    EXPECT_EQ(say("GET http://y:80/?a HTTP/1.1"), "y:80 /?a");  // RFC 9112, 3.2.2: the header is not looked at
    EXPECT_EQ(say("GET HTTPS://y?a HTTP/1.1"), "y /?a");
    EXPECT_EQ(say("GET http://y HTTP/1.0", ""), "y /");
    EXPECT_EQ(status_of(ask(at.at(), "OPTIONS * HTTP/1.1\r\nhost: x\r\n\r\n")), 204);
    EXPECT_EQ(status_of(ask(at.at(), "GET / HTTP/1.1\r\nhost:\r\n\r\n")), 200);
  });
}

TEST(http_hostile, one_empty_line_is_skipped_however_it_comes) {
  ramie::run([] {
    server s;
    add_routes(s);
    const served at{s};
    // Each piece is read before the next is sent: the server answers a request that was in it.
    const auto in_pieces = [&](const std::vector<std::string>& pieces) {
      net::tcp_stream c = net::tcp_stream::connect(at.at());
      for (const std::string& piece : pieces) {
        c.write_all(piece);
        this_fiber::sleep_for(std::chrono::milliseconds{5});  // likely to be read on its own; right in any case
      }
      c.shutdown_write();
      std::string all;
      std::array<std::byte, 4096> part;
      while (const std::size_t n = c.read_some(part)) all += net::text_of(std::span{part}.first(n));
      return status_of(all);
    };
    EXPECT_EQ(in_pieces({"\r\n" + get("/")}), 200);
    EXPECT_EQ(in_pieces({"\r", "\n" + get("/")}), 200);
    EXPECT_EQ(in_pieces({"\r\n\r\n" + get("/")}), 400);
    EXPECT_EQ(in_pieces({"\r\n", "\r\n", get("/")}), 400);
  });
}

TEST(http_hostile, broken_chunks_are_refused) {
  ramie::run([] {
    server s;
    add_routes(s);
    const served at{s};
    const std::string post = "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
    const auto status = [&](const std::string& chunks) { return status_of(ask(at.at(), post + chunks)); };
    EXPECT_EQ(status("3\r\nabc\r\n0\r\n\r\n"), 200);
    EXPECT_EQ(status("3;a=\"b\"\r\nabc\r\n0\r\n\r\n"), 200);
    EXPECT_EQ(status("3\nabc\n0\n\n"), 400);  // bare LF: waits for a CRLF, and the client ends
    EXPECT_EQ(status("-3\r\nabc\r\n0\r\n\r\n"), 400);
    EXPECT_EQ(status("+3\r\nabc\r\n0\r\n\r\n"), 400);
    EXPECT_EQ(status("0x3\r\nabc\r\n0\r\n\r\n"), 400);
    EXPECT_EQ(status("g\r\nabc\r\n0\r\n\r\n"), 400);
    EXPECT_EQ(status("3\r\nabcd\r\n0\r\n\r\n"), 400);                                  // longer than it says
    EXPECT_EQ(status("10000000000000000\r\nabc"), 400);                                // 2^64
    EXPECT_EQ(status("ffffffffffffffff\r\nabc"), 400);                                 // never complete
    EXPECT_EQ(status("3;" + std::string(20'000, 'x') + "\r\nabc\r\n0\r\n\r\n"), 400);  // does not fit
    std::string extensions;
    for (int i = 0; i < 100; ++i) extensions += "1;" + std::string(1000, 'x') + "\r\na\r\n";
    EXPECT_EQ(status(extensions + "0\r\n\r\n"), 400);
    EXPECT_EQ(status("3;a\nb\r\nabc\r\n0\r\n\r\n"), 400);
    EXPECT_EQ(status("3;a=\"\n\"\r\nabc\r\n0\r\n\r\n"), 400);
    EXPECT_EQ(status("3\r\nabc\r\n0\r\na: b\r\n c\r\n\r\n"), 400);  // folded
    EXPECT_EQ(status("3\r\nabc\r\n0\n\r\n"), 400);
    EXPECT_EQ(status("3\r\nabc\r\n0\r\na: b\n\n"), 400);
    EXPECT_EQ(status("7fffffffffffffff\r\nabc"), 413);  // before it has come
    EXPECT_EQ(status("3 \r\nabc\r\n0\r\n\r\n"), 400);
    EXPECT_EQ(status("3\r\nabc\r\n0\r\ncontent-length: 5\r\n\r\n"), 400);  // in a trailer
    std::string trailers;
    for (int i = 0; i < 1000; ++i) trailers += "t: " + std::string(100, 'x') + "\r\n";
    EXPECT_EQ(status("3\r\nabc\r\n0\r\n" + trailers + "\r\n"), 400);  // do not fit
    EXPECT_EQ(status_of(ask(at.at(), get("/"))), 200);
  });
}

TEST(http_hostile, limits_on_heads_and_bodies) {
  ramie::run([] {
    server s{{.header_most = 1000, .headers_most = 10, .body_most = 100}};
    add_routes(s);
    const served at{s};
    EXPECT_EQ(status_of(ask(at.at(), get("/", "x: " + std::string(900, 'x') + "\r\n"))), 200);
    EXPECT_EQ(status_of(ask(at.at(), get("/", "x: " + std::string(1000, 'x') + "\r\n"))), 431);
    EXPECT_EQ(status_of(ask(at.at(), get("/" + std::string(5000, 'x')))), 414);
    std::string many;
    for (int i = 0; i < 9; ++i) many += "x: y\r\n";
    EXPECT_EQ(status_of(ask(at.at(), get("/", many))), 200);
    EXPECT_EQ(status_of(ask(at.at(), get("/", many + "x: y\r\n"))), 431);
    const std::string post = "POST / HTTP/1.1\r\nhost: x\r\n";
    EXPECT_EQ(status_of(ask(at.at(), post + "content-length: 100\r\n\r\n" + std::string(100, 'x'))), 200);
    EXPECT_EQ(status_of(ask(at.at(), post + "content-length: 101\r\n\r\n")), 413);
    EXPECT_EQ(status_of(ask(at.at(), post + "transfer-encoding: chunked\r\n\r\n65\r\n" + std::string(101, 'x') +
                                         "\r\n0\r\n\r\n")),
              413);
    EXPECT_EQ(s.statistics().refused, 3u);
  });
  ramie::run([] {
    server s{{.target_most = 10}};
    s.get("/{name}", [](request&, response& rs, const std::string& name) { rs.send(name); });
    const served at{s};
    EXPECT_EQ(body_of(ask(at.at(), get("/123456789"))), "123456789");
    EXPECT_EQ(status_of(ask(at.at(), get("/1234567890"))), 414);
    client c;
    EXPECT_EQ(c.get("http://127.0.0.1:" + at.port() + "/1234567890").status(), 414);
    client second{{.versions = http_versions::only_2}};
    EXPECT_EQ(second.get("http://127.0.0.1:" + at.port() + "/1234567890").status(), 414);
    EXPECT_EQ(second.get("http://127.0.0.1:" + at.port() + "/123456789").status(), 200);
  });
}

TEST(http_hostile, bodies_that_trickle_are_cut_off) {
  // By rate: each part comes within body_idle.
  ramie::run([] {
    server s{{.body_idle = 300ms, .body_rate = 1'000'000}};
    add_routes(s);
    const served at{s};
    for (const bool chunks : {false, true}) {
      net::tcp_stream c = net::tcp_stream::connect(at.at());
      c.write_all(std::string{"POST / HTTP/1.1\r\nhost: x\r\n"} +
                  (chunks ? "transfer-encoding: chunked\r\n\r\n" : "content-length: 100000\r\n\r\n"));
      auto trickle = spawn([&] {
        static_cast<void>(net::code_of([&] {
          for (;;) {
            c.write_all(chunks ? "1\r\nx\r\n" : "x");
            this_fiber::sleep_for(10ms);
          }
        }));
      });
      std::array<std::byte, 4096> part;
      const std::size_t n = c.read_some(part);
      EXPECT_EQ(status_of(net::text_of(std::span{part}.first(n))), 408);
      c.close();
      trickle.join();
    }
  });
}

TEST(http_hostile, slow_clients_are_cut_off_and_hold_up_nobody) {
  net::with_workers([] {
    server s{{.header_time = 1000ms, .body_idle = 1000ms, .idle = 2000ms}};
    add_routes(s);
    const served at{s};
    scope all;
    for (int i = 0; i < 50; ++i)
      all.spawn([&, i] {
        net::tcp_stream c = net::tcp_stream::connect(at.at());
        try {
          // Half a head, byte by byte; half a body; nothing at all.
          if (i % 3 == 1) c.write_all("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nab");
          if (i % 3 == 0) c.write_all("GET / HTTP/1.1\r\n");
          while (i % 3 == 0) {  // NOLINT(bugprone-infinite-loop): until it throws
            c.write_all("x");
            this_fiber::sleep_for(3ms);
          }
          const std::string said = net::read_all(c);
          EXPECT_EQ(status_of(said), i % 3 == 1 ? 408 : 0);
        } catch (const net::io_error&) {
          // It was cut off while it wrote.
        }
      });
    EXPECT_EQ(status_of(ask(at.at(), get("/"))), 200);
    all.join();
    EXPECT_EQ(status_of(ask(at.at(), get("/"))), 200);
  });
}

TEST(http_hostile, a_client_that_never_reads_is_cut_off) {
  ramie::run([] {
    server s{{.write_time = 50ms}};
    event ended;
    s.get("/", [&](request&, response& rs) {
      try {
        for (;;) rs.write(std::string(100'000, 'x'));
      } catch (const timeout_error&) {
        ended.set();
        throw;
      }
    });
    const served at{s};
    net::tcp_stream c = net::tcp_stream::connect(at.at());
    c.write_all(get("/"));
    ended.wait();
  });
}

TEST(http_hostile, connections_beyond_the_limit_wait) {
  ramie::run([] {
    server s{{.connections_most = 2}};
    add_routes(s);
    event go_on;
    std::atomic<int> begun{0};
    s.get("/wait", [&](request&, response& rs) {
      ++begun;
      go_on.wait();
      rs.send("waited");
    });
    const served at{s};
    auto a = spawn([&] { return ask(at.at(), get("/wait", "connection: close\r\n")); });
    auto b = spawn([&] { return ask(at.at(), get("/wait", "connection: close\r\n")); });
    while (begun != 2) this_fiber::sleep_for(1ms);
    auto third = spawn([&] { return ask(at.at(), get("/")); });
    this_fiber::sleep_for(50ms);
    EXPECT_FALSE(third.has_ended());
    go_on.set();
    EXPECT_EQ(status_of(third.join()), 200);
    EXPECT_EQ(body_of(a.join()), "waited");
    EXPECT_EQ(body_of(b.join()), "waited");
    EXPECT_EQ(s.statistics().displaced, 0u);
  });
}

TEST(http_hostile, idle_connections_make_room) {
  ramie::run([] {
    server s{{.connections_most = 3, .idle = 1h, .drain_time = 1s}};
    add_routes(s);
    event busy, go_on;
    s.get("/wait", [&](request&, response& rs) {
      busy.set();
      go_on.wait();
      rs.send("waited");
    });
    const served at{s};
    client first, second{{.versions = http_versions::only_2}}, third;
    const std::string url = "http://127.0.0.1:" + at.port();
    EXPECT_EQ(first.get(url + "/").body(), "hello\n");
    EXPECT_EQ(second.get(url + "/").body(), "hello\n");
    auto waits = spawn([&] { return third.get(url + "/wait").body(); });
    busy.wait();
    // Idle are the first, which has been so longer, and the second, of HTTP/2.
    EXPECT_EQ(status_of(ask(at.at(), get("/"))), 200);
    while (s.statistics().displaced < 1) this_fiber::sleep_for(1ms);
    std::vector<net::tcp_stream> more;
    for (int i = 0; i < 2; ++i) {
      more.push_back(net::tcp_stream::connect(at.at()));
      more.back().write_all(get("/"));
      std::array<std::byte, 4096> part;
      EXPECT_GT(more.back().read_some(part), 0u);
    }
    while (s.statistics().displaced < 2) this_fiber::sleep_for(1ms);
    go_on.set();
    EXPECT_EQ(waits.join(), "waited");  // whatever was closed, it was none with a request
    // One that becomes idle while somebody waits for room is ended then.
    server full{{.connections_most = 1, .idle = 1h}};
    event begun, end;
    full.get("/wait", [&](request&, response& rs) {
      begun.set();
      end.wait();
      rs.send("waited");
    });
    full.get("/", [&](request&, response& rs) { rs.send("hello"); });
    const served there{full};
    auto only = spawn([&] { return client{}.get("http://127.0.0.1:" + there.port() + "/wait").body(); });
    begun.wait();
    auto next = spawn([&] { return status_of(ask(there.at(), get("/"))); });
    this_fiber::sleep_for(10ms);  // likely to wait by then; right in any case
    end.set();
    EXPECT_EQ(only.join(), "waited");
    EXPECT_EQ(next.join(), 200);
  });
}

TEST(http_hostile, silent_connections_hold_up_nobody_and_end) {
  ramie::run([] {
    server s{{.header_time = 1000ms, .idle = 1000ms}};
    add_routes(s);
    const served at{s};
    std::vector<net::tcp_stream> silent;
    silent.reserve(200);
    for (int i = 0; i < 200; ++i) silent.push_back(net::tcp_stream::connect(at.at()));
    EXPECT_EQ(status_of(ask(at.at(), get("/"))), 200);
    for (net::tcp_stream& c : silent) EXPECT_EQ(net::read_all(c), "");
  });
}

}  // namespace
}  // namespace ramie::http
