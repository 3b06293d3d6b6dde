// The client, with servers of ours and with servers that say what they are told to.
#include "../testing.hpp"

#include "../../tls/testing.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace ramie::http {
namespace {

using namespace std::chrono_literals;

/// Answers the connections in turn: each with its texts, one for each request, and then ends it.
class scripted {
 public:
  explicit scripted(std::vector<std::vector<std::string>> script)
      : fiber_{spawn([this, all = std::move(script)] {
          for (const std::vector<std::string>& one : all) {
            net::tcp_stream c = listener_.accept();
            net::buffered_reader in{c};
            for (const std::string& answer : one) {
              while (!in.read_line().value_or("").empty()) {
              }
              c.write_all(answer);
            }
            c.shutdown_write();
          }
        })} {}
  [[nodiscard]] std::string url() const { return "http://" + listener_.local().to_string() + "/"; }

 private:
  net::tcp_listener listener_ = on_any_port();
  join_handle<void> fiber_;
};

std::string base_of(const served& at) { return "http://" + at.at().to_string(); }

TEST(http_client, asks_and_keeps_its_connection) {
  net::with_workers([] {
    server s;
    s.get("/", [](request& rq, response& rs) {
      rs.header("x", "y").send("hello " + std::string{rq.header("a").value_or("-")});
    });
    s.post("/", [](request& rq, response& rs) { rs.send(rq.body() + std::string{rq.header("content-type").value()}); });
    s.get("/parts", [](request&, response& rs) {
      for (int i = 0; i < 100; ++i) rs.write(std::string(1000, 'x'));
    });
    const served at{s};
    client c;
    for (int i = 0; i < 3; ++i) {
      client_response r = c.request(base_of(at) + "/", {.headers = {{"A", "b"}}});
      EXPECT_EQ(r.status(), 200);
      EXPECT_EQ(r.header("X"), "y");
      EXPECT_EQ(r.body(), "hello b");
      EXPECT_EQ(c.post(base_of(at) + "/", "data", "text/plain").body(), "datatext/plain");
      EXPECT_EQ(c.get(base_of(at) + "/parts").body(), std::string(100'000, 'x'));
      EXPECT_EQ(c.get(base_of(at) + "/none").status(), 404);  // its body is not read: a new connection
      EXPECT_EQ(c.request(base_of(at) + "/", {.method = "HEAD"}).body(), "");
    }
    EXPECT_LE(s.statistics().connections, 4u);
    EXPECT_EQ(s.statistics().requests, 15u);
  });
}

TEST(http_client, many_fibers_share_it) {
  net::with_workers([] {
    server s;
    s.get("/{}", [](request&, response& rs, int n) { rs.send(std::to_string(n)); });
    const served at{s};
    client c;
    scope all;
    for (int i = 0; i < 100; ++i)
      all.spawn([&, i] { EXPECT_EQ(c.get(base_of(at) + "/" + std::to_string(i)).body(), std::to_string(i)); });
    all.join();
  });
}

TEST(http_client, follows_redirects_and_keeps_secrets_to_the_first_host) {
  ramie::run([] {
    server other, s;
    other.get("/", [](request& rq, response& rs) { rs.send(rq.header("authorization") ? "leaked" : "kept"); });
    const served there{other};
    s.get("/a/b", [](request&, response& rs) { rs.redirect("c?d=e"); });
    s.get("/a/c", [](request& rq, response& rs) {
      rs.send(rq.query("d").value() + std::string{rq.header("authorization").value_or("-")});
    });
    s.get("/away", [&](request&, response& rs) { rs.redirect(base_of(there) + "/", 307); });
    s.get("/login", [](request&, response& rs) { rs.redirect("../a/c?d=http://x/"); });
    s.get("/loop", [](request&, response& rs) { rs.redirect("/loop"); });
    s.get("/ftp", [](request&, response& rs) { rs.redirect("ftp://x/"); });
    s.post("/", [](request& rq, response& rs) {
      static_cast<void>(rq.body());
      rs.redirect("/a/c", 303);
    });
    const served at{s};
    client c;
    const client_request secret{.headers = {{"Authorization", "plum"}}};
    client_response r = c.request(base_of(at) + "/a/b", secret);
    EXPECT_EQ(r.url(), base_of(at) + "/a/c?d=e");
    EXPECT_EQ(r.body(), "eplum");
    EXPECT_EQ(c.request(base_of(at) + "/login", secret).url(), base_of(at) + "/a/c?d=http://x/");
    EXPECT_EQ(c.request(base_of(at) + "/away", secret).body(), "kept");
    EXPECT_THROW(static_cast<void>(c.get(base_of(at) + "/loop")), net::io_error);
    EXPECT_THROW(static_cast<void>(c.get(base_of(at) + "/ftp")), net::io_error);
    EXPECT_EQ(c.post(base_of(at) + "/", "x").status(), 303);
  });
}

TEST(http_client, repeats_what_may_be_repeated_if_a_kept_connection_has_ended) {
  const std::string answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
  for (const bool post : {false, true}) {
    SCOPED_TRACE(post);
    ramie::run([&] {
      scripted s{{{answer, ""}, {answer}}};  // it takes the second request, and ends
      client c;
      EXPECT_EQ(c.get(s.url()).body(), "ok");
      if (post) {
        EXPECT_THROW(static_cast<void>(c.post(s.url(), "x")), net::io_error);
      }
      EXPECT_EQ(c.get(s.url()).body(), "ok");
    });
  }
}

TEST(http_client, knows_where_a_body_ends_or_refuses) {
  ramie::run([] {
    const auto body = [](const std::string& answer) {
      scripted s{{{answer}}};
      return client{}.get(s.url()).body();
    };
    const auto refused = [&](const std::string& answer) { return net::code_of([&] { body(answer); }); };
    const std::string ok = "HTTP/1.1 200 OK\r\n";
    EXPECT_EQ(body(ok + "content-length: 3\r\n\r\nabc"), "abc");
    EXPECT_EQ(body(ok + "transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"), "abc");
    EXPECT_EQ(body(ok + "\r\nup to the end"), "up to the end");
    EXPECT_EQ(body("HTTP/1.1 100 Continue\r\n\r\n" + ok + "content-length: 1\r\n\r\na"), "a");
    EXPECT_EQ(body("HTTP/1.1 204 No Content\r\n\r\n"), "");
    EXPECT_EQ(refused(ok + "content-length: 4\r\n\r\nabc"), net::io_errc::unexpected_end);
    EXPECT_EQ(refused(ok + "transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n"), net::io_errc::unexpected_end);
    for (const char* broken : {"content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
                               "content-length: 3\r\ncontent-length: 3\r\n\r\nabc", "content-length: -3\r\n\r\nabc",
                               "transfer-encoding: gzip\r\n\r\nabc",
                               "transfer-encoding: chunked\r\n\r\n-3\r\nabc\r\n0\r\n\r\n", "no colon\r\n\r\n"})
      EXPECT_EQ(refused(ok + broken), std::errc::protocol_error) << broken;
    EXPECT_EQ(refused("SSH-2.0-x\r\n\r\n"), std::errc::protocol_error);
    EXPECT_EQ(refused("HTTP/1.1 101 Switching Protocols\r\n\r\n"), std::errc::protocol_error);
    EXPECT_EQ(refused(ok + "x: " + std::string(100'000, 'y') + "\r\n\r\n"), std::errc::protocol_error);
    EXPECT_EQ(refused(""), net::io_errc::unexpected_end);
  });
}

TEST(http_client, reads_heads_strictly) {
  ramie::run([] {
    const std::string ok = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n";
    const auto header = [](const std::string& answer) {
      scripted s{{{answer}}};
      const client_response r = client{}.get(s.url());
      return std::string{r.header("x").value_or("-")};
    };
    EXPECT_EQ(header(ok + "x: a\r\n  b\r\n\tc\r\n\r\n"), "a    b  \tc");  // folded (RFC 9112, 5.2)
    EXPECT_EQ(header(ok + "x: a\r\n \r\n\r\n"), "a");
    for (const std::string& broken :
         {ok + "x: a\nb: c\r\n\r\n", ok + "x: a\rb\r\n\r\n", ok + std::string("x: \0\r\n\r\n", 8),
          ok + "x: \x01\r\n\r\n", ok + "x : a\r\n\r\n", std::string{"HTTP/1.1 200 OK\r\n x: a\r\n\r\n"},
          std::string{"HTTP/1.1 200 OK\r\ncontent-length: 5, 5\r\n\r\nhello"}})
      EXPECT_EQ(net::code_of([&] { header(broken); }), std::errc::protocol_error) << broken;
  });
}

TEST(http_client, what_comes_unasked_answers_nothing) {
  ramie::run([] {
    net::tcp_listener l = on_any_port();
    event said;
    auto serves = spawn([&] {
      std::array<std::byte, 4096> part;
      net::tcp_stream a = l.accept();
      static_cast<void>(a.read_some(part));
      a.write_all("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nfirst");
      this_fiber::sleep_for(20ms);
      a.write_all("HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\nunasked");
      said.set();
      net::tcp_stream b = l.accept();
      static_cast<void>(b.read_some(part));
      b.write_all("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nsecond");
    });
    client c;
    const std::string url = "http://" + l.local().to_string();
    EXPECT_EQ(c.get(url).body(), "first");
    said.wait();
    this_fiber::sleep_for(20ms);  // the kernel has it; the poller looks
    EXPECT_EQ(c.get(url).body(), "second");
    serves.join();
  });
}

TEST(http_client, old_connections_to_other_hosts_are_closed) {
  net::with_workers([] {
    server a, b;
    for (server* s : {&a, &b}) s->get("/", [](request&, response& rs) { rs.send("hello"); });
    const served at_a{a}, at_b{b};
    client c{{.idle = 20ms}};
    EXPECT_EQ(c.get(base_of(at_a)).body(), "hello");
    EXPECT_EQ(a.statistics().open, 1u);
    while (a.statistics().open != 0) {
      this_fiber::sleep_for(5ms);
      EXPECT_EQ(c.get(base_of(at_b)).body(), "hello");
    }
  });
}

TEST(http_client, reads_what_is_packed) {
  each_way(
      [](server& s) {
        s.get("/", [](request& rq, response& rs) {
          rs.header("x", std::string{rq.header("accept-encoding").value_or("-")});
          rs.compressed().send(std::string(100'000, 'x'));
        });
      },
      [](client& c, const std::string& url, const std::string& way) {
        client_response r = c.get(url + "/");
        EXPECT_EQ(r.header("x"), "gzip") << way;
        EXPECT_EQ(r.header("content-encoding"), std::nullopt) << way;
        EXPECT_EQ(r.header("content-length"), std::nullopt) << way;
        EXPECT_EQ(r.body(), std::string(100'000, 'x')) << way;
        r = c.request(url + "/", {.headers = {{"Accept-Encoding", "gzip"}}});
        EXPECT_EQ(r.header("content-encoding"), "gzip") << way;
        EXPECT_LT(r.body().size(), 1000u) << way;
        r = c.request(url + "/", {.headers = {{"range", "bytes=0-9"}}});
        EXPECT_EQ(r.header("x"), "-") << way;
        EXPECT_EQ(r.body().size(), 100'000u) << way;
        EXPECT_EQ(c.request(url + "/", {.method = "HEAD"}).body(), "") << way;
      });
  net::with_workers([] {
    server s;
    s.get("/", [](request&, response& rs) { rs.compressed().send(std::string(100'000, 'x')); });
    const served at{s};
    client c;
    for (int i = 0; i < 3; ++i) EXPECT_EQ(c.get(base_of(at)).body().size(), 100'000u);
    EXPECT_EQ(s.statistics().connections, 1u);  // it was kept
  });
}

TEST(http_client, refuses_what_is_no_gzip_or_ends_early) {
  ramie::run([] {
    // Of "hello", by gzip.
    const std::string hello{"\x1f\x8b\x08\0\0\0\0\0\0\x03\xcb\x48\xcd\xc9\xc9\x07\0\x86\xa6\x10\x36\x05\0\0\0", 25};
    const auto body = [](const std::string& packed, bool whole = true, client_options o = {}) {
      const std::string head = "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n";
      scripted s{
          {{head + (whole ? "content-length: " + std::to_string(packed.size()) + "\r\n\r\n" : "\r\n") + packed}}};
      return client{o}.get(s.url()).body();
    };
    const auto refused = [&](const std::string& packed) { return net::code_of([&] { body(packed); }); };
    EXPECT_EQ(body(hello), "hello");
    EXPECT_EQ(body(hello, false), "hello");
    EXPECT_EQ(body(hello + hello), "hellohello");
    EXPECT_EQ(body(hello, true, {.unpack = false}), hello);
    EXPECT_EQ(refused(hello.substr(0, 24)), net::io_errc::unexpected_end);
    EXPECT_EQ(refused(hello + hello.substr(0, 5)), net::io_errc::unexpected_end);
    EXPECT_EQ(refused("hello"), std::errc::protocol_error);
    EXPECT_EQ(refused(hello + "hello"), std::errc::protocol_error);
    std::string broken = hello;
    broken[18] ^= 1;  // the sum
    EXPECT_EQ(refused(broken), std::errc::protocol_error);
    EXPECT_EQ(body(""), "");
    // Much that comes to nothing.
    std::string nothing, empty{"\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0", 20};
    for (int i = 0; i < 1000; ++i) nothing += empty;
    EXPECT_EQ(body(nothing), "");
    EXPECT_EQ(net::code_of([&] { body(nothing, true, {.body_most = 19'999}); }), net::io_errc::too_long);
  });
  // What is small on its way may be large.
  ramie::run([] {
    server s;
    s.get("/", [](request&, response& rs) { rs.compressed().send(std::string(10'000'000, 'x')); });
    const served at{s};
    client c{{.body_most = 1'000'000}};
    EXPECT_EQ(net::code_of([&] { static_cast<void>(c.get(base_of(at)).body()); }), net::io_errc::too_long);
    EXPECT_EQ(net::code_of([&] { static_cast<void>(client{}.get(base_of(at)).body(9'999'999)); }),
              net::io_errc::too_long);
    EXPECT_EQ(client{}.get(base_of(at)).body(10'000'000).size(), 10'000'000u);
  });
}

TEST(http_client, a_server_that_says_nothing_is_left) {
  ramie::run([] {
    net::tcp_listener l{{"127.0.0.1", 0}};
    client c{{.response_time = 20ms}};
    EXPECT_THROW(static_cast<void>(c.get("http://" + l.local().to_string())), timeout_error);
  });
}

TEST(http_client, https_verifies) {
  const tls::certificates files;
  ramie::run([&] {
    server s;
    s.get("/", [](request& rq, response& rs) { rs.send(rq.is_encrypted() ? "encrypted" : "plain"); });
    const served at{s,
                    tls::server_context{{.certificates = {{files.chain(), files.key()}}, .alpn = server::protocols()}}};
    const std::string url = "https://127.0.0.1:" + at.port() + "/";
    client c{{}, tls::client_context{{.roots = files.roots()}}};
    EXPECT_EQ(c.get(url).body(), "encrypted");
    EXPECT_EQ(net::code_of([&] { static_cast<void>(client{}.get(url)); }), tls::errc::untrusted);
  });
}

TEST(http_client, wrong_arguments_are_named) {
  ramie::run([] {
    client c;
    for (const char* url : {"", "localhost", "ftp://x/", "http://", "http://x:0/", "http://x:70000/", "http://u:p@x/",
                            "http://x/a b", "ws://x/"})
      EXPECT_THROW(static_cast<void>(c.get(url)), invalid_argument) << url;
    EXPECT_THROW(static_cast<void>(c.request("http://127.0.0.1:1/", {.headers = {{"a", "b\r\nc: d"}}})),
                 invalid_argument);
    EXPECT_THROW(static_cast<void>(c.request("http://127.0.0.1:1/", {.headers = {{"Host", "x"}}})), invalid_argument);
    EXPECT_THROW(static_cast<void>(c.request("http://127.0.0.1:1/", {.method = "G ET"})), invalid_argument);
    EXPECT_EQ(net::code_of([&] { static_cast<void>(c.get("http://127.0.0.1:1/")); }), std::errc::connection_refused);
  });
}

}  // namespace
}  // namespace ramie::http
