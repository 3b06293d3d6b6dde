// Which cookies are kept, and where they are sent.
#include "client/cookies.hpp"

#include "../testing.hpp"

#include <gtest/gtest.h>

#include <string>

namespace ramie::http {
namespace {

constexpr std::int64_t now = 1'700'000'000;

struct jar {
  cookie_jar all{};
  void set(const char* from, const std::string& line, std::int64_t at = now) { all.take(parse_url(from), line, at); }
  std::string sent(const char* to, std::int64_t at = now) { return all.header_for(parse_url(to), at); }
};

TEST(http_cookies, go_back_to_their_host) {
  jar j;
  j.set("http://a.test/", "x=1");
  j.set("http://a.test:8080/", " y = \"2\" ; HttpOnly; SameSite=Lax; what=ever");
  EXPECT_EQ(j.sent("http://a.test/any"), "x=1; y=\"2\"");
  EXPECT_EQ(j.sent("https://A.test/"), "x=1; y=\"2\"");
  EXPECT_EQ(j.sent("http://b.test/"), "");
  EXPECT_EQ(j.sent("http://sub.a.test/"), "");
  EXPECT_EQ(j.sent("http://est/"), "");
  j.set("http://a.test/", "x=3");
  EXPECT_EQ(j.sent("http://a.test/"), "x=3; y=\"2\"");  // in its old place
  for (const char* broken : {"", "=1", "no equals", ";x=1", "; Path=/"}) j.set("http://b.test/", broken);
  j.set("http://b.test/", "big=" + std::string(5000, 'x'));
  EXPECT_EQ(j.sent("http://b.test/"), "");
}

TEST(http_cookies, go_to_all_of_a_domain_if_it_is_their_servers) {
  jar j;
  j.set("http://www.a.test/", "all=1; Domain=A.test");
  j.set("http://www.a.test/", "dot=1; Domain=.a.test");
  j.set("http://www.a.test/", "own=1; Domain=www.a.test");
  j.set("http://www.a.test/", "empty=1; Domain=");
  for (const char* refused : {"no=1; Domain=b.test", "no=1; Domain=test", "no=1; Domain=.test",
                              "no=1; Domain=x.www.a.test", "no=1; Domain=ww.a.test"})
    j.set("http://www.a.test/", refused);
  EXPECT_EQ(j.sent("http://a.test/"), "all=1; dot=1");
  EXPECT_EQ(j.sent("http://x.a.test/"), "all=1; dot=1");
  EXPECT_EQ(j.sent("http://xa.test/"), "");
  EXPECT_EQ(j.sent("http://www.a.test/"), "all=1; dot=1; own=1; empty=1");
}

TEST(http_cookies, of_names_of_one_label_and_of_addresses_are_their_hosts_own) {
  jar j;
  j.set("http://localhost/", "x=1; Domain=localhost");
  EXPECT_EQ(j.sent("http://localhost/"), "x=1");
  EXPECT_EQ(j.sent("http://a.localhost/"), "");
  j.set("http://127.0.0.1/", "y=1; Domain=0.0.1");
  EXPECT_EQ(j.sent("http://127.0.0.1/"), "");
  j.set("http://127.0.0.1/", "y=1; Domain=127.0.0.1");
  EXPECT_EQ(j.sent("http://127.0.0.1/"), "y=1");
  j.set("http://[::1]/", "z=1");
  EXPECT_EQ(j.sent("http://[::1]:99/"), "z=1");
}

TEST(http_cookies, have_paths) {
  jar j;
  j.set("http://a.test/shop/cart?x=/y", "usual=1");
  j.set("http://a.test/", "deep=1; Path=/shop/cart");
  j.set("http://a.test/shop", "root=1; Path=nonsense");
  EXPECT_EQ(j.sent("http://a.test/shop/cart/1"), "deep=1; usual=1; root=1");  // longer paths first
  EXPECT_EQ(j.sent("http://a.test/shop?x"), "usual=1; root=1");
  EXPECT_EQ(j.sent("http://a.test/shopping"), "root=1");
}

TEST(http_cookies, end) {
  jar j;
  j.set("http://a.test/", "age=1; Max-Age=10; Expires=Wed, 09 Jun 1999 10:18:14 GMT");
  j.set("http://a.test/", "date=1; Expires=Tue, 14 Nov 2023 22:13:30 GMT");
  j.set("http://a.test/", "odd=1; Expires=soon; Max-Age=x");
  EXPECT_EQ(j.sent("http://a.test/", now + 9), "age=1; date=1; odd=1");
  EXPECT_EQ(j.sent("http://a.test/", now + 10), "odd=1");
  j.set("http://a.test/", "odd=; Max-Age=0");
  EXPECT_EQ(j.sent("http://a.test/"), "age=1; date=1");
  j.set("http://a.test/", "age=; Max-Age=-99999999999999999999");
  j.set("http://a.test/", "date=; expires=Thu, 01-Jan-1970 00:00:00 GMT");
  EXPECT_EQ(j.all.size(), 0u);
}

TEST(http_cookies, that_are_secure_stay_with_tls) {
  jar j;
  j.set("https://a.test/", "s=1; Secure");
  j.set("http://a.test/", "t=1; Secure");
  EXPECT_EQ(j.sent("http://a.test/"), "");
  EXPECT_EQ(j.sent("https://a.test/"), "s=1");
  j.set("http://a.test/", "s=evil");
  j.set("http://a.test/", "s=evil; Domain=a.test");
  EXPECT_EQ(j.sent("https://a.test/"), "s=1");
  j.set("http://a.test/", "__Secure-a=1");
  j.set("https://a.test/", "__Secure-b=1");
  j.set("https://a.test/", "__Host-c=1; Secure; Path=/; Domain=a.test");
  j.set("https://a.test/", "__Host-d=1; Secure");
  EXPECT_EQ(j.sent("https://a.test/"), "s=1");
  j.set("https://a.test/", "__Host-e=1; Secure; Path=/");
  EXPECT_EQ(j.sent("https://a.test/"), "s=1; __Host-e=1");
}

TEST(http_cookies, are_not_kept_without_bound) {
  jar j;
  for (int i = 0; i < 60; ++i) {
    j.set("http://a.test/", "n" + std::to_string(i) + "=1");
    static_cast<void>(j.sent("http://a.test/"));
  }
  EXPECT_EQ(j.all.size(), 50u);
  for (int i = 0; i < 4000; ++i) j.set(("http://h" + std::to_string(i) + ".test/").c_str(), "x=1");
  EXPECT_EQ(j.all.size(), 3000u);
  EXPECT_EQ(j.sent("http://h0.test/"), "");  // the oldest
  EXPECT_EQ(j.sent("http://h3999.test/"), "x=1");
}

TEST(http_cookies, dates_come_in_many_forms) {
  for (const char* same :
       {"Wed, 09 Jun 2021 10:18:14 GMT", "Wed, 09-Jun-2021 10:18:14 GMT", "Wednesday, 09-Jun-21 10:18:14 GMT",
        "Wed Jun  9 10:18:14 2021", "9 june 2021 10:18:14", "2021 Jun 9 10:18:14"})
    EXPECT_EQ(parse_cookie_date(same), 1'623'233'894) << same;
  EXPECT_EQ(parse_cookie_date("Sun, 06-Nov-94 08:49:37 GMT"), 784'111'777);
  for (const char* none : {"", "never", "Wed, 09 Jun 2021", "Wed, 31 Feb 2021 10:18:14 GMT",
                           "Wed, 09 Jun 2021 25:00:00 GMT", "Wed, 09 Jun 1600 10:18:14 GMT", "09 Jun 20210 10:18:14"})
    EXPECT_EQ(parse_cookie_date(none), std::nullopt) << none;
}

TEST(http_cookies, of_a_client_are_those_that_it_was_sent) {
  ramie::run([] {
    server s;
    s.get("/login", [](request&, response& rs) {
      rs.cookie("session", "secret", {.secure = false});
      rs.cookie("theme", "dark", {.secure = false});
      rs.status(303).header("location", "/home").send("");
    });
    s.get("/home", [](request& rq, response& rs) { rs.send(std::string{rq.header("cookie").value_or("none")}); });
    const served at{s};
    const std::string base = "http://" + at.at().to_string();
    client c{{.cookies = true}}, without;
    EXPECT_EQ(c.get(base + "/home").body(), "none");
    EXPECT_EQ(c.get(base + "/login").body(), "session=secret; theme=dark");  // also those that come with a redirect
    EXPECT_EQ(c.request(base + "/home", {.headers = {{"Cookie", "own=1"}}}).body(),
              "own=1; session=secret; theme=dark");
    EXPECT_EQ(without.get(base + "/login").body(), "none");
  });
}

}  // namespace
}  // namespace ramie::http
