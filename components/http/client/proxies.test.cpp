// Proxies: which is asked, and what it is told.
#include "client/proxies.hpp"
#include "../testing.hpp"

#include "../../tls/testing.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace ramie::http {
namespace {

std::string asked_for(const proxy_options& o, const std::string& text) {
  const proxy_rules rules{o};
  const proxy* p = rules.find(parse_url(text));
  return p == nullptr ? "directly" : p->at.authority() + (p->authorization.empty() ? "" : " " + p->authorization);
}

TEST(http_proxies, are_chosen_by_scheme_and_host) {
  const proxy_options o{.for_http = "http://a:3128",
                        .for_https = "user:p%40ss@b",
                        .direct = {"example.org", ".inner.test", "*.star.test", "10.0.0.0/8", "192.168.1.7",
                                   "fe80::/10", "[::1]:8080", "ported:81"}};
  const std::string a = "a:3128", b = "b Basic dXNlcjpwQHNz";
  EXPECT_EQ(asked_for(o, "http://x/"), a);
  EXPECT_EQ(asked_for(o, "https://x/"), b);
  for (const char* url : {"http://example.org/", "https://EXAMPLE.org/", "http://www.example.org/",
                          "http://a.inner.test/", "http://a.star.test/", "http://10.1.2.3/", "http://192.168.1.7/",
                          "http://[fe80::1]/", "http://[::1]:8080/", "http://ported:81/"})
    EXPECT_EQ(asked_for(o, url), "directly") << url;
  for (const char* url : {"http://notexample.org/", "http://11.1.2.3/", "http://192.168.1.70/", "http://[::1]/",
                          "http://ported/", "http://10.example/"})
    EXPECT_EQ(asked_for(o, url), a) << url;
  EXPECT_EQ(asked_for({.for_http = "a", .direct = {"*"}}, "http://x/"), "directly");
  EXPECT_EQ(asked_for({.for_http = "a"}, "https://x/"), "directly");
  for (const char* broken :
       {"socks4://a", "ftp://a", "http://", "socks5://", "http://u:p@", "http://a:0", "u:secret%zz@a"}) {
    try {
      const proxy_rules rules{{.for_http = broken}};
      ADD_FAILURE() << broken;
    } catch (const invalid_argument& e) {
      EXPECT_FALSE(contains(e.what(), "secret")) << e.what();
    }
  }
  EXPECT_THROW(proxy_rules({.direct = {"10.0.0.0/33"}}), invalid_argument);
  EXPECT_THROW(proxy_rules({.direct = {"host/8"}}), invalid_argument);
}

/// The variables of the environment, as they are to be; afterwards as they were.
class environment {
 public:
  explicit environment(const std::map<std::string, std::string>& wanted) {
    for (const char* name :
         {"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"}) {
      const char* const now = std::getenv(name);
      before_[name] = now == nullptr ? std::optional<std::string>{} : std::optional<std::string>{now};
      const auto at = wanted.find(name);
      set(name, at == wanted.end() ? std::optional<std::string>{} : std::optional{at->second});
    }
  }
  environment(const environment&) = delete;
  environment& operator=(const environment&) = delete;
  ~environment() {
    for (const auto& [name, value] : before_) set(name, value);
  }

