// What handlers and clients of a server see, over HTTP/1.1.
#include "../testing.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <unistd.h>

namespace ramie::http {
namespace {

using namespace std::chrono_literals;
using net::with_workers;

void hello(server& s) {
  s.get("/", [](request&, response& rs) { rs.send("hello\n"); });
}

TEST(http_server, answers_one_request_after_the_other_and_pipelined_ones_in_order) {
  with_workers([] {
    server s;
    s.get("/number/{}", [](request&, response& rs, int n) { rs.send(std::to_string(n)); });
    const served at{s};
    std::string all;
    for (int i = 0; i < 100; ++i) all += get("/number/" + std::to_string(i));
    all += get("/number/100", "connection: close\r\n");
    const std::string said = ask(at.at(), all);
    std::size_t place = 0;
    for (int i = 0; i <= 100; ++i) {
      place = said.find("\r\n\r\n" + std::to_string(i), place);
      ASSERT_NE(place, std::string::npos) << i;
      ++place;
    }
    EXPECT_TRUE(contains(said, "connection: close"));
    EXPECT_EQ(s.statistics().requests, 101u);
  });
}

TEST(http_server, routes_by_method_path_and_types) {
  ramie::run([] {
    server s;
    hello(s);
    s.get("/a/{}", [](request&, response& rs, int n) { rs.send("number " + std::to_string(n)); });
    s.get("/a/{}", [](request&, response& rs, std::string_view t) { rs.send("text " + std::string{t}); });
    s.get("/a/b/{}/c/{}",
          [](request&, response& rs, unsigned n, const std::string& t) { rs.send(std::to_string(n) + t); });
    s.get("/only/{}", [](request&, response& rs, std::uint8_t n) { rs.send(std::to_string(n)); });
    s.post("/a/{}", [](request& rq, response& rs, const std::string&) { rs.send(rq.body()); });
    s.get("/rest/*", [](request&, response& rs, std::string_view rest) { rs.send(rest); });
    const served at{s};
    const auto body = [&](const std::string& target) { return body_of(ask(at.at(), get(target))); };
    EXPECT_EQ(body("/"), "hello\n");
    EXPECT_EQ(body("/?x=1"), "hello\n");
    EXPECT_EQ(body("/a/12"), "number 12");
    EXPECT_EQ(body("/a/-12"), "number -12");
    EXPECT_EQ(body("/a/12x"), "text 12x");
    EXPECT_EQ(body("/a/b%20c%2Fd"), "text b c/d");
    EXPECT_EQ(body("/a/b/7/c/d"), "7d");
    EXPECT_EQ(body("/rest/a/b/c"), "a/b/c");
    EXPECT_EQ(body("/rest/"), "");
    EXPECT_EQ(status_of(ask(at.at(), get("/rest"))), 404);
    EXPECT_EQ(status_of(ask(at.at(), get("/only/256"))), 404);
    EXPECT_EQ(status_of(ask(at.at(), get("/a/"))), 404);
    EXPECT_EQ(status_of(ask(at.at(), get("/a/%zz"))), 400);
    EXPECT_EQ(status_of(ask(at.at(), get("/a/%00"))), 400);
    EXPECT_EQ(status_of(ask(at.at(), get("/nothing"))), 404);
    const std::string refused = ask(at.at(), "PUT /a/1 HTTP/1.1\r\nhost: x\r\n\r\n");
    EXPECT_EQ(status_of(refused), 405);
    EXPECT_TRUE(contains(refused, "allow: GET, POST")) << refused;
    const std::string head = ask(at.at(), "HEAD / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    EXPECT_TRUE(contains(head, "content-length: 6"));
    EXPECT_EQ(body_of(head), "");
    EXPECT_THROW(s.get("no/slash", [](request&, response&) {}), invalid_argument);
    EXPECT_THROW(s.get("/{}", [](request&, response&) {}), invalid_argument);
  });
}

TEST(http_server, a_more_general_route_with_the_right_method_answers) {
  ramie::run([] {
    server s;
    s.post("/exact", [](request&, response& rs) { rs.send("posted"); });
    s.post("/a/{}", [](request&, response& rs, const std::string&) { rs.send("posted"); });
    s.get("/a/{}", [](request&, response& rs, int) { rs.send("number"); });
    s.put("/only", [](request&, response& rs) { rs.send("put"); });
    s.get("/exact/plain", [](request&, response& rs) { rs.send("plain"); });
    const served at{s};
    EXPECT_EQ(status_of(ask(at.at(), get("/exact"))), 405);
    const std::string refused = ask(at.at(), get("/a/x"));  // as a GET only a number would do
    EXPECT_EQ(status_of(refused), 405);
    EXPECT_TRUE(contains(refused, "allow: POST\r\n")) << refused;
    s.get("/{}", [](request&, response& rs, const std::string& what) { rs.send("any " + what); });
    EXPECT_EQ(body_of(ask(at.at(), get("/exact"))), "any exact");
    EXPECT_EQ(status_of(ask(at.at(), "PUT /exact HTTP/1.1\r\nhost: x\r\n\r\n")), 405);
    s.get("/*", [](request&, response& rs, const std::string& rest) { rs.send("rest " + rest); });
    EXPECT_EQ(body_of(ask(at.at(), get("/a/x"))), "rest a/x");
    EXPECT_EQ(body_of(ask(at.at(), get("/only"))), "any only");
    EXPECT_EQ(body_of(ask(at.at(), get("/a/7"))), "number");
    // A path is the same however it is encoded, unless a '/' is.
    EXPECT_EQ(body_of(ask(at.at(), get("/ex%61ct/pl%61in"))), "plain");
    EXPECT_EQ(body_of(ask(at.at(), get("/exact%2Fplain"))), "any exact/plain");
    EXPECT_EQ(body_of(ask(at.at(), get("http://localhost/exact/plain"))), "plain");  // as to a proxy
    EXPECT_EQ(body_of(ask(at.at(), get("HTTP://LOCALHOST"))), "rest ");
  });
}

TEST(http_server, bodies_that_a_handler_leaves_do_not_become_requests) {
  with_workers([] {
    server s;
    int hidden = 0;
    s.post("/leave", [](request&, response& rs) { rs.send("left"); });
    s.post("/half", [](request& rq, response& rs) {
      std::array<std::byte, 10> part;
      rs.send(std::to_string(rq.read_some(part)));
    });
    s.get("/hidden", [&](request&, response& rs) {
      ++hidden;
      rs.send("hidden");
    });
    s.get("/last", [](request&, response& rs) { rs.send("last"); });
    const served at{s};
    const std::string inner = get("/hidden"), size = std::to_string(inner.size());
    const auto post = [&](const std::string& path) {
      return "POST " + path + " HTTP/1.1\r\nhost: x\r\ncontent-length: " + size + "\r\n\r\n" + inner;
    };
    char hex[20];
    std::snprintf(hex, sizeof hex, "%zx", inner.size());
    const std::string chunked = "POST /leave HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n" +
                                std::string{hex} + "\r\n" + inner + "\r\n0\r\n\r\n";
    const std::string said = ask(at.at(), post("/leave") + chunked + post("/half") + post("/none") + get("/last"));
    EXPECT_EQ(hidden, 0);
    EXPECT_TRUE(said.ends_with("last")) << said;
    // More than is worth reading: the connection ends, and what is behind it is not looked at.
    const std::string large =
        "POST /leave HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n" + std::string(1'000'000, 'x');
    EXPECT_FALSE(contains(ask(at.at(), large + get("/hidden")), "hidden"));
    EXPECT_EQ(hidden, 0);
  });
}

TEST(http_server, reads_bodies_of_both_kinds) {
  with_workers([] {
    server s;
    s.post("/", [](request& rq, response& rs) { rs.send(rq.body()); });
    const served at{s};
    const std::string head = "POST / HTTP/1.1\r\nhost: x\r\n";
    EXPECT_EQ(body_of(ask(at.at(), head + "content-length: 5\r\n\r\nhello")), "hello");
    EXPECT_EQ(
        body_of(ask(at.at(), head + "transfer-encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nt: r\r\n\r\n")),
        "hello");
    EXPECT_EQ(body_of(ask(at.at(), head + "\r\n")), "");
    std::string large(300'000, 'x');
    for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>('a' + i % 19);
    EXPECT_TRUE(body_of(ask(at.at(), head + "content-length: 300000\r\n\r\n" + large)) == large);
  });
}

TEST(http_server, streams_a_response_and_ends_it) {
  ramie::run([] {
    server s;
    s.get("/", [](request&, response& rs) {
      rs.write("one ");
      rs.write("");
      rs.write("two");
    });
    const served at{s};
    const std::string said = ask(at.at(), get("/", "connection: close\r\n"));
    EXPECT_TRUE(contains(said, "transfer-encoding: chunked"));
    EXPECT_EQ(body_of(said), "4\r\none \r\n3\r\ntwo\r\n0\r\n\r\n");
    // HTTP/1.0 knows no chunks: the end of the connection is the end.
    const std::string old = ask(at.at(), "GET / HTTP/1.0\r\n\r\n");
    EXPECT_EQ(body_of(old), "one two");
    EXPECT_TRUE(contains(old, "connection: close"));
  });
}

TEST(http_server, says_continue_only_if_the_body_is_wanted) {
  ramie::run([] {
    server s;
    s.post("/take", [](request& rq, response& rs) { rs.send(rq.body()); });
    s.post("/leave", [](request&, response& rs) { rs.status(403).send("no"); });
    const served at{s};
    net::tcp_stream c = net::tcp_stream::connect(at.at());
    net::buffered_reader in{c};
    c.write_all("POST /take HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\nexpect: 100-continue\r\n\r\n");
    EXPECT_EQ(in.read_line(), "HTTP/1.1 100 Continue");
    EXPECT_EQ(in.read_line(), "");
    c.write_all("hello");
    EXPECT_EQ(in.read_line(), "HTTP/1.1 200 OK");
    const std::string left =
        ask(at.at(), "POST /leave HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\nexpect: 100-continue\r\n\r\n");
    EXPECT_EQ(status_of(left), 403);
    EXPECT_TRUE(contains(left, "connection: close"));
    EXPECT_EQ(status_of(ask(at.at(), get("/", "expect: tea\r\n"))), 417);
  });
}

TEST(http_server, failures_of_handlers_are_responses) {
  ramie::run([] {
    server s;
    s.get("/mine", [](request&, response&) { throw status_error{409, "not now"}; });
    s.get("/bug", [](request&, response&) { throw std::runtime_error{"the password is plum"}; });
    s.get("/late", [](request&, response& rs) {
      rs.write("half");
      throw std::runtime_error{"late"};
    });
    s.get("/nothing", [](request&, response&) {});
    const served at{s};
    const std::string mine = ask(at.at(), get("/mine"));
    EXPECT_EQ(status_of(mine), 409);
    EXPECT_EQ(body_of(mine), "not now\n");
    const std::string bug = ask(at.at(), get("/bug"));
    EXPECT_EQ(status_of(bug), 500);
    EXPECT_FALSE(contains(bug, "plum"));
    const std::string late = ask(at.at(), get("/late"));
    EXPECT_TRUE(contains(late, "half"));
    EXPECT_FALSE(contains(late, "0\r\n\r\n"));  // it is seen to be cut off
    EXPECT_EQ(status_of(ask(at.at(), get("/nothing"))), 200);
  });
}

TEST(http_server, headers_queries_and_cookies) {
  ramie::run([] {
    server s;
    s.get("/", [](request& rq, response& rs) {
      rs.header("X-Answer", std::string{rq.header("X-ASK").value_or("none")});
      rs.cookie("seen", "1", {.max_age_s = 60});
      rs.send(rq.query("a b").value_or("-") + rq.query("empty").value_or("-") + rq.query("no").value_or("-") +
              std::string{rq.cookie("id").value_or("-")} + std::string{rq.authority()});
    });
    s.get("/split", [](request& rq, response& rs) { rs.header("x-split", rq.query("v").value()).send(""); });
    const served at{s};
    const std::string said =
        ask(at.at(), get("/?a+b=%31+2&empty", "x-ask: plum\r\ncookie: x=y; id=7\r\nconnection: close\r\n"));
    EXPECT_EQ(body_of(said), "1 2-7localhost");
    EXPECT_TRUE(contains(said, "x-answer: plum\r\n"));
    EXPECT_TRUE(contains(said, "set-cookie: seen=1; Path=/; Max-Age=60; Secure; HttpOnly; SameSite=Lax\r\n"));
    const std::string split = ask(at.at(), get("/split?v=a%0d%0ax-evil:%20b"));
    EXPECT_EQ(status_of(split), 500);
    EXPECT_FALSE(contains(split, "x-evil"));
  });
}

TEST(http_server, forms) {
  ramie::run([] {
    server s;
    s.post("/", [](request& rq, response& rs) {
      std::string all;
      for (const form_part& p :
           read_form(rq, rq.header("content-type") == "multipart/form-data; boundary=x" ? 100'000 : 1000))
        all += p.name + "|" + p.file_name + "|" + p.content_type + "|" + p.data + ";";
      rs.send(all);
    });
    const served at{s};
    const auto post = [&](const std::string& body, const std::string& type = "multipart/form-data; boundary=\"xx\"") {
      return ask(at.at(), "POST / HTTP/1.1\r\nhost: x\r\ncontent-type: " + type +
                              "\r\ncontent-length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
    };
    EXPECT_EQ(
        body_of(post("--xx\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n2\r\n--xx\r\n"
                     "content-disposition: form-data; name=f; filename=\"g.txt\"\r\ncontent-type: text/plain\r\n\r\n"
                     "\r\n--xx--\r\n")),
        "a|||1\r\n2;f|g.txt|text/plain|;");
    EXPECT_EQ(status_of(post("--xx\r\n\r\nx")), 400);
    EXPECT_EQ(status_of(post("", "text/plain")), 415);
    EXPECT_EQ(status_of(post(std::string(1001, 'x'))), 413);
    std::string many;
    for (int i = 0; i < 1001; ++i) many += "--x\r\na:b\r\n\r\n\r\n";
    EXPECT_EQ(status_of(post(many + "--x--", "multipart/form-data; boundary=x")), 413);
  });
}

TEST(http_server, files_and_parts_of_them) {
  const std::string folder = std::filesystem::temp_directory_path() / ("ramie_http_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder + "/sub");
  std::string content;
  for (int i = 0; i < 50'000; ++i) content += std::to_string(i) + "\n";
  std::ofstream{folder + "/numbers.txt"} << content;
  std::ofstream{folder + "/sub/index.html"} << "<p>here";
  std::ofstream{folder + "/.secret"} << "secret";
  {
    const std::ofstream empty{folder + "/empty"};
  }
  ramie::run([&] {
    server s;
    s.files("/f/", folder);
    const served at{s};
    const auto said = [&](const std::string& target, const std::string& fields = {}) {
      return ask(at.at(), get(target, fields + "connection: close\r\n"));
    };
    const std::string whole = said("/f/numbers.txt");
    EXPECT_TRUE(body_of(whole) == content);
    EXPECT_TRUE(contains(whole, "content-type: text/plain; charset=utf-8"));
    const std::string tag =
        whole.substr(whole.find("etag: ") + 6, whole.find("\r\n", whole.find("etag: ")) - whole.find("etag: ") - 6);
    const std::string same = said("/f/numbers.txt", "if-none-match: \"x\", " + tag + "\r\n");
    EXPECT_EQ(status_of(same), 304);
    EXPECT_EQ(body_of(same), "");
    const std::string part = said("/f/numbers.txt", "range: bytes=2-5\r\n");
    EXPECT_EQ(status_of(part), 206);
    EXPECT_EQ(body_of(part), content.substr(2, 4));
    EXPECT_TRUE(contains(part, "content-range: bytes 2-5/" + std::to_string(content.size())));
    EXPECT_EQ(body_of(said("/f/numbers.txt", "range: bytes=-3\r\n")), content.substr(content.size() - 3));
    EXPECT_EQ(status_of(said("/f/numbers.txt", "range: bytes=99999999-\r\n")), 416);
    EXPECT_EQ(status_of(said("/f/numbers.txt", "range: bytes=5-2\r\n")), 200);
    EXPECT_EQ(status_of(said("/f/numbers.txt", "range: bytes=2-5\r\nif-range: \"old\"\r\n")), 200);
    EXPECT_EQ(body_of(said("/f/sub/")), "<p>here");
    EXPECT_EQ(body_of(said("/f/empty")), "");
    for (const char* hidden : {"/f/.secret", "/f/../etc/passwd", "/f/%2e%2e/x", "/f/sub/..%2f.secret", "/f/sub",
                               "/f/none", "/f//etc/passwd"})
      EXPECT_EQ(status_of(said(hidden)), 404) << hidden;
  });
  std::filesystem::remove_all(folder);
}

TEST(http_server, events_are_sent_as_they_happen) {
  ramie::run([] {
    server s;
    event second;
    s.get("/", [&](request&, response& rs) {
      event_stream out{rs};
      out.send({.data = "one\ntwo", .name = "first", .id = "1"});
      second.wait();
      out.keep_alive();
      EXPECT_THROW(out.send({.data = "x", .name = "a\nb"}), invalid_argument);
      EXPECT_THROW(out.send({.data = "x", .id = std::string_view{"a\0b", 3}}), invalid_argument);
    });
    const served at{s};
    net::tcp_stream c = net::tcp_stream::connect(at.at());
    c.write_all(get("/", "connection: close\r\n"));
    net::buffered_reader in{c};
    std::string line;
    while (line != "id: 1") line = in.read_line().value();
    EXPECT_EQ(in.read_line(), "event: first");
    EXPECT_EQ(in.read_line(), "data: one");
    EXPECT_EQ(in.read_line(), "data: two");
    EXPECT_EQ(in.read_line(), "");
    second.set();
    EXPECT_TRUE(contains(net::read_all(in), ":\n\n"));
  });
}

TEST(http_server, stop_lets_requests_finish_and_ends_idle_connections) {
  with_workers([] {
    server s;
    event begun, go_on;
    s.get("/", [&](request&, response& rs) {
      begun.set();
      go_on.wait();
      rs.send("done");
    });
    net::tcp_listener listener{{"127.0.0.1", 0}};
    auto serving = spawn([&] { s.serve(listener); });
    net::tcp_stream idle = net::tcp_stream::connect(listener.local());
    auto busy = spawn([&] { return ask(listener.local(), get("/")); });
    begun.wait();
    s.stop();
    EXPECT_EQ(net::code_of([&] { EXPECT_EQ(net::read_all(idle), ""); }), std::error_code{});
    EXPECT_FALSE(serving.has_ended());
    go_on.set();
    const std::string said = busy.join();
    EXPECT_EQ(body_of(said), "done");
    EXPECT_TRUE(contains(said, "connection: close"));
    serving.join();
    EXPECT_EQ(s.statistics().open, 0u);
  });
}

TEST(http_server, stop_cancels_what_does_not_finish) {
  ramie::run([] {
    server s{{.drain_time = 20ms}};
    event begun;
    s.get("/", [&](request&, response&) {
      begun.set();
      this_fiber::sleep_for(1h);
    });
    net::tcp_listener listener{{"127.0.0.1", 0}};
    auto serving = spawn([&] { s.serve(listener); });
    auto busy = spawn([&] { return ask(listener.local(), get("/")); });
    begun.wait();
    s.stop();
    serving.join();
    EXPECT_EQ(busy.join(), "");
  });
}

TEST(http_server, large_bodies_may_be_packed) {
  ramie::run([] {
    server s;
    s.get("/", [](request&, response& rs) { rs.compressed().send(std::string(10'000, 'x')); });
    const served at{s};
    const std::string packed = ask(at.at(), get("/", "accept-encoding: br;q=0, gzip;q=0.5\r\n"));
    EXPECT_TRUE(contains(packed, "content-encoding: gzip\r\n"));
    EXPECT_TRUE(contains(ask(at.at(), get("/", "accept-encoding: br;q=0.2, zstd;q=0.2, gzip;q=0.201\r\n")),
                         "content-encoding: gzip\r\n"));
    EXPECT_TRUE(contains(ask(at.at(), get("/", "accept-encoding: *\r\n")), "content-encoding: "));
    EXPECT_FALSE(contains(ask(at.at(), get("/", "accept-encoding: *;q=0\r\n")), "content-encoding: "));
    EXPECT_FALSE(contains(ask(at.at(), get("/", "accept-encoding: gzip;q=nonsense\r\n")), "content-encoding: "));
    EXPECT_TRUE(contains(packed, "vary: accept-encoding\r\n"));
    EXPECT_LT(body_of(packed).size(), 200u);
    EXPECT_EQ(body_of(ask(at.at(), get("/", "accept-encoding: gzip;q=0\r\n"))).size(), 10'000u);
    EXPECT_EQ(body_of(ask(at.at(), get("/"))).size(), 10'000u);
  });
}

}  // namespace
}  // namespace ramie::http
