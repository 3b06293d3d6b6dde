// What clients of HTTP/2 send that no library would, frame by frame.
#include "../testing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ramie::http {
namespace {

using namespace std::chrono_literals;

enum type : unsigned char {
  data = 0,
  headers = 1,
  rst_stream = 3,
  settings = 4,
  ping = 6,
  goaway = 7,
  window_update = 8,
  continuation = 9
};
constexpr unsigned char end_stream = 1, end_headers = 4;

std::string number(std::uint32_t n, int bytes) {
  std::string s;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) s += static_cast<char>(n >> shift);
  return s;
}

std::string frame(type t, unsigned char flags, std::uint32_t id, std::string_view payload) {
  return number(static_cast<std::uint32_t>(payload.size()), 3) + static_cast<char>(t) + static_cast<char>(flags) +
         number(id, 4) + std::string{payload};
}

const std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(settings, 0, 0, "");
const std::string get_root = "\x82\x86\x84\x41\x01x";  // :method GET, :scheme http, :path /, :authority x

struct received {
  type t;
  unsigned char flags;
  std::uint32_t id;
  std::string payload;
};

std::vector<received> frames_of(std::string_view s) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(s[i])); };
  std::vector<received> all;
  while (s.size() >= 9) {
    const std::size_t size = byte(0) << 16 | byte(1) << 8 | byte(2);
    all.push_back({static_cast<type>(byte(3)), static_cast<unsigned char>(byte(4)),
                   byte(5) << 24 | byte(6) << 16 | byte(7) << 8 | byte(8), std::string{s.substr(9, size)}});
    s.remove_prefix(std::min(s.size(), 9 + size));
  }
  return all;
}

/// The code of the GOAWAY; -1 if there is none.
int goaway_of(std::string_view said) {
  int code = -1;
  for (const received& f : frames_of(said))
    if (f.t == goaway && f.payload.size() >= 8) code = static_cast<unsigned char>(f.payload[7]);
  return code;
}

std::size_t count(std::string_view said, type t) {
  const auto all = frames_of(said);
  return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [&](const received& f) { return f.t == t; }));
}

TEST(http_2, a_client_that_resets_many_streams_is_sent_away) {
  net::with_workers([] {
    server s{{.streams_most = 10}};
    std::atomic<int> running{0}, most{0}, begun{0};
    s.get("/", [&](request&, response& rs) {
      const int now = ++running;
      ++begun;
      for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
      }
      this_fiber::sleep_for(1ms);
      --running;
      rs.send("hello");
    });
    const served at{s};
    std::string all = preface;
    for (std::uint32_t id = 1; id < 4000; id += 2)
      all += frame(headers, end_stream | end_headers, id, get_root) + frame(rst_stream, 0, id, number(8, 4));
    EXPECT_EQ(goaway_of(ask(at.at(), all)), 11);  // ENHANCE_YOUR_CALM
    EXPECT_LE(most.load(), 10);
    EXPECT_LE(begun.load(), 300);
    EXPECT_EQ(status_of(ask(at.at(), get("/"))), 200);
  });
}

TEST(http_2, a_client_that_has_its_streams_reset_is_sent_away) {
  net::with_workers([] {
    server s;
    std::atomic<int> begun{0};
    event never;
    s.get("/", [&](request&, response&) {
      ++begun;
      never.wait();
    });
    const served at{s};
    std::string all = preface;
    for (std::uint32_t id = 1; id < 4000; id += 2)  // a window that grows too large is an error of its stream
      all +=
          frame(headers, end_stream | end_headers, id, get_root) + frame(window_update, 0, id, number(0x7fffffff, 4));
    EXPECT_EQ(goaway_of(ask(at.at(), all)), 11);  // ENHANCE_YOUR_CALM
    EXPECT_LE(begun.load(), 300);  // as many as may run at a time, and those whose end made room: 200 resets
    never.set();
    EXPECT_EQ(status_of(ask(at.at(), get("/"))), 200);
  });
}