 private:
  static void set(const std::string& name, const std::optional<std::string>& value) {
    if (value) ::setenv(name.c_str(), value->c_str(), 1);
    else ::unsetenv(name.c_str());
  }
  std::map<std::string, std::optional<std::string>> before_;
};

TEST(http_proxies, of_the_environment) {
  const auto with = [](const std::map<std::string, std::string>& variables, const std::string& url) {
    const environment e{variables};
    return asked_for(proxy_options::from_environment(), url);
  };
  EXPECT_EQ(with({}, "http://x/"), "directly");
  EXPECT_EQ(with({{"http_proxy", "http://a:1"}}, "http://x/"), "a:1");
  EXPECT_EQ(with({{"HTTP_PROXY", "http://a:1"}}, "http://x/"), "directly");  // a CGI program's client could set it
  EXPECT_EQ(with({{"http_proxy", "http://a:1"}}, "https://x/"), "directly");
  EXPECT_EQ(with({{"HTTPS_PROXY", "http://b:2"}}, "https://x/"), "b:2");
  EXPECT_EQ(with({{"all_proxy", "c:3"}, {"https_proxy", "b:2"}}, "https://x/"), "b:2");
  EXPECT_EQ(with({{"ALL_PROXY", "c:3"}}, "http://x/"), "c:3");
  EXPECT_EQ(with({{"all_proxy", "c:3"}, {"no_proxy", "y, .x.test"}}, "http://a.x.test/"), "directly");
  EXPECT_EQ(with({{"all_proxy", "c:3"}, {"NO_PROXY", "*"}}, "http://x/"), "directly");
  for (const char* own : {"http://localhost:8080/", "http://127.1.2.3/", "https://[::1]/"})
    EXPECT_EQ(with({{"all_proxy", "c:3"}}, own), "directly") << own;
}

void relay(net::any_stream& from, net::any_stream& to) {
  std::array<std::byte, 4096> part;
  while (const std::size_t n = from.read_some(part)) to.write_all(std::span{part}.first(n));
  to.shutdown_write();
}

/// Serves each connection by a fiber of its own, until it is ended.
class test_proxy {
 public:
  test_proxy(const test_proxy&) = delete;
  test_proxy& operator=(const test_proxy&) = delete;
  [[nodiscard]] std::string at() const { return listener_.local().to_string(); }
  [[nodiscard]] std::string port() const { return std::to_string(listener_.local().port()); }

  std::vector<std::string> asked;  // by one fiber at a time

 protected:
  explicit test_proxy(net::endpoint to) : to_{std::move(to)} {}
  virtual ~test_proxy() = default;
  /// By the constructor of what is derived, when it has all that `pass` needs.
  void begin() {
    fiber_ = spawn([this] { serve(); });
  }
  /// By its destructor.
  void end() {
    listener_.close();
    fiber_.join();
  }
  virtual void pass(net::any_stream& c) = 0;
  /// Ends with the connections.
  void relay_from(net::any_stream& c, net::any_stream& there) {
    scope both;
    both.spawn([&] { relay(there, c); });
    relay(c, there);
    both.join();
  }
  [[nodiscard]] net::any_stream connected() const { return net::tcp_stream::connect(to_); }

 private:
  void serve() {
    scope all;
    try {
      for (;;)
        all.spawn([this, c = std::make_shared<net::any_stream>(listener_.accept())] {
          try {
            pass(*c);
          } catch (const net::io_error&) {
            // One of the ends has left.
          }
        });
    } catch (const net::io_error&) {
      // It is closed.
    }
    all.cancel();
    all.join();
  }

  net::endpoint to_;
  net::tcp_listener listener_ = on_any_port();
  join_handle<void> fiber_;
};

/// A proxy of the plain kind: passes "GET http://..." and tunnels on, all to one place, and notes the heads.
class forwarder : public test_proxy {
 public:
  /// To CONNECT it says `answer`.
  explicit forwarder(net::endpoint to, std::optional<tls::server_context> tls = {},
                     std::string answer = "HTTP/1.1 200 Connected\r\nx: y\r\n\r\n")
      : test_proxy{std::move(to)}, tls_{std::move(tls)}, answer_{std::move(answer)} {
    begin();
  }
  ~forwarder() override { end(); }
  [[nodiscard]] std::string url() const { return "http://me:secret@" + at(); }

