// What stands around handlers: middlewares, and what is told of responses.
#include "../testing.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

namespace ramie::http {
namespace {

TEST(http_middleware, stands_around_handlers_in_order) {
  std::mutex lock;
  std::string seen;
  const auto note = [&](const std::string& what) {
    const std::lock_guard locked{lock};
    seen += what;
  };
  each_way(
      [&](server& s) {
        s.use([&](request&, response& rs, const std::function<void()>& next) {
          note("a");
          rs.header("x", "a");
          next();
          note("A" + std::to_string(rs.status()));
        });
        s.use("/inner", [&](request&, response&, const std::function<void()>& next) {
          note("b");
          next();
          note("B");
        });
        s.get("/", [&](request&, response& rs) {
          note("-");
          rs.send("outer");
        });
        s.get("/inner/{name}", [&](request&, response& rs, const std::string& name) {
          note(name);
          rs.status(202).send("inner");
        });
      },
      [&](client& c, const std::string& url, const std::string& way) {
        const auto asked = [&](const std::string& target, int status) {
          seen.clear();
          client_response r = c.get(url + target);
          EXPECT_EQ(r.status(), status) << way << target;
          EXPECT_EQ(r.header("x"), "a") << way << target;
          static_cast<void>(r.body());
          // The response is there before what stands around the handler has ended.
          for (;;) {
            {
              const std::lock_guard locked{lock};
              if (seen.find('A') != std::string::npos) return seen;
            }
            this_fiber::yield();
          }
        };
        EXPECT_EQ(asked("/", 200), "a-A200") << way;
        EXPECT_EQ(asked("/inner/n", 202), "abnBA202") << way;
        EXPECT_EQ(asked("/nothing", 404), "aA404") << way;
        EXPECT_EQ(asked("/inner", 404), "abBA404") << way;
        EXPECT_EQ(asked("/inner/n/m", 404), "abBA404") << way;
        EXPECT_EQ(asked("/innermost", 404), "aA404") << way;
        // However it is written.
        EXPECT_EQ(asked("/%69nner/n", 202), "abnBA202") << way;
        EXPECT_EQ(asked("/inner/n%2Fm", 202), "abn/mBA202") << way;
        EXPECT_EQ(asked("//inner/n", 404), "abBA404") << way;
        EXPECT_EQ(asked("/inner//n", 404), "abBA404") << way;
      });
}

TEST(http_middleware, may_answer_itself_and_sees_what_handlers_throw) {
  each_way(
      [](server& s) {
        s.use("/private/", [](request& rq, response& rs, const std::function<void()>& next) {
          if (rq.header("authorization") == "plum") return next();
          rs.status(401).header("www-authenticate", "Basic").send("who are you?");
        });
        s.use("/empty", [](request&, response& rs, const std::function<void()>&) { rs.status(204); });
        s.use("/caught", [](request&, response& rs, const std::function<void()>& next) {
          try {
            next();
          } catch (const std::logic_error& e) {
            rs.status(409).send(e.what());
          }
        });
        s.use("/throws", [](request&, response&, const std::function<void()>&) { throw status_error{418, "tea"}; });
        for (const char* path : {"/private/a", "/empty", "/throws"})
          s.get(path, [](request&, response& rs) { rs.send("handled"); });
        s.get("/caught", [](request&, response&) { throw std::logic_error{"broken"}; });
      },
      [](client& c, const std::string& url, const std::string& way) {
        client_response r = c.get(url + "/private/a");
        EXPECT_EQ(r.status(), 401) << way;
        EXPECT_EQ(r.body(), "who are you?") << way;
        EXPECT_EQ(c.get(url + "/private").status(), 401) << way;
        EXPECT_EQ(c.request(url + "/private/a", {.headers = {{"authorization", "plum"}}}).body(), "handled") << way;
        EXPECT_EQ(c.get(url + "/empty").status(), 204) << way;
        EXPECT_EQ(c.get(url + "/throws").status(), 418) << way;
        r = c.get(url + "/caught");
        EXPECT_EQ(r.status(), 409) << way;
        EXPECT_EQ(r.body(), "broken") << way;
      });
  server s;
  for (const char* wrong : {"private", "", "/users/{id}", "/private/*", "/a%20b", "/a/../b", "/."})
    EXPECT_THROW(s.use(wrong, {}), invalid_argument) << wrong;
}

TEST(http_middleware, guards_files_however_they_are_asked_for) {
  const tls::scratch_folder folder;
  std::filesystem::create_directory(folder / "private");
  std::ofstream{folder / "private/secret"} << "the secret";
  std::ofstream{folder / "known"} << "known";
  each_way(
      [&](server& s) {
        s.use("/private", [](request&, response&, const std::function<void()>&) { throw status_error{401, "no"}; });
        s.files("/", folder / "");
        s.get("/private/{name}", [](request&, response& rs, const std::string& name) { rs.send("secret " + name); });
        s.get("/private/{id}/edit", [](request&, response& rs, const std::string& id) { rs.send("secret " + id); });
      },
      [](client& c, const std::string& url, const std::string& way) {
        EXPECT_EQ(c.get(url + "/known").body(), "known") << way;
        for (const char* path :
             {"/private/secret", "//private/secret", "/private//secret", "/./private/secret", "/%70rivate/secret",
              "/x/../private/secret", "/private%2Fsecret", "/.//private/secret", "/private/..", "/private/%2e%2e",
              "/private/.", "/private/../edit", "/private/x/../../private/y"}) {
          client_response r = c.get(url + path);
          EXPECT_TRUE(r.status() == 401 || r.status() == 404) << way << path << r.status();
          EXPECT_FALSE(contains(r.body(), "secret")) << way << path;
        }
      });
}

TEST(http_responses, are_told_when_they_have_ended) {
  struct told {
    std::string line;
    response_summary became;
  };
  std::mutex lock;
  std::vector<told> all;
  each_way(
      [&](server& s) {
        s.on_response([&](const request& rq, const response_summary& became) {
          const std::lock_guard locked{lock};
          all.push_back({common_log_line(rq, became), became});
        });
        s.on_failure([](const request&, const std::exception_ptr&) {});
        s.get("/", [](request&, response& rs) { rs.send("hello"); });
        s.get("/parts", [](request&, response& rs) {
          for (int i = 0; i < 100; ++i) rs.write(std::string(1000, 'x'));
        });
        s.get("/fails", [](request&, response&) { throw 42; });
        s.get("/late", [](request&, response& rs) {
          rs.send("whole");
          throw 42;
        });
        s.get("/cut", [](request&, response& rs) {
          rs.write("begun");
          throw 42;
        });
      },
      [&](client& c, const std::string& url, const std::string& way) {
        const auto line_of = [&](const std::string& target, const std::string& method = "GET") {
          {
            const std::lock_guard locked{lock};
            all.clear();
          }
          static_cast<void>(
              net::code_of([&] { static_cast<void>(c.request(url + target, {.method = method}).body()); }));
          for (;;) {
            {
              const std::lock_guard locked{lock};
              if (!all.empty()) {
                EXPECT_EQ(all.size(), 1u) << way;
                EXPECT_GE(all[0].became.took.count(), 0) << way;
                EXPECT_EQ(all[0].became.is_whole, target != "/cut") << way << target;
                const std::string& line = all[0].line;
                EXPECT_TRUE(line.starts_with("127.0.0.1 - - [")) << line;
                EXPECT_EQ(line.find("] "), 41u) << line;
                return line.substr(43);
              }
            }
            this_fiber::yield();
          }
        };
        const std::string version = way.starts_with("h2") ? " HTTP/2.0\" " : " HTTP/1.1\" ";
        EXPECT_EQ(line_of("/"), "\"GET /" + version + "200 5") << way;
        EXPECT_EQ(line_of("/", "HEAD"), "\"HEAD /" + version + "200 0") << way;
        EXPECT_EQ(line_of("/parts"), "\"GET /parts" + version + "200 100000") << way;
        EXPECT_EQ(line_of("/none?a=\"b\\"), "\"GET /none?a=\\x22b\\x5C" + version + "404 22") << way;
        EXPECT_EQ(line_of("/fails"), "\"GET /fails" + version + "500 16") << way;
        EXPECT_EQ(line_of("/late"), "\"GET /late" + version + "200 5") << way;
        EXPECT_EQ(line_of("/cut"), "\"GET /cut" + version + "200 5") << way;
      });
}

TEST(http_responses, that_nobody_took_are_told_as_cut_off) {
  for (const http_versions version : {http_versions::only_1, http_versions::only_2})
    net::with_workers([&] {
      server s;
      event begun, told;
      response_summary became;
      s.on_response([&](const request& rq, const response_summary& b) {
        if (rq.target() != "/") return;
        this_fiber::sleep_for(std::chrono::milliseconds{1});  // it may wait, though the request was cancelled
        became = b;
        told.set();
      });
      s.get("/", [&](request&, response&) {
        begun.set();
        event{}.wait();
      });
      const served at{s};
      {
        client c{{.versions = version}};
        auto asking = spawn([&] { static_cast<void>(c.get("http://127.0.0.1:" + at.port())); });
        begun.wait();
        asking.request_stop();  // closes the connection, or resets the stream
        static_cast<void>(net::code_of([&] {
          try {
            asking.join();
          } catch (const cancelled&) {
          }
        }));
        // The reset goes along with what is sent next.
        if (version == http_versions::only_2) static_cast<void>(c.request("http://127.0.0.1:" + at.port() + "/none"));
      }
      told.wait();
      EXPECT_EQ(became.status, 0);
      EXPECT_EQ(became.body_bytes, 0u);
      EXPECT_FALSE(became.is_whole);
    });
}

}  // namespace
}  // namespace ramie::http