TEST(http_2, continuations_without_end_are_cut_off) {
  ramie::run([] {
    server s;
    s.get("/", [](request&, response& rs) { rs.send("hello"); });
    const served at{s};
    std::string all = preface + frame(headers, end_stream, 1, get_root);
    for (int i = 0; i < 10'000; ++i) all += frame(continuation, 0, 1, std::string("\x00\x01x\x01y", 5));
    const std::string said = ask(at.at(), all);
    EXPECT_NE(goaway_of(said), 0) << goaway_of(said);
    EXPECT_EQ(count(said, headers), 0u);
    EXPECT_EQ(s.statistics().requests, 0u);
    EXPECT_EQ(status_of(ask(at.at(), get("/"))), 200);
  });
}

TEST(http_2, a_small_head_that_becomes_a_large_one_is_refused) {
  ramie::run([] {
    server s;
    s.get("/", [](request&, response& rs) { rs.send("hello"); });
    const served at{s};
    // A field of 3,000 bytes goes into the table, and is repeated by a byte each.
    const std::string field = std::string("\x40\x01x\x7f\xb9\x16", 6) + std::string(3000, 'y');
    // Open until there is an answer: a server need not give one to a client that has gone.
    net::tcp_stream c = net::tcp_stream::connect(at.at());
    c.write_all(preface + frame(headers, end_stream | end_headers, 1, get_root + field + std::string(3000, '\xbe')));
    std::string said;
    std::array<std::byte, 4096> part;
    while (count(said, headers) == 0 && goaway_of(said) <= 0) {
      const std::size_t n = c.read_some(part);
      if (n == 0) break;
      said += net::text_of(std::span{part}.first(n));
    }
    EXPECT_EQ(s.statistics().requests, 0u);
    EXPECT_EQ(status_of(ask(at.at(), get("/"))), 200);
    EXPECT_TRUE(goaway_of(said) > 0 || s.statistics().refused == 1u);
  });
}

TEST(http_2, slow_heads_and_windows_that_stay_closed_end) {
  ramie::run([] {
    server s{{.header_time = 500ms, .idle = 1000ms, .write_time = 500ms}};
    s.get("/", [](request&, response& rs) { rs.send("hello"); });
    std::atomic<int> cut{0};
    s.get("/large", [&](request&, response& rs) {
      try {
        for (;;) rs.write(std::string(10'000, 'x'));
      } catch (const timeout_error&) {
        ++cut;
        throw;
      }
    });
    const served at{s};
    const auto said_to = [&](const std::string& text) {
      net::tcp_stream c = net::tcp_stream::connect(at.at());
      c.write_all(text);
      return net::read_all(c);
    };
    EXPECT_EQ(goaway_of(said_to(preface + frame(headers, end_stream, 1, get_root))), 0);
    // SETTINGS_INITIAL_WINDOW_SIZE is 0.
    const std::string closed = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(settings, 0, 0, number(4, 2) + number(0, 4));
    const std::string held = said_to(closed + frame(headers, end_stream | end_headers, 1, get_root));
    EXPECT_EQ(goaway_of(held), 0);
    EXPECT_EQ(count(held, headers), 1u);
    EXPECT_EQ(count(held, data), 0u);
    const std::string large = std::string("\x82\x86\x44\x06/large\x41\x01x", 13);
    static_cast<void>(said_to(closed + frame(headers, end_stream | end_headers, 1, large)));
    EXPECT_EQ(cut.load(), 1);
  });
}

TEST(http_2, stop_says_good_bye_and_lets_streams_finish) {
  net::with_workers([] {
    server s;
    event begun, go_on;
    s.get("/", [&](request&, response& rs) {
      begun.set();
      go_on.wait();
      rs.send("hello");
    });
    net::tcp_listener listener{{"127.0.0.1", 0}};
    auto serving = spawn([&] { s.serve(listener); });
    net::tcp_stream c = net::tcp_stream::connect(listener.local());
    c.write_all(preface + frame(headers, end_stream | end_headers, 1, get_root));
    begun.wait();
    s.stop();
    EXPECT_FALSE(serving.has_ended());
    go_on.set();
    const std::string said = net::read_all(c);
    EXPECT_EQ(goaway_of(said), 0);
    EXPECT_EQ(count(said, data), 1u);
    serving.join();
  });
}

received next_frame(net::buffered_reader<net::tcp_stream>& in) {
  std::array<std::byte, 9> head;
  const auto fill = [&](std::span<std::byte> all) {
    if (!all.empty() && !in.read_exactly(all)) throw net::io_error{"a frame", net::io_errc::unexpected_end};
  };
  fill(head);
  std::vector<std::byte> rest(std::to_integer<std::size_t>(head[1]) << 8 | std::to_integer<std::size_t>(head[2]));
  fill(rest);
  return frames_of(net::text_of(head) + net::text_of(rest)).front();
}

TEST(http_2, a_late_handler_costs_others_nothing) {
  net::with_workers([] {
    server s;
    std::atomic<int> late{0};
    s.get("/", [&](request&, response& rs) {
      for (int i = 0; i < 500; ++i) {
        try {
          with_timeout(0ms, [&] { rs.write("x"); });
        } catch (const timeout_error&) {
          ++late;
        }
      }
      rs.write(".");
    });
    const served at{s};
    net::tcp_stream c = net::tcp_stream::connect(at.at());
    net::buffered_reader in{c};
    c.write_all(preface + frame(headers, end_stream | end_headers, 1, get_root) +
                frame(headers, end_stream | end_headers, 3, get_root));
    std::map<std::uint32_t, std::string> bodies;
    for (int ended = 0; ended < 2;) {
      const received f = next_frame(in);
      ASSERT_TRUE(f.t != goaway && f.t != rst_stream);
      if (f.t != data) continue;
      bodies[f.id] += f.payload;
      if ((f.flags & end_stream) != 0) ++ended;
    }
    EXPECT_GT(late, 0);
    EXPECT_EQ(bodies[1].size() + bodies[3].size() + static_cast<std::size_t>(late), 1002u);
    for (const auto& [id, body] : bodies) EXPECT_TRUE(body.ends_with(".")) << id;
  });
}

TEST(http_2, a_body_is_taken_only_as_it_is_read) {
  ramie::run([] {
    server s;
    event go_on;
    std::size_t got = 0;
    s.get("/", [&](request& rq, response& rs) {
      go_on.wait();
      got = rq.body().size();
      rs.send("hello");
    });
    const served at{s};
    net::tcp_stream c = net::tcp_stream::connect(at.at());
    std::string all = preface + frame(headers, end_headers, 1, get_root);
    for (int i = 0; i < 4; ++i) all += frame(data, 0, 1, std::string(16'000, 'x'));
    c.write_all(all + frame(ping, 0, 0, std::string(8, 'p')));
    net::buffered_reader in{c};
    const auto next = [&] { return next_frame(in); };
    received f = next();
    for (; f.t != ping; f = next()) EXPECT_TRUE(f.t != window_update || f.id == 0);  // nothing was read
    go_on.set();
    do {
      f = next();
    } while (f.t != window_update || f.id != 1);
    c.write_all(frame(data, end_stream, 1, std::string(16'000, 'x')));
    do {
      f = next();
    } while (f.t != data);
    EXPECT_EQ(f.payload, "hello");
    EXPECT_EQ(got, 80'000u);
  });
}

}  // namespace
}  // namespace ramie::http