 private:
  void pass(net::any_stream& c) override {
    if (tls_) c = tls::stream::accept(std::move(c), *tls_);
    std::string head;
    std::array<std::byte, 1> one;
    while (!head.ends_with("\r\n\r\n")) {
      if (c.read_some(one) == 0) return;
      head += net::text_of(one);
    }
    asked.push_back(head);
    net::any_stream there = connected();
    if (head.starts_with("CONNECT ")) {
      c.write_all(answer_);
    } else {
      // To the server in the usual form.
      const std::size_t begin = head.find("http://"), end = head.find('/', begin + 7);
      there.write_all(head.erase(begin, end - begin));
    }
    relay_from(c, there);
  }

  std::optional<tls::server_context> tls_;
  const std::string answer_;
};

TEST(http_proxies, pass_requests_of_http_on) {
  ramie::run([] {
    server s;
    s.get("/a", [](request& rq, response& rs) { rs.send("from " + std::string{rq.authority()}); });
    const served at{s};
    forwarder p{at.at()};
    {
      client c{{.proxies = proxy_options{.for_http = p.url()}}};
      // Two hosts that only the proxy knows, over one connection.
      EXPECT_EQ(c.get("http://one.test/a?b").body(), "from one.test");
      EXPECT_EQ(c.get("http://two.test/a").body(), "from two.test");
      ASSERT_EQ(p.asked.size(), 1u);
      EXPECT_TRUE(p.asked[0].starts_with("GET http://one.test/a?b HTTP/1.1\r\nhost: one.test\r\n")) << p.asked[0];
      EXPECT_TRUE(contains(p.asked[0], "proxy-authorization: Basic bWU6c2VjcmV0\r\n"));
    }
  });
}

TEST(http_proxies, make_tunnels_for_https) {
  const tls::certificates files;
  ramie::run([&] {
    server s;
    s.get("/", [](request& rq, response& rs) {
      rs.send(std::to_string(rq.version()) + (rq.header("proxy-authorization") ? " leaked" : ""));
    });
    const served at{s,
                    tls::server_context{{.certificates = {{files.chain(), files.key()}}, .alpn = server::protocols()}}};
    {
      forwarder p{at.at()};
      for (const std::string version : {"h2", "http/1.1"}) {
        p.asked.clear();
        client c{client_options{.proxies = proxy_options{.for_https = p.url()}},
                 tls::client_context{{.roots = files.roots(), .alpn = {version}}}};
        for (int i = 0; i < 2; ++i) EXPECT_EQ(c.get("https://localhost/").body(), version == "h2" ? "20" : "11");
        ASSERT_EQ(p.asked.size(), 1u);
        EXPECT_EQ(
            p.asked[0],
            "CONNECT localhost:443 HTTP/1.1\r\nhost: localhost:443\r\nproxy-authorization: Basic bWU6c2VjcmV0\r\n\r\n");
      }
    }
    for (const char* refused : {"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n",
                                "SSH-2.0\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\nmore"}) {
      const forwarder p{at.at(), {}, refused};
      client c{client_options{.proxies = proxy_options{.for_https = p.url()}},
               tls::client_context{{.roots = files.roots()}}};
      EXPECT_EQ(net::code_of([&] { static_cast<void>(c.get("https://localhost/")); }), std::errc::protocol_error)
          << refused;
    }
  });
}

TEST(http_proxies, are_reached_by_tls) {
  const tls::certificates files;
  ramie::run([&] {
    server s;
    s.get("/", [](request& rq, response& rs) {
      rs.send(std::to_string(rq.version()) + (rq.header("proxy-authorization") ? " leaked" : ""));
    });
    const tls::server_context own{{.certificates = {{files.chain(), files.key()}}, .alpn = server::protocols()}};
    const served plain{s};
    const served encrypted{s, own};
    const tls::client_context trusting{{.roots = files.roots()}};
    const auto by = [&](const forwarder& p, std::optional<tls::client_context> c = {}) {
      const std::string url = "https://me:secret@localhost:" + p.port();
      return client_options{.proxies = proxy_options{.for_http = url, .for_https = url, .context = std::move(c)}};
    };
    {
      forwarder p{plain.at(), own};
      client c{by(p, trusting)};
      for (int i = 0; i < 2; ++i) EXPECT_EQ(c.get("http://one.test/").body(), "11 leaked");  // this proxy passes all on
      ASSERT_EQ(p.asked.size(), 1u);
      EXPECT_TRUE(contains(p.asked[0], "proxy-authorization: Basic bWU6c2VjcmV0\r\n"));
    }
    {
      forwarder p{encrypted.at(), own};
      client c{by(p, trusting), tls::client_context{{.roots = files.roots(), .alpn = {"h2"}}}};
      EXPECT_EQ(c.get("https://localhost/").body(), "20");
      ASSERT_EQ(p.asked.size(), 1u);
      EXPECT_TRUE(p.asked[0].starts_with("CONNECT localhost:443 HTTP/1.1\r\n"));
      // A proxy that is not trusted is told nothing, least of all the password.
      client careful{by(p)};
      EXPECT_THROW(static_cast<void>(careful.get("http://one.test/")), net::io_error);
      EXPECT_EQ(p.asked.size(), 1u);
      client wrong{by(p, tls::client_context{{.roots = files.roots(), .alpn = {"h2"}}})};
      EXPECT_EQ(net::code_of([&] { static_cast<void>(wrong.get("http://one.test/")); }), std::errc::protocol_error);
    }
  });
}

/// What a proxy of SOCKS 5 answers.
struct socks_answers {
  std::string method{"\x05\x00", 2}, login{"\x01\x00", 2};
  std::string reply{"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x50", 10};
};
/// A proxy of SOCKS 5, all to one place. It notes "USER:PASSWORD KIND ADDRESS PORT".
class socks_server : public test_proxy {
 public:
  explicit socks_server(net::endpoint to, socks_answers answers = {})
      : test_proxy{std::move(to)}, answers_{std::move(answers)} {
    begin();
  }
  ~socks_server() override { end(); }

