// Handlers whose deadline has passed, and who go on: each call that fails is made again.
#include "../testing.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace ramie::http {
namespace {

using namespace std::chrono_literals;

std::atomic<int> late{0};

/// Calls f until it has come to pass; at first, too late.
template <class F>
auto again_and_again(F f) {
  for (int i = 0;; ++i) {
    try {
      return with_timeout(i < 2 ? 0h : 1h, f);
    } catch (const timeout_error&) {
      ++late;
    }
    this_fiber::yield();
  }
}

void add_late_echo(server& s) {
  s.post("/", [](request& rq, response& rs) {
    std::string all;
    std::array<std::byte, 100> part;
    while (const std::size_t n = again_and_again([&] { return rq.read_some(part); }))
      all += net::text_of(std::span{part}.first(n));
    for (std::size_t i = 0; i < all.size(); i += 100) again_and_again([&] { rs.write(all.substr(i, 100)); });
  });
}

std::string numbers() {
  std::string all;
  for (int i = 0; i < 20'000; ++i) all += std::to_string(i) + " ";
  return all;
}

TEST(http_late, calls_lose_nothing_and_send_nothing_twice) {
  const std::string text = numbers();
  each_way(add_late_echo, [&](client& c, const std::string& base, const std::string& way) {
    late = 0;
    for (int i = 0; i < 3; ++i) {
      const std::string got = c.post(base + "/", text).body();
      EXPECT_TRUE(got == text) << way;
    }
    EXPECT_GT(late, 0) << way;
  });
}

TEST(http_late, a_last_call_is_whole_or_ends_the_response) {
  const std::string little(10, 'x'), much(100'000, 'y');
  const auto add = [&](server& s) {
    const auto send_late = [](response& rs, const std::string& body) {
      try {
        with_timeout(0ms, [&] { rs.send(body); });
      } catch (const timeout_error&) {
        // It may have been sent, or not.
      }
    };
    s.get("/little", [=](request&, response& rs) { send_late(rs, little); });
    s.get("/much", [=](request&, response& rs) { send_late(rs, much); });
  };
  each_way(add, [&](client& c, const std::string& base, const std::string& way) {
    for (int i = 0; i < 200; ++i) {
      EXPECT_EQ(c.get(base + "/little").body(), little) << way;
      try {
        EXPECT_TRUE(c.get(base + "/much").body() == much) << way;
      } catch (const net::io_error&) {
        // It was cut off.
      }
    }
  });
}

TEST(http_late, a_file_that_is_cut_short_ends_the_connection) {
  const std::string name = ::testing::TempDir() + "ramie_late_file." + std::to_string(::getpid());
  std::ofstream{name}.close();
  constexpr std::uint64_t size = std::uint64_t{64} << 20;  // more than the sockets take
  std::filesystem::resize_file(name, size);
  net::with_workers([&] {
    server s;
    std::atomic<scope*> part{nullptr};
    event cut;
    s.get("/file", [&](request& rq, response& rs) {
      scope sending;
      part = &sending;
      sending.spawn([&] { rs.send_file(rq, name); });
      try {
        sending.join();
      } catch (const cancelled&) {
        // As below.
      }
      cut.set();
    });
    s.get("/", [](request&, response& rs) { rs.send("another"); });
    const served at{s};
    net::tcp_stream c = net::tcp_stream::connect(at.at());
    c.write_all(get("/file") + get("/"));
    std::array<std::byte, 4096> first;
    EXPECT_GT(c.read_some(first), 0u);
    part.load()->cancel();
    cut.wait();
    std::string said;
    try {
      said = net::read_all(c);
    } catch (const net::io_error&) {
      // It was reset.
    }
    EXPECT_LT(said.size(), size);
    EXPECT_FALSE(said.ends_with("another"));
  });
  std::filesystem::remove(name);
}

}  // namespace
}  // namespace ramie::http
