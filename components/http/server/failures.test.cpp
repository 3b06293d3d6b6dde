// Handlers that fail, in whatever way: the client gets a status, the program all of it, and no other request notices.
#include "../testing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ramie::http {
namespace {

using namespace std::chrono_literals;

/// What handlers may throw, and how it is told; "" for what is nobody's fault.
const std::vector<std::pair<std::string, std::function<void()>>>& failures() {
  static const std::vector<std::pair<std::string, std::function<void()>>> all{
      {"/number", [] { throw 42; }},
      {"/error", [] { throw std::runtime_error{"a secret"}; }},
      {"/upstream", [] { throw net::io_error{"upstream", net::io_errc::unexpected_end}; }},
      {"/timeout", [] { with_timeout(1ms, [] { this_fiber::sleep_for(1h); }); }},
      {"/child",
       [] {
         auto child = spawn([] { this_fiber::sleep_for(1h); });
         child.request_stop();
         child.join();
       }},
      {"/cancelled", [] { throw cancelled{}; }},
      {"/scope",
       [] {
         scope s;
         s.spawn([] { throw 42; });
         s.join();
       }},
  };
  return all;
}

class told {
 public:
  void operator()(const request& of, const std::exception_ptr& failure) {
    const std::lock_guard guard{lock_};
    EXPECT_NE(failure, nullptr);
    paths_.emplace_back(of.path());
  }
  std::vector<std::string> paths() {
    const std::lock_guard guard{lock_};
    return paths_;
  }

 private:
  std::mutex lock_;
  std::vector<std::string> paths_;
};

TEST(http_failures, of_handlers_are_answered_and_end_nothing_else) {
  told heard;
  event begun, go;
  const auto add = [&](server& s) {
    for (const auto& [path, fail] : failures())
      s.get(path, [fail = fail](request&, response& rs) {
        rs.header("x-mine", "of a response that is never sent").header("content-type", "image/png");
        fail();
        rs.send("it has not failed");
      });
    s.get("/status", [](request&, response& rs) {
      rs.header("retry-after", "120");
      throw status_error{503, "later"};
    });
    s.get("/whole", [](request&, response& rs) {
      rs.send("whole");
      throw 42;
    });
    s.get("/slow", [&](request&, response& rs) {
      begun.set();
      go.wait();
      rs.send("slow");
    });
    s.on_failure(std::ref(heard));
  };
  each_way(add, [&](client& c, const std::string& base, const std::string& way) {
    auto slow = spawn([&] { return c.get(base + "/slow").body(); });
    begun.wait();
    const std::size_t before = heard.paths().size();
    for (const auto& [path, fail] : failures()) {
      auto got = c.get(base + path);
      EXPECT_EQ(got.status(), 500) << way << path;
      EXPECT_EQ(got.body(), "this went wrong\n") << way << path;
      EXPECT_FALSE(got.header("x-mine")) << way << path;
      EXPECT_EQ(got.header("content-type"), "text/plain; charset=utf-8") << way << path;
    }
    EXPECT_EQ(heard.paths().size(), before + failures().size()) << way;
    EXPECT_EQ(heard.paths().back(), failures().back().first) << way;
    auto later = c.get(base + "/status");
    EXPECT_EQ(later.status(), 503) << way;
    EXPECT_EQ(later.header("retry-after"), "120") << way;
    EXPECT_EQ(later.body(), "later\n") << way;
    EXPECT_EQ(heard.paths().size(), before + failures().size()) << way << ": a status is no failure";
    EXPECT_EQ(c.get(base + "/whole").body(), "whole") << way;
    while (heard.paths().size() != before + failures().size() + 1)
      this_fiber::sleep_for(1ms);  // told after the response
    go.set();
    EXPECT_EQ(slow.join(), "slow") << way;
    begun.reset();
    go.reset();
  });
}

TEST(http_failures, behind_the_head_end_their_response_alone) {
  told heard;
  const auto add = [&](server& s) {
    for (const auto& [path, fail] : failures())
      s.get(path, [fail = fail](request&, response& rs) {
        rs.write("half of it");
        fail();
      });
    s.get("/fine", [](request&, response& rs) { rs.send("fine"); });
    s.on_failure(std::ref(heard));
  };
  each_way(add, [&](client& c, const std::string& base, const std::string& way) {
    const std::size_t before = heard.paths().size();
    for (const auto& [path, fail] : failures()) {
      EXPECT_THROW(static_cast<void>(c.get(base + path).body()), net::io_error) << way << path;
      EXPECT_EQ(c.get(base + "/fine").body(), "fine") << way << path;
    }
    EXPECT_EQ(heard.paths().size(), before + failures().size()) << way;
  });
}

TEST(http_failures, of_the_connection_are_not_told) {
  told heard;
  std::atomic<int> ended{0};
  net::with_workers([&] {
    server s;
    s.on_failure(std::ref(heard));
    const auto count = [&](const std::exception&) { ++ended; };
    s.post("/read", [&](request& rq, response& rs) {
      try {
        rs.send(rq.body());
      } catch (const std::exception& e) {
        count(e);
        throw;
      }
    });
    s.get("/write", [&](request&, response& rs) {
      try {
        for (;;) rs.write(std::string(100'000, 'x'));
      } catch (const std::exception& e) {
        count(e);
        throw;
      }
    });
    const served at{s};
    for (const char* head : {"POST /read HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nabc",
                             "GET /write HTTP/1.1\r\nhost: a\r\n\r\n"}) {
      const int before = ended;
      {
        net::tcp_stream gone = net::tcp_stream::connect(at.at());
        gone.write_all(std::string_view{head});
        std::array<std::byte, 1> first;
        if (head[0] == 'G') {
          EXPECT_EQ(gone.read_some(first), 1u);
        }
      }
      while (ended == before) this_fiber::sleep_for(1ms);
    }
  });
  EXPECT_EQ(heard.paths(), std::vector<std::string>{});
}

TEST(http_failures, are_a_line_where_nobody_is_told) {
  const auto begun = std::chrono::steady_clock::now();
  ::testing::internal::CaptureStderr();
  int servers = 0;
  net::with_workers([&] {
    ++servers;
    server s;
    s.get("/error", [](request&, response&) { throw std::runtime_error{"the cause"}; });
    const served at{s};
    client c;
    for (int i = 0; i < 100; ++i) EXPECT_EQ(c.get("http://127.0.0.1:" + at.port() + "/error?key=secret").status(), 500);
  });
  const std::string said = ::testing::internal::GetCapturedStderr();
  const auto seconds = (std::chrono::steady_clock::now() - begun) / 1s;
  EXPECT_TRUE(said.starts_with("ramie: http: the handler of GET /error failed: the cause\n")) << said;
  EXPECT_EQ(said.find("secret"), std::string::npos) << said;
  EXPECT_LE(std::count(said.begin(), said.end(), '\n'), servers + seconds) << said;
}

}  // namespace
}  // namespace ramie::http