 private:
  static std::string take(net::any_stream& c, std::size_t n) {
    std::string all;
    std::array<std::byte, 1> one;
    while (all.size() < n) {
      if (c.read_some(one) == 0) throw net::io_error{"client", net::io_errc::unexpected_end};
      all += net::text_of(one);
    }
    return all;
  }
  static std::size_t number(const std::string& bytes) {
    std::size_t n = 0;
    for (const char b : bytes) n = n * 256 + static_cast<unsigned char>(b);
    return n;
  }
  static std::string text(net::any_stream& c) { return take(c, number(take(c, 1))); }

  void pass(net::any_stream& c) override {
    EXPECT_EQ(take(c, 1), "\x05");
    std::string what;
    static_cast<void>(text(c));  // the ways to log in that it offers
    c.write_all(answers_.method);
    if (answers_.method.ends_with('\x02')) {
      EXPECT_EQ(take(c, 1), "\x01");
      what = text(c) + ":";
      what += text(c) + " ";
      c.write_all(answers_.login);
    }
    EXPECT_EQ(take(c, 3), (std::string{"\x05\x01\x00", 3}));
    const std::size_t kind = number(take(c, 1));
    const std::string host = kind == 3 ? text(c) : take(c, kind == 1 ? 4 : 16);
    what += std::to_string(kind) + " " + (kind == 3 ? host : std::to_string(number(host.substr(host.size() - 4))));
    asked.push_back(what + " " + std::to_string(number(take(c, 2))));
    c.write_all(answers_.reply);
    net::any_stream there = connected();
    relay_from(c, there);
  }

