// What is sent again, when, and how often at most.
#include "client/retries.hpp"

#include "../testing.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>

namespace ramie::http {
namespace {

using namespace std::chrono_literals;

std::string base_of(const served& at) { return "http://" + at.at().to_string(); }

TEST(http_retries, pause_for_longer_each_time_and_at_random) {
  const auto pause = [](int retry, std::uint64_t random) { return pause_before(retry, random, {}, 0, 30s).value(); };
  EXPECT_EQ(pause(1, 0), 50ms);
  EXPECT_EQ(pause(1, 50'000'000), 100ms);
  EXPECT_EQ(pause(3, 0), 200ms);
  EXPECT_EQ(pause(8, 0), 5s);
  EXPECT_EQ(pause(1000, 0), 5s);
  for (std::uint64_t random = 0; random < UINT64_MAX / 2; random = random * 3 + 1'000'003) {
    EXPECT_GE(pause(2, random), 100ms);
    EXPECT_LE(pause(2, random), 200ms);
  }
}

TEST(http_retries, wait_as_long_as_the_server_wants) {
  const auto pause = [](const char* after) { return pause_before(1, 0, after, 784'111'777, 30s); };
  EXPECT_EQ(pause("2"), 2s);
  EXPECT_EQ(pause("0"), 50ms);
  EXPECT_EQ(pause("30"), 30s);
  EXPECT_EQ(pause("31"), std::nullopt);
  EXPECT_EQ(pause("99999999999999999999"), 50ms);  // no number that there is
  EXPECT_EQ(pause("18446744073709551615"), std::nullopt);
  EXPECT_EQ(pause("Sun, 06 Nov 1994 08:49:40 GMT"), 3s);
  EXPECT_EQ(pause("Sun, 06 Nov 1994 08:00:00 GMT"), 50ms);
  EXPECT_EQ(pause("Sun, 06 Nov 2094 08:00:00 GMT"), std::nullopt);
  EXPECT_EQ(pause("soon"), 50ms);
  EXPECT_EQ(pause("-1"), 50ms);
}

TEST(http_retries, have_a_budget_for_each_host) {
  retry_budget b;
  const auto taken = [&](const char* host) {
    int n = 0;
    while (b.take(host)) ++n;
    return n;
  };
  EXPECT_EQ(taken("a"), 10);
  EXPECT_EQ(taken("b"), 10);
  for (int i = 0; i < 9; ++i) b.note_request("a");
  EXPECT_EQ(taken("a"), 0);
  b.note_request("a");
  EXPECT_EQ(taken("a"), 1);
  for (int i = 0; i < 10'000; ++i) b.note_request("a");
  EXPECT_EQ(taken("a"), 10);  // nothing is saved up
}

/// Answers with the statuses in turn, and then with 200.
struct failing {
  server s;
  std::vector<int> statuses;
  std::string retry_after{};
  std::atomic<std::size_t> asked{0};

  explicit failing(std::vector<int> which) : statuses{std::move(which)} {
    s.get("/", [this](request&, response& rs) { answer(rs); });
    s.post("/", [this](request&, response& rs) { answer(rs); });
    s.put("/", [this](request& rq, response& rs) {
      const std::string body = rq.body();
      answer(rs, body);
    });
  }
  void answer(response& rs, const std::string& body = "good") {
    const std::size_t n = asked.fetch_add(1);
    if (n >= statuses.size()) return rs.send(body);
    if (!retry_after.empty()) rs.header("retry-after", retry_after);
    rs.status(statuses[n]).send("bad");
  }
};

TEST(http_retries, send_again_what_may_be_repeated) {
  ramie::run([] {
    failing f{{503, 502, 429}};
    const served at{f.s};
    client c{{.retries_most = 3}};
    EXPECT_EQ(c.get(base_of(at) + "/").body(), "good");
    EXPECT_EQ(f.asked, 4u);
    EXPECT_EQ(f.s.statistics().connections, 1u);  // the bodies of failures are read

    f.asked = 2;
    EXPECT_EQ(c.request(base_of(at) + "/", {.method = "PUT", .body = "all of it"}).body(), "all of it");
    f.asked = 0;
    EXPECT_EQ(c.post(base_of(at) + "/", "x").status(), 503);  // it may have been done
    EXPECT_EQ(f.asked, 1u);
    f.statuses = {500};
    f.asked = 0;
    EXPECT_EQ(c.get(base_of(at) + "/").status(), 500);  // that does not pass
    EXPECT_EQ(f.asked, 1u);
  });
}

TEST(http_retries, end_after_as_many_as_were_asked_for) {
  ramie::run([] {
    failing f{std::vector<int>(100, 503)};
    const served at{f.s};
    client once, again{{.retries_most = 1}};
    EXPECT_EQ(once.get(base_of(at) + "/").status(), 503);
    EXPECT_EQ(f.asked, 1u);
    client_response last = again.get(base_of(at) + "/");
    EXPECT_EQ(last.status(), 503);
    EXPECT_EQ(last.body(), "bad");
    EXPECT_EQ(f.asked, 3u);
    f.retry_after = "3600";
    EXPECT_EQ(again.get(base_of(at) + "/").status(), 503);  // nobody waits for an hour
    EXPECT_EQ(f.asked, 4u);
  });
}

TEST(http_retries, do_not_become_a_storm) {
  ramie::run([] {
    failing f{std::vector<int>(1000, 503)};
    const served at{f.s};
    client c{{.retries_most = 5}};
    scope all;
    for (int i = 0; i < 100; ++i) all.spawn([&] { EXPECT_EQ(c.get(base_of(at) + "/").status(), 503); });
    all.join();
    // A hundred requests, ten retries, and one for ten requests at most.
    EXPECT_GE(f.asked, 110u);
    EXPECT_LE(f.asked, 120u);
  });
}

TEST(http_retries, connect_again) {
  ramie::run([] {
    net::endpoint nobody;
    {
      // An address that other processes do not use: theirs cannot take the port meanwhile.
      const auto mine = static_cast<std::uint32_t>(::getpid());
      const net::tcp_listener was{{"127." + std::to_string(((mine >> 14) & 0x7f) | 0x80) + "." +
                                       std::to_string((mine >> 7) & 0x7f) + "." + std::to_string((mine & 0x7f) + 1),
                                   0}};
      nobody = was.local();
    }
    client c{{.retries_most = 20}};
    server s;
    s.post("/", [](request&, response& rs) { rs.send("here"); });
    std::optional<net::tcp_listener> later;
    auto serving = spawn([&] {
      this_fiber::sleep_for(120ms);
      later.emplace(nobody);
      s.serve(*later);
    });
    // Nothing was sent to anybody, so it may be a POST.
    EXPECT_EQ(c.post("http://" + nobody.to_string() + "/", "x").body(), "here");
    s.stop();
    serving.join();
    later.reset();
    client once;
    EXPECT_EQ(net::code_of([&] { static_cast<void>(once.get("http://" + nobody.to_string() + "/")); }),
              std::errc::connection_refused);
  });
  EXPECT_TRUE(is_passing(std::make_error_code(std::errc::connection_reset)));
  EXPECT_FALSE(is_passing(std::make_error_code(std::errc::protocol_error)));
  EXPECT_FALSE(is_passing(net::io_errc::too_long));
}

TEST(http_retries, end_with_what_asks_for_them) {
  ramie::run([] {
    failing f{std::vector<int>(100, 503)};
    f.retry_after = "20";
    const served at{f.s};
    client c{{.retries_most = 5}};
    EXPECT_THROW(with_timeout(50ms, [&] { static_cast<void>(c.get(base_of(at) + "/")); }), timeout_error);
    EXPECT_THROW(client(client_options{.retries_most = -1}), invalid_argument);
  });
}

}  // namespace
}  // namespace ramie::http
