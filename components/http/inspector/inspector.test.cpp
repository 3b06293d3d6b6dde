// The live page, from outside: what it says of a program that is known.
#include "../testing.hpp"

#include <ramie/actor.hpp>
#include <ramie/channel.hpp>
#include <ramie/inspect.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace ramie::http {
namespace {

struct letter {};

/// An actor that takes no message before `open`.
class box : public actor<box> {
 public:
  explicit box(event* open) : open_{open} {}
  void on(letter) { open_->wait(); }

 private:
  event* open_;
};

std::string local_get(const inspector& page, const std::string& target, const std::string& fields = "") {
  std::string all;
  runtime asks{{.workers = 1}};
  asks.run([&] { all = ask(page.at(), get(target, fields + "connection: close\r\n")); });
  return all;
}
std::string local_post(const inspector& page, const std::string& target, const std::string& fields = "") {
  std::string all;
  runtime asks{{.workers = 1}};
  asks.run([&] {
    all =
        ask(page.at(), "POST " + target + " HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\nconnection: close\r\n" +
                           fields + "\r\n");
  });
  return all;
}

std::string member(const std::string& of, const std::string& name) {
  const std::size_t at = of.find('"' + name + "\":");
  if (at == std::string::npos) return {};
  const std::size_t from = at + name.size() + 3;
  return of.substr(from, of.find_first_of(",}", from) - from);
}

/// Asks until it says `part`: what is looked at may have only just begun.
std::string state_with(const inspector& page, const std::string& part, const std::string& query = "") {
  std::string state;
  while (!contains(state, part)) state = local_get(page, "/api/state" + query);
  return state;
}

TEST(inspectors, show_fibers_actors_and_workers) {
  event open;  // the actor may wait for it until the runtime ends
  runtime shop{{.workers = 2, .name = "shop"}};
  inspector page{shop};
  shop.run([&] {
    channel<int> numbers;
    auto waiter = spawn(fiber_options{.name = "wanting"}, [&] { (void)numbers.recv(); });
    auto desk = spawn_actor<box>(actor_options{.name = "the \"desk\""}, &open);
    for (int i = 0; i < 5; ++i) desk.tell(letter{});
    blocking([&] {
      const std::string state = state_with(page, "\"mail\":4");
      EXPECT_EQ(status_of(state), 200);
      EXPECT_TRUE(contains(state, "content-type: application/json")) << state;
      EXPECT_TRUE(contains(state, "\"runtimes\":[{\"name\":\"shop\"")) << state;
      EXPECT_TRUE(contains(state, "\"name\":\"wanting\"")) << state;
      EXPECT_TRUE(contains(state, "\"reason\":\"channel receive\",\"file\":\"")) << state;
      EXPECT_TRUE(contains(state, "inspector.test.cpp\"")) << state;
      EXPECT_TRUE(contains(state, "\"name\":\"the \\\"desk\\\"\",\"type\":\"")) << state;
      EXPECT_TRUE(contains(state, "\"number\":0,")) << state;
      EXPECT_TRUE(contains(state, "\"number\":1,")) << state;
      EXPECT_FALSE(contains(state, "\"name\":\"inspector\"")) << state;
      EXPECT_EQ(member(state, "all_actors"), "1");
    });
    open.set();
    numbers.close();
    waiter.join();
  });
}

TEST(inspectors, follow_one_fiber_with_its_calls) {
  runtime shop;
  inspector page{shop};
  shop.run([&] {
    event never;
    auto waiter = spawn(fiber_options{.name = "wanting"}, [&] { never.wait(); });
    blocking([&] {
      const std::string all = state_with(page, "\"name\":\"wanting\",\"kind\":\"fiber\",\"state\":\"waits\"");
      const std::size_t name = all.find("\"name\":\"wanting\"");
      const std::size_t from = all.rfind("\"id\":\"", name) + 6;
      const std::string id = all.substr(from, all.find('"', from) - from);
      EXPECT_FALSE(contains(all, "\"calls\""));
      const std::string state = state_with(page, "\"calls\":[\"", "?fibers=1&follow=" + id);
      EXPECT_TRUE(contains(state, "\"fibers\":[{\"id\":\"" + id + "\"")) << state;
      EXPECT_TRUE(contains(state.substr(state.find("\"calls\"")), "follow_one_fiber_with_its_calls")) << state;
    });
    never.set();
    waiter.join();
  });
}

TEST(inspectors, answer_while_every_worker_is_busy) {
  runtime shop{{.workers = 1, .name = "shop"}};
  inspector page{shop};
  std::atomic<bool> runs{true}, begun{false};
  auto hog = shop.spawn(fiber_options{.name = "hog"}, [&] {
    begun.store(true);
    while (runs.load(std::memory_order_relaxed)) {
    }
  });
  while (!begun.load()) std::this_thread::yield();
  const std::string state = state_with(page, "\"title\":\"hog\"");
  EXPECT_TRUE(contains(state, "\"state\":\"runs\"")) << state;
  runs.store(false);
  hog.join();
}

TEST(inspectors, look_no_more_often_than_they_may) {
  runtime shop{{.workers = 1}};
  inspector page{shop};
  shop.run([&] {
    // A thousand fibers cost a look long enough that the second request comes before the next.
    event open;
    scope all;
    for (int i = 0; i < 1000; ++i) all.spawn([&] { open.wait(); });
    blocking([&] {
      const std::string first = state_with(page, "\"count\":1000");
      std::string second = first, third = first;
      for (int tries = 0; member(second, "next_ms") == "0" && tries < 1000; ++tries)
        second = local_get(page, "/api/state");
      third = local_get(page, "/api/state");
      // Either it is the same look, or the time was over.
      if (member(third, "time_ms") != member(second, "time_ms")) {
        EXPECT_GE(std::stol(member(third, "time_ms")) - std::stol(member(second, "time_ms")),
                  std::stol(member(second, "next_ms")));
      }
    });
    open.set();
    all.join();
  });
}

TEST(inspectors, want_a_token_where_others_could_look) {
  runtime shop{{.workers = 1}};
  EXPECT_THROW((inspector{shop, {.at = {"0.0.0.0", 0}}}), invalid_argument);
  EXPECT_THROW((inspector{shop, {.at = {"", 0}}}), invalid_argument);
  EXPECT_THROW((inspector{shop, {.token = "short"}}), invalid_argument);
  EXPECT_THROW((inspector{shop, {.token = "with spaces in it and long"}}), invalid_argument);
  const std::string token = "0123456789abcdef";
  inspector page{shop, {.at = {"0.0.0.0", 0}, .token = token}};
  EXPECT_TRUE(page.url().ends_with("/#" + token)) << page.url();
  EXPECT_EQ(status_of(local_get(page, "/")), 200);
  for (const std::string target : {"/api/state", "/metrics"}) {
    EXPECT_EQ(status_of(local_get(page, target)), 401) << target;
    EXPECT_EQ(status_of(local_get(page, target, "authorization: Bearer 0123456789abcdeg\r\n")), 401) << target;
    EXPECT_EQ(status_of(local_get(page, target, "authorization: Bearer 0123456789abcdef0\r\n")), 401) << target;
    EXPECT_EQ(status_of(local_get(page, target, "authorization: Bearer " + token + "\r\n")), 200) << target;
  }
  for (const std::string target : {"/api/dump", "/api/trace?seconds=0"}) {
    EXPECT_EQ(status_of(local_post(page, target)), 401) << target;
    EXPECT_EQ(status_of(local_post(page, target, "authorization: Bearer " + token + "\r\n")), 200) << target;
  }
}

TEST(inspectors, refuse_what_other_sites_ask_by_a_viewers_browser) {
  runtime shop{{.workers = 1}};
  inspector page{shop};
  runtime{{.workers = 1}}.run([&] {
    const auto asked_as = [&](const std::string& host, const std::string& target = "/api/state") {
      return status_of(
          ask(page.at(), "GET " + target + " HTTP/1.1\r\nhost: " + host + "\r\nconnection: close\r\n\r\n"));
    };
    for (const char* host : {"evil.example", "127.evil.example", "127.0.0.1.evil.example", "localhost.evil.example",
                             "localhost.", "[::2]", "0.0.0.0", "128.0.0.1"}) {
      EXPECT_EQ(asked_as(host), 403) << host;
      EXPECT_EQ(asked_as(host, "/metrics"), 403) << host;
      EXPECT_EQ(asked_as(std::string{host} + ":80"), 403) << host;
    }
    EXPECT_EQ(asked_as("[::1].evil.example"), 400);  // it is no host
    for (const char* host : {"localhost", "127.0.0.1", "127.0.0.53:80", "[::1]", "[::1]:8080"})
      EXPECT_EQ(asked_as(host), 200) << host;
  });
  EXPECT_EQ(status_of(local_post(page, "/api/dump", "origin: http://evil.example\r\n")), 403);
  EXPECT_EQ(status_of(local_post(page, "/api/dump", "origin: http://localhost\r\n")), 200);
  const std::string shown = local_get(page, "/");
  EXPECT_TRUE(contains(shown, "content-security-policy: default-src 'none'")) << shown.substr(0, 500);
}

/// What requests carry is not for viewers, whoever they are.
TEST(inspectors, show_no_secrets_of_the_program) {
  const std::string secret = "plum-jam-4711", token = "0123456789-the-token";
  runtime shop{{.workers = 2, .name = "shop"}};
  inspector page{shop, {.at = {"0.0.0.0", 0}, .token = token}};
  const std::string mine = "authorization: Bearer " + token + "\r\n";
  shop.run([&] {
    event arrived, answer;
    server site;
    site.post("/pay/{card}", [&](request& rq, response& rs, const std::string&) {
      EXPECT_EQ(rq.body(), secret);
      arrived.set();
      answer.wait();
      rs.header("set-cookie", "id=" + secret);
      rs.send(secret);
    });
    net::tcp_listener listener{{"127.0.0.1", 0}};
    auto serving = spawn([&] { site.serve(listener); });
    std::string seen;
    auto looking = spawn([&] {
      arrived.wait();
      blocking([&] {
        std::string trace;
        std::jthread recording{[&] { trace = local_post(page, "/api/trace?seconds=1&runtime=shop", mine); }};
        seen += local_get(page, "/api/state?fibers=2000&actors=2000", mine) + local_get(page, "/metrics", mine) +
                local_post(page, "/api/dump", mine);
        answer.set();
        recording.join();
        seen += trace;
      });
    });
    client c;
    client_response r = c.request("http://" + listener.local().to_string() + "/pay/" + secret + "?pin=" + secret,
                                  {.method = "POST",
                                   .headers = {{"authorization", "Basic " + secret}, {"cookie", "id=" + secret}},
                                   .body = secret});
    EXPECT_EQ(r.body(), secret);
    looking.join();
    EXPECT_TRUE(contains(seen, "\"runtimes\":[{\"name\":\"shop\"")) << seen.substr(0, 1000);
    EXPECT_TRUE(contains(seen, "traceEvents")) << seen.size();
    EXPECT_FALSE(contains(seen, secret));
    EXPECT_FALSE(contains(seen, token));
    site.stop();
    serving.join();
  });
}

TEST(inspectors, name_the_parameter_that_is_wrong) {
  runtime shop{{.workers = 1}};
  inspector page{shop};
  EXPECT_TRUE(contains(local_get(page, "/api/state?fibers=x"), "fibers has to be a number from 0 to 2000"));
  EXPECT_TRUE(contains(local_get(page, "/api/state?actors=2001"), "actors has to be a number from 0 to 2000"));
  EXPECT_TRUE(contains(local_get(page, "/api/state?follow=zz"), "follow has to be an id"));
  EXPECT_TRUE(contains(local_post(page, "/api/trace?seconds=61"), "seconds has to be a number from 0 to 60"));
  EXPECT_EQ(status_of(local_post(page, "/api/trace?seconds=0&runtime=other")), 404);
}

TEST(inspectors, take_dumps_and_traces_and_serve_metrics) {
  runtime shop{{.workers = 1, .name = "shop"}};
  inspector page{shop};
  EXPECT_TRUE(contains(local_post(page, "/api/dump"), "runtime \"shop\""));
  EXPECT_TRUE(contains(local_post(page, "/api/trace?seconds=0"), "\"traceEvents\""));
  ASSERT_TRUE(shop.record());
  EXPECT_EQ(status_of(local_post(page, "/api/trace?seconds=0")), 409);
  shop.stop_recording();
  const std::string metrics = local_get(page, "/metrics");
  EXPECT_TRUE(contains(metrics, "ramie_live{runtime=\"shop\"} 0\n")) << metrics;
  EXPECT_FALSE(contains(metrics, "runtime=\"inspector\"")) << metrics;
}

struct counter_of_plums final : status_source {
  [[nodiscard]] std::vector<status_table> tables() const override {
    return {{"plums", "Plums.", {"place"}, {"eaten_total"}, {{{"the \"cellar\""}, {41}}}}};
  }
  void dump(status_text& to) const noexcept override { to << "41 plums\n"; }
};

TEST(inspectors, show_what_components_show) {
  runtime shop{{.workers = 1, .name = "shop"}};
  inspector page{shop};
  EXPECT_TRUE(contains(local_get(page, "/api/state"), "\"tables\":[]"));
  const counter_of_plums plums;
  const status_registration shown{plums};
  EXPECT_TRUE(contains(local_get(page, "/api/state?fibers=1"),
                       "{\"name\":\"plums\",\"help\":\"Plums.\",\"labels\":[\"place\"],\"figures\":[\"eaten_total\"],"
                       "\"rows\":[{\"labels\":[\"the \\\"cellar\\\"\"],\"figures\":[41]}]}"));
  EXPECT_TRUE(contains(local_get(page, "/metrics"), "ramie_plums_eaten_total{place=\"the \\\"cellar\\\"\"} 41\n"));
  EXPECT_TRUE(contains(local_post(page, "/api/dump"), "41 plums\n"));
}

TEST(inspectors, outlive_what_they_show) {
  auto shop = std::make_unique<runtime>(runtime_options{.workers = 1, .name = "shop"});
  inspector page{*shop};
  EXPECT_TRUE(contains(local_get(page, "/api/state"), "\"name\":\"shop\""));
  shop.reset();
  state_with(page, "\"runtimes\":[]");
  EXPECT_EQ(status_of(local_post(page, "/api/trace?seconds=0")), 404);
}

/// A variable of the environment, for as long as it lives.
struct variable {
  variable(const char* n, const std::string& value) : name{n} { ::setenv(name, value.c_str(), 1); }
  ~variable() { ::unsetenv(name); }
  variable(const variable&) = delete;
  variable& operator=(const variable&) = delete;
  const char* name;
};

std::string free_port() {
  std::string port;
  runtime{{.workers = 1}}.run([&] { port = std::to_string(on_any_port().local().port()); });
  return port;
}

TEST(inspectors, by_the_environment_live_from_the_first_runtime_to_the_last) {
  const std::string port = free_port();
  const net::endpoint at = net::endpoint::parse("127.0.0.1:" + port);
  {
    const variable set{"RAMIE_INSPECT", "127.0.0.1:" + port};
    runtime first{{.workers = 1, .name = "first"}};
    {
      runtime second{{.workers = 1, .name = "second"}};
      second.run([&] {
        const std::string state = ask(at, get("/api/state", "connection: close\r\n"));
        EXPECT_TRUE(contains(state, "\"name\":\"first\"")) << state;
        EXPECT_TRUE(contains(state, "\"name\":\"second\"")) << state;
        EXPECT_FALSE(contains(state, "\"name\":\"inspector\"")) << state;
      });
    }
    first.run([&] { EXPECT_EQ(status_of(ask(at, get("/api/state", "connection: close\r\n"))), 200); });
  }
  runtime{{.workers = 1}}.run([&] { EXPECT_THROW((void)net::tcp_stream::connect(at), net::io_error); });
}

TEST(inspectors, by_the_environment_refuse_what_is_no_address) {
  const auto refused = [](const std::string& value) {
    const variable set{"RAMIE_INSPECT", value};
    try {
      runtime r{{.workers = 1}};
    } catch (const invalid_argument& e) {
      return std::string{e.what()};
    }
    return std::string{};
  };
  EXPECT_TRUE(contains(refused("nonsense"), "RAMIE_INSPECT is \"nonsense\"; it must be [TOKEN@]ADDRESS:PORT"));
  EXPECT_TRUE(contains(refused("0.0.0.0:0"), "give a token"));
  EXPECT_FALSE(contains(refused("secret-secret-secret@nonsense"), "secret-secret")) << "the token is a secret";
}

TEST(inspectors, by_the_environment_do_without_a_port_that_is_taken) {
  runtime other{{.workers = 1}};
  other.run([&] {
    net::tcp_listener taken = on_any_port();
    const variable set{"RAMIE_INSPECT", taken.local().to_string()};
    testing::internal::CaptureStderr();
    blocking([&] { EXPECT_EQ((runtime{{.workers = 1}}.run([] { return 5; })), 5); });
    EXPECT_TRUE(contains(testing::internal::GetCapturedStderr(), "ramie: RAMIE_INSPECT: "));
  });
}

}  // namespace
}  // namespace ramie::http