  const socks_answers answers_;
};

TEST(http_proxies, of_socks_connect_to_hosts_by_name) {
  const tls::certificates files;
  ramie::run([&] {
    server s;
    s.get("/a", [](request& rq, response& rs) {
      rs.send(std::string{rq.authority()} + (rq.header("proxy-authorization") ? " leaked" : ""));
    });
    s.get("/", [](request& rq, response& rs) { rs.send(std::to_string(rq.version())); });
    const served plain{s};
    const served encrypted{
        s, tls::server_context{{.certificates = {{files.chain(), files.key()}}, .alpn = server::protocols()}}};
    {
      socks_server p{plain.at()};
      client c{{.proxies = proxy_options{.for_http = "socks5://" + p.at()}}};
      for (int i = 0; i < 2; ++i) EXPECT_EQ(c.get("http://one.test/a?b").body(), "one.test");
      EXPECT_EQ(c.get("http://two.test:8080/a").body(), "two.test:8080");  // its own connection
      EXPECT_EQ(c.get("http://10.0.0.1/a").body(), "10.0.0.1");
      EXPECT_EQ(c.get("http://[fe80::7]/a").body(), "[fe80::7]");
      EXPECT_EQ(p.asked, (std::vector<std::string>{"3 one.test 80", "3 two.test 8080", "1 167772161 80", "4 7 80"}));
    }
    {
      socks_server p{plain.at(), {.method = "\x05\x02", .reply{"\x05\x00\x00\x03\x09localhost\x00\x50", 16}}};
      client named{{.proxies = proxy_options{.for_http = "socks5h://me:s%40cret@" + p.at()}}};
      EXPECT_EQ(named.get("http://one.test/a").body(), "one.test");
      EXPECT_EQ(p.asked, std::vector<std::string>{"me:s@cret 3 one.test 80"});
    }
    socks_server p{encrypted.at()};
    client c{{.proxies = proxy_options{.for_https = "socks5://" + p.at()}},
             tls::client_context{{.roots = files.roots(), .alpn = {"h2"}}}};
    EXPECT_EQ(c.get("https://localhost/").body(), "20");
    EXPECT_EQ(p.asked, std::vector<std::string>{"3 localhost 443"});
  });
}

TEST(http_proxies, of_socks_that_refuse_say_why) {
  ramie::run([&] {
    server s;
    const served at{s};
    const auto why = [&](const std::string& login, const socks_answers& answers = {}) -> std::string {
      const socks_server p{at.at(), answers};
      client c{{.proxies = proxy_options{.for_http = "socks5://" + login + p.at()}}};
      try {
        return std::to_string(c.get("http://one.test/").status());
      } catch (const net::io_error& e) {
        return e.what();
      }
    };
    EXPECT_EQ(why(""), "404");
    const socks_answers none{.method = "\x05\xff"};
    EXPECT_TRUE(contains(why("", none), "it wants a user and a password"));
    EXPECT_TRUE(contains(why("me:secret@", none), "none of the ways to log in"));
    EXPECT_TRUE(contains(why("", {.method = "\x05\x02"}), "it wants a user and a password"));
    const socks_answers stranger{.method = "\x05\x02", .login = "\x01\x01"};
    EXPECT_TRUE(contains(why("me:secret@", stranger), "does not accept the user and password"));
    EXPECT_FALSE(contains(why("me:secret@", stranger), "secret"));
    EXPECT_TRUE(contains(why("", {.method = "HTTP/1.1 400 Bad Request\r\n\r\n"}), "does not speak version 5"));
    EXPECT_TRUE(contains(why("", {.reply{"\x05\x02\x00\x01\0\0\0\0\0\0", 10}}), "its rules do not allow that"));
    EXPECT_TRUE(contains(why("", {.reply{"\x05\x00\x00\x09\0\0\0\0\0\0", 10}}), "its reply is broken"));
    EXPECT_THROW(
        client(client_options{.proxies = proxy_options{.for_http = "socks5://" + std::string(256, 'u') + "@x"}}),
        invalid_argument);
    EXPECT_THROW(client(client_options{.proxies = proxy_options{.for_http = "socks5://:secret@x"}}), invalid_argument);
    EXPECT_THROW(client(client_options{.proxies = proxy_options{.for_http = "socks4://x"}}), invalid_argument);
  });
}

}  // namespace
}  // namespace ramie::http
