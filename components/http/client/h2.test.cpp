// The client over HTTP/2: with servers of ours, with nginx, and with peers that break the rules.
#include "../testing.hpp"

#include "../../tls/testing.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace ramie::http {
namespace {

using namespace std::chrono_literals;

const client_options known_2{.versions = http_versions::only_2, .proxies = proxy_options{}};

std::string url_of(const served& at, const std::string& target) { return "http://" + at.at().to_string() + target; }

void add_site(server& s) {
  s.get("/", [](request& rq, response& rs) {
    rs.header("X", "y").send("hello over " + std::to_string(rq.version()) + " " +
                             std::string{rq.header("a").value_or("-")});
  });
  s.post("/", [](request& rq, response& rs) { rs.send(std::to_string(rq.body().size())); });
  s.post("/echo", [](request& rq, response& rs) {
    std::array<std::byte, 10'000> part;
    while (const std::size_t n = rq.read_some(part)) rs.write(std::span{part}.first(n));
  });
  s.get("/number/{}", [](request&, response& rs, int n) { rs.send(std::to_string(n)); });
  s.get("/large", [](request&, response& rs) {
    for (int i = 0; i < 3000; ++i) rs.write(std::string(1000, 'x'));
  });
  s.get("/moved", [](request&, response& rs) { rs.redirect("/"); });
}

TEST(http_client_2, asks_over_one_connection) {
  net::with_workers([] {
    server s;
    add_site(s);
    const served at{s};
    client c{known_2};
    for (int i = 0; i < 3; ++i) {
      client_response r = c.request(url_of(at, "/"), {.headers = {{"A", "b"}}});
      EXPECT_EQ(r.status(), 200);
      EXPECT_EQ(r.header("x"), "y");
      EXPECT_EQ(r.body(), "hello over 20 b");
      EXPECT_EQ(c.get(url_of(at, "/none")).status(), 404);  // its body is not read
      EXPECT_EQ(c.request(url_of(at, "/"), {.method = "HEAD"}).body(), "");
      EXPECT_EQ(c.get(url_of(at, "/moved")).body(), "hello over 20 -");
      EXPECT_EQ(c.post(url_of(at, "/"), "").body(), "0");
      const std::string large(1'000'000, 'y');
      EXPECT_EQ(c.post(url_of(at, "/"), large).body(), "1000000");
      EXPECT_TRUE(c.post(url_of(at, "/echo"), large).body() == large);
      EXPECT_EQ(c.get(url_of(at, "/large")).body().size(), 3'000'000u);
    }
    EXPECT_EQ(s.statistics().connections, 1u);
  });
}

TEST(http_client_2, many_fibers_share_it) {
  net::with_workers([] {
    server s{{.streams_most = 20}};  // more requests wait their turn
    add_site(s);
    const served at{s};
    client c{known_2};
    scope all;
    for (int i = 0; i < 200; ++i)
      all.spawn([&, i] {
        EXPECT_EQ(c.get(url_of(at, "/number/" + std::to_string(i))).body(), std::to_string(i));
        if (i % 40 == 0) {
          EXPECT_EQ(c.get(url_of(at, "/large")).body().size(), 3'000'000u);
        }
      });
    all.join();
    EXPECT_EQ(s.statistics().connections, 1u);
  });
}

TEST(http_client_2, one_that_is_not_read_or_is_given_up_holds_up_no_other) {
  net::with_workers([] {
    server s;
    add_site(s);
    event begun, go_on;
    s.get("/slow", [&](request&, response& rs) {
      begun.set();
      go_on.wait();
      rs.send("late");
    });
    const served at{s};
    client c{known_2};
    std::vector<client_response> unread;
    for (int i = 0; i < 3; ++i) unread.push_back(c.get(url_of(at, "/large")));
    EXPECT_EQ(c.get(url_of(at, "/number/1")).body(), "1");
    // Given up in the middle of a body, and while it waits.
    unread.pop_back();
    EXPECT_THROW(with_timeout(20ms, [&] { static_cast<void>(c.get(url_of(at, "/slow"))); }), timeout_error);
    begun.wait();
    EXPECT_EQ(c.get(url_of(at, "/number/2")).body(), "2");
    // Again and again: their share of the connection's window comes back.
    for (int i = 0; i < 20; ++i) static_cast<void>(c.get(url_of(at, "/large")));
    EXPECT_EQ(c.get(url_of(at, "/large")).body().size(), 3'000'000u);
    for (client_response& r : unread) EXPECT_EQ(r.body().size(), 3'000'000u);
    go_on.set();
  });
}

TEST(http_client_2, the_one_that_reads_for_all_may_leave) {
  net::with_workers([] {
    server s;
    add_site(s);
    event go_on;
    std::atomic<int> waiting{0};
    s.get("/slow", [&](request&, response& rs) {
      ++waiting;
      go_on.wait();
      rs.send("late");
    });
    const served at{s};
    client c{known_2};
    EXPECT_EQ(c.get(url_of(at, "/number/0")).body(), "0");
    std::vector<join_handle<void>> impatient;
    for (int i = 0; i < 5; ++i) impatient.push_back(spawn([&] { static_cast<void>(c.get(url_of(at, "/slow"))); }));
    while (waiting < 5) this_fiber::sleep_for(1ms);
    auto patient = spawn([&] { return c.get(url_of(at, "/slow")).body(); });
    while (waiting < 6) this_fiber::sleep_for(1ms);
    for (auto& f : impatient) f.request_stop();
    for (auto& f : impatient) EXPECT_THROW(f.join(), cancelled);
    go_on.set();
    EXPECT_EQ(patient.join(), "late");
    EXPECT_EQ(s.statistics().connections, 1u);
  });
}

TEST(http_client_2, a_server_that_stops_is_left_and_another_connection_made) {
  ramie::run([] {
    auto s = std::make_unique<server>();
    add_site(*s);
    auto listener = std::make_unique<net::tcp_listener>(net::endpoint{"127.0.0.1", 0});
    const net::endpoint at = listener->local();
    auto serving = spawn([&] { s->serve(*listener); });
    client c{known_2};
    const std::string base = "http://" + at.to_string();
    EXPECT_EQ(c.get(base + "/number/1").body(), "1");
    s->stop();
    serving.join();
    listener.reset();
    EXPECT_THROW(static_cast<void>(c.get(base + "/number/2")), net::io_error);  // nobody is there
    listener = std::make_unique<net::tcp_listener>(at);
    server again;
    add_site(again);
    auto serving_again = spawn([&] { again.serve(*listener); });
    EXPECT_EQ(c.get(base + "/number/3").body(), "3");
    EXPECT_EQ(c.post(base + "/", "x").body(), "1");
    again.stop();
    serving_again.join();
  });
}

TEST(http_client_2, is_chosen_by_alpn) {
  const tls::certificates files;
  net::with_workers([&] {
    server s;
    add_site(s);
    const auto context_with = [&](std::vector<std::string> alpn) {
      return tls::server_context{{.certificates = {{files.chain(), files.key()}}, .alpn = std::move(alpn)}};
    };
    const auto client_with = [&](std::vector<std::string> alpn) {
      return client{{.proxies = proxy_options{}},
                    tls::client_context{{.roots = files.roots(), .alpn = std::move(alpn)}}};
    };
    const served both{s, context_with(server::protocols())};
    const auto body = [&](client& c) { return c.get("https://127.0.0.1:" + both.port() + "/").body(); };
    client either = client_with({"h2", "http/1.1"}), old = client_with({"http/1.1"}), silent = client_with({});
    const std::uint64_t before = s.statistics().connections;
    {
      // All at once: only one of them connects.
      scope all;
      for (int i = 0; i < 20; ++i) all.spawn([&] { EXPECT_EQ(body(either), "hello over 20 -"); });
      all.join();
    }
    EXPECT_EQ(s.statistics().connections, before + 1);
    EXPECT_EQ(body(old), "hello over 11 -");
    EXPECT_EQ(body(silent), "hello over 11 -");
  });
}

TEST(http_client_2, peers_that_break_the_rules_are_left) {
  ramie::run([] {
    const auto failure = [](const std::string& said) {
      net::tcp_listener l{{"127.0.0.1", 0}};
      auto peer = spawn([&] {
        for (int i = 0; i < 2; ++i) {  // it may be asked once more
          net::tcp_stream c = l.accept();
          try {
            c.write_all(said);
            c.shutdown_write();
            static_cast<void>(net::read_all(c));
          } catch (const net::io_error&) {
            // The client has left.
          }
        }
      });
      client c{known_2};
      const std::error_code code =
          net::code_of([&] { static_cast<void>(c.get("http://" + l.local().to_string() + "/").body()); });
      peer.request_stop();
      try {
        peer.join();
      } catch (const cancelled&) {
        // It was asked only once.
      }
      return code;
    };
    const std::string settings("\0\0\0\4\0\0\0\0\0", 9);
    // :status 200, and what is behind it.
    const auto headers = [](const std::string& block, char flags = 4) {
      return std::string{'\0', '\0', static_cast<char>(block.size()), '\1', flags, '\0', '\0', '\0', '\1'} + block;
    };
    EXPECT_EQ(failure(""), net::io_errc::unexpected_end);
    EXPECT_EQ(failure("HTTP/1.1 200 OK\r\n\r\n"), net::io_errc::unexpected_end);
    EXPECT_EQ(failure(settings + headers("\x88")), net::io_errc::unexpected_end);  // no end of the body
    EXPECT_EQ(failure(settings + headers("\xff\xff\xff\xff\xff\xff")), net::io_errc::unexpected_end);  // broken HPACK
    EXPECT_EQ(failure(settings + std::string("\0\0\4\3\0\0\0\0\1\0\0\0\2", 13)), net::io_errc::unexpected_end);
    EXPECT_EQ(failure(settings + std::string("\0\0\4\3\0\0\0\0\1\0\0\0\7", 13)),
              net::io_errc::unexpected_end);  // REFUSED_STREAM, and asked once more
    EXPECT_EQ(failure(settings + headers("\x88", 5)), std::error_code{});
    // A small head that becomes a large one: 3,000 bytes go into the table, and are repeated by a byte each.
    const std::string field = std::string("\x40\x01x\x7f\xb9\x16", 6) + std::string(3000, 'y');
    const std::string bomb = "\x88" + field + std::string(3000, '\xbe');
    const std::string size{static_cast<char>(bomb.size() >> 16), static_cast<char>(bomb.size() >> 8),
                           static_cast<char>(bomb.size())};
    EXPECT_EQ(failure(settings + size + std::string("\1\5\0\0\0\1", 6) + bomb), net::io_errc::too_long);
  });
}

TEST(http_client_2, talks_to_nginx) {
  const tls::certificates files;
  bool there = true;
  ramie::run([&] {
    net::tcp_listener unused = on_any_port();
    const std::string port = std::to_string(unused.local().port());
    unused.close();
    const std::string folder = files.folder / "";
    std::ofstream{folder + "index.html"} << "from nginx\n";
    std::ofstream{folder + "large.txt"} << std::string(2'000'000, 'n');
    std::ofstream{folder + "nginx.conf"} << "daemon off; pid " << folder << "nginx.pid; error_log " << folder
                                         << "error.log; worker_processes 1; events {}\nhttp { access_log off; root "
                                         << folder << "; client_body_temp_path " << folder << "b; proxy_temp_path "
                                         << folder << "p; fastcgi_temp_path " << folder << "f; uwsgi_temp_path "
                                         << folder << "u; scgi_temp_path " << folder
                                         << "s;\nserver { listen 127.0.0.1:" << port << " ssl http2; ssl_certificate "
                                         << files.chain() << "; ssl_certificate_key " << files.key()
                                         << "; location /put { return 204; } } }\n";
    std::optional<net::child> nginx;
    for (const char* program : {"nginx", "/usr/sbin/nginx"}) {
      try {
        nginx.emplace(
            std::vector<std::string>{program, "-c", folder + "nginx.conf", "-p", folder},
            net::child_options{.in = net::child_io::null, .out = net::child_io::null, .err = net::child_io::null});
        break;
      } catch (const net::io_error&) {
        // It is not there.
      }
    }
    if (!nginx) {
      there = false;
      return;
    }
    client c{{.proxies = proxy_options{}}, tls::client_context{{.roots = files.roots(), .alpn = {"h2", "http/1.1"}}}};
    const std::string base = "https://127.0.0.1:" + port;
    for (bool up = false; !up;) {
      try {
        up = c.get(base + "/index.html").status() == 200;
      } catch (const net::io_error&) {
        this_fiber::sleep_for(10ms);  // it has not begun to listen
      }
    }
    EXPECT_EQ(c.get(base + "/index.html").body(), "from nginx\n");
    EXPECT_EQ(c.get(base + "/large.txt").body().size(), 2'000'000u);
    EXPECT_EQ(c.post(base + "/put", std::string(300'000, 'z')).status(), 204);
    EXPECT_EQ(c.get(base + "/none").status(), 404);
    scope all;
    for (int i = 0; i < 50; ++i) all.spawn([&] { EXPECT_EQ(c.get(base + "/large.txt").body().size(), 2'000'000u); });
    all.join();
    nginx->kill();
    static_cast<void>(nginx->wait());
  });
  if (!there) GTEST_SKIP() << "there is no program nginx here";
}

}  // namespace
}  // namespace ramie::http
