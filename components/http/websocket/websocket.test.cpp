// WebSocket, as servers and as what hostile clients send see it.
#include "websocket/websocket.hpp"
#include "../testing.hpp"
#include "websocket/deflate.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace ramie::http {
namespace {

using namespace std::chrono_literals;

const std::string upgrade_fields =
    "upgrade: websocket\r\nconnection: keep-alive, Upgrade\r\nsec-websocket-version: 13\r\n"
    "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// A frame of a client; the mask is zeros, so the payload is readable.
std::string frame(unsigned first, std::string_view payload) {
  std::string f;
  f += static_cast<char>(first);
  if (payload.size() < 126) {
    f += static_cast<char>(0x80u | payload.size());
  } else {
    f += static_cast<char>(0xfe);
    f += static_cast<char>(payload.size() >> 8);
    f += static_cast<char>(payload.size());
  }
  return f + std::string(4, '\0') + std::string{payload};
}

void add_echo(server& s) {
  s.upgrade("/echo", [](request&, websocket& w) {
    while (const auto m = w.receive()) {
      if (m->is_text) w.send(m->data);
      else w.send_binary(m->data);
    }
  });
}

/// What the server says to these frames, behind the 101.
std::string said_to(const served& at, std::string_view frames, const std::string& fields = {}) {
  const std::string all = ask(at.at(), get("/echo", upgrade_fields + fields) + std::string{frames});
  EXPECT_EQ(status_of(all), 101) << all;
  return body_of(all);
}
/// The code of a close frame that comes last; 0 if there is none.
int last_close(std::string_view said) {
  if (said.size() < 4 || static_cast<unsigned char>(said[said.size() - 4]) != 0x88 || said[said.size() - 3] != 2)
    return 0;
  return static_cast<unsigned char>(said[said.size() - 2]) << 8 | static_cast<unsigned char>(said.back());
}

TEST(http_websocket, accepts_as_the_standard_has_it) {
  EXPECT_EQ(websocket_accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
  ramie::run([] {
    server s;
    add_echo(s);
    const served at{s};
    const std::string said =
        ask(at.at(), get("/echo", upgrade_fields) + frame(0x81, "hello") + frame(0x88, "\x03\xe8"));
    EXPECT_TRUE(contains(said, "sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
    EXPECT_EQ(body_of(said), std::string("\x81\x05hello\x88\x02\x03\xe8"));
    EXPECT_EQ(status_of(ask(at.at(), get("/echo"))), 426);
    EXPECT_EQ(status_of(ask(at.at(), get("/echo", "origin: https://evil.test\r\n" + upgrade_fields))), 403);
    EXPECT_EQ(status_of(ask(at.at(), get("/echo", "origin: http://localhost\r\n" + upgrade_fields) + frame(0x88, ""))),
              101);
    EXPECT_EQ(status_of(ask(at.at(), get("/echo",
                                         "upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\n"
                                         "sec-websocket-key: short\r\n"))),
              400);
    EXPECT_EQ(status_of(ask(at.at(),
                            get("/echo", "upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 8\r\n"))),
              426);
  });
}

TEST(http_websocket, fragments_with_pings_between_them_are_one_message) {
  ramie::run([] {
    server s;
    add_echo(s);
    const served at{s};
    EXPECT_EQ(said_to(at, frame(0x01, "one ") + frame(0x89, "?") + frame(0x00, "two ") + frame(0x80, "three") +
                              frame(0x88, "")),
              std::string("\x8a\x01?\x81\x0done two three\x88\x00", 20));
  });
}

TEST(http_websocket, who_breaks_the_protocol_is_told_and_cut_off) {
  ramie::run([] {
    server s{{.websocket_message_most = 1000}};
    add_echo(s);
    const served at{s};
    const auto code = [&](const std::string& frames) { return last_close(said_to(at, frames)); };
    EXPECT_EQ(code(std::string("\x81\x02hi")), 1002);  // not masked
    EXPECT_EQ(code(frame(0x83, "")), 1002);            // a kind that there is not
    EXPECT_EQ(code(frame(0xb1, "")), 1002);            // reserved bits
    EXPECT_EQ(code(frame(0xc1, "")), 1002);            // compression that was not agreed
    EXPECT_EQ(code(frame(0x80, "x")), 1002);           // a fragment without a first one
    EXPECT_EQ(code(frame(0x01, "x") + frame(0x81, "y")), 1002);
    EXPECT_EQ(code(frame(0x09, "x")), 1002);  // a ping in fragments
    EXPECT_EQ(code(frame(0x89, std::string(126, 'x'))), 1002);
    EXPECT_EQ(code(frame(0x88, "x")), 1002);                      // half a code
    EXPECT_EQ(code(frame(0x88, std::string("\x03\xed"))), 1002);  // 1005 may not be sent
    EXPECT_EQ(code(frame(0x81, "\xff")), 1007);                   // not UTF-8
    EXPECT_EQ(code(frame(0x81, "\xed\xa0\x80")), 1007);
    EXPECT_EQ(code(frame(0x81, std::string(1001, 'x'))), 1009);
    EXPECT_EQ(code(frame(0x01, std::string(600, 'x')) + frame(0x80, std::string(600, 'x'))), 1009);
    EXPECT_EQ(code(std::string("\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff\0\0\0\0", 14)), 1009);
    EXPECT_EQ(code(std::string("\x82\xff\x80\0\0\0\0\0\0\0\0\0\0\0", 14)), 1002);  // a negative length
    EXPECT_EQ(code(std::string("\x82\xfe\0\x01\0\0\0\0x", 9)), 1002);              // a length that is not minimal
    EXPECT_EQ(code(frame(0x82, "\xff") + frame(0x88, "\x03\xe8")), 1000);
  });
}

TEST(http_websocket, messages_are_packed_if_both_want_that) {
  ramie::run([] {
    server s{{.websocket_message_most = 10'000}};
    add_echo(s);
    const served at{s};
    const std::string offer = "sec-websocket-extensions: permessage-deflate; client_max_window_bits\r\n";
    const std::string text(5000, 'x');
    const std::string said = said_to(at, frame(0xc1, deflated(text, 15)) + frame(0x88, ""), offer);
    ASSERT_GT(said.size(), 4u);
    EXPECT_EQ(static_cast<unsigned char>(said[0]), 0xc1);
    const std::size_t size = static_cast<unsigned char>(said[1]);
    EXPECT_EQ(inflated(std::string_view{said}.substr(2, size), 10'000), text);
    EXPECT_EQ(last_close(said_to(at, frame(0xc1, deflated(std::string(1'000'000, 'x'), 15)), offer)), 1009);  // a bomb
    EXPECT_EQ(last_close(said_to(at, frame(0xc1, "\xff\xff\xff"), offer)), 1007);
    EXPECT_EQ(last_close(said_to(at, frame(0x89 | 0x40, ""), offer)), 1002);
  });
}

TEST(http_websocket, terms_of_compression) {
  EXPECT_EQ(accept_deflate("permessage-deflate")->window_bits, 15);
  EXPECT_EQ(accept_deflate("permessage-deflate; server_max_window_bits=10")->window_bits, 10);
  EXPECT_EQ(accept_deflate("permessage-deflate; server_max_window_bits=\"9\"; client_no_context_takeover")->window_bits,
            9);
  EXPECT_FALSE(accept_deflate("permessage-deflate; server_max_window_bits=8"));
  EXPECT_FALSE(accept_deflate("permessage-deflate; server_max_window_bits"));
  EXPECT_FALSE(accept_deflate("permessage-deflate; what=1"));
  EXPECT_FALSE(accept_deflate("x-webkit-deflate-frame"));
  EXPECT_TRUE(accept_deflate("permessage-deflate; what, permessage-deflate"));
  for (const std::size_t n : {0u, 1u, 511u, 70'000u}) {
    std::string text;
    for (std::size_t i = 0; i < n; ++i) text += static_cast<char>(net::byte_at(i * 7 / 3));
    for (const int bits : {9, 15}) EXPECT_EQ(inflated(deflated(text, bits), n), text) << n;
  }
}

TEST(http_websocket, one_sends_while_another_receives) {
  net::with_workers([] {
    server s;
    s.upgrade("/echo", [](request&, websocket& w) {
      scope both;
      both.spawn([&] {
        for (int i = 0; i < 100; ++i) w.send(std::to_string(i));
      });
      int got = 0;
      while (w.receive()) ++got;
      both.join();
      EXPECT_EQ(got, 50);
    });
    const served at{s};
    std::string frames;
    for (int i = 0; i < 50; ++i) frames += frame(0x81, "x");
    net::tcp_stream c = net::tcp_stream::connect(at.at());
    c.write_all(get("/echo", upgrade_fields) + frames);
    net::buffered_reader in{c};
    while (!in.read_line().value().empty()) {
    }
    for (int i = 0; i < 100; ++i) {
      const std::string text = std::to_string(i);
      std::array<std::byte, 4> bytes;
      const auto part = std::span{bytes}.first(2 + text.size());
      ASSERT_TRUE(in.read_exactly(part));
      EXPECT_EQ(net::text_of(part).substr(2), text);
    }
    c.write_all(frame(0x88, ""));
    EXPECT_EQ(net::read_all(in), std::string("\x88\0", 2));
  });
}

TEST(http_websocket, a_silent_peer_is_pinged_then_cut_off) {
  ramie::run([] {
    server s{{.idle = 500ms}};
    bool timed_out = false;
    s.upgrade("/echo", [&](request&, websocket& w) {
      try {
        static_cast<void>(w.receive());
      } catch (const timeout_error&) {
        timed_out = true;
        throw;
      }
    });
    {
      const served at{s};
      net::tcp_stream c = net::tcp_stream::connect(at.at());
      c.write_all(get("/echo", upgrade_fields));
      EXPECT_EQ(body_of(net::read_all(c)), std::string("\x89\0", 2));
    }
    EXPECT_TRUE(timed_out);
  });
}

TEST(http_websocket, calls_that_are_late_lose_nothing) {
  net::with_workers([] {
    server s;
    add_echo(s);
    std::atomic<int> late{0};
    s.upgrade("/late", [&](request&, websocket& w) {
      for (;;) {
        try {
          if (!with_timeout(0ms, [&] { return w.receive(); })) return;
        } catch (const timeout_error&) {
          ++late;
          this_fiber::yield();
        }
      }
    });
    const served at{s};

    websocket w = websocket::connect("ws://" + at.at().to_string() + "/echo");
    int sent = 0, late_sends = 0;
    for (int i = 0; i < 1000; ++i) {
      try {
        with_timeout(0ms, [&] { w.send(std::to_string(sent)); });
        ++sent;
      } catch (const timeout_error&) {
        ++late_sends;
      }
    }
    EXPECT_GT(late_sends, 0);
    for (int i = 0; i < sent; ++i) ASSERT_EQ(w.receive().value().data, std::to_string(i));

    std::string pings, pongs;
    for (int i = 0; i < 1000; ++i) {
      pings += frame(0x89, "?");
      pongs += "\x8a\x01?";
    }
    const std::string all = ask(at.at(), get("/late", upgrade_fields) + pings + frame(0x88, "\x03\xe8"));
    EXPECT_GT(late, 0);
    EXPECT_EQ(body_of(all), pongs + "\x88\x02\x03\xe8");
  });
}

TEST(http_websocket, a_handler_that_fails_says_nothing_of_it_in_frames) {
  ramie::run([] {
    server s;
    s.upgrade("/", [](request&, websocket& w) {
      w.send("hello");
      throw std::runtime_error{"no"};
    });
    const served at{s};
    EXPECT_EQ(body_of(ask(at.at(), get("/", upgrade_fields))), "\x81\x05hello");
  });
}

TEST(http_websocket, what_breaks_the_protocol_is_not_read_again) {
  net::with_workers([] {
    server s{{.websocket_message_most = 1000}};
    std::atomic<int> messages{0}, late{0};
    s.upgrade("/", [&](request&, websocket& w) {
      for (;;) {
        try {
          if (!with_timeout(0ms, [&] { return w.receive(); })) return;
          ++messages;
        } catch (const timeout_error&) {
          ++late;
          this_fiber::yield();
        }
      }
    });
    const served at{s};
    std::string frames;
    while (frames.size() < 2000) frames += frame(0x81, "x");
    for (int i = 0; i < 300 || late == 0; ++i) {
      const std::string all = ask(at.at(), get("/", upgrade_fields) + frame(0x81, frames));
      EXPECT_TRUE(body_of(all).empty() || last_close(body_of(all)) == 1009);
    }
    EXPECT_EQ(messages, 0);
  });
}

TEST(http_websocket, a_client_of_ours_talks_to_a_server_of_ours) {
  net::with_workers([] {
    server s;
    add_echo(s);
    s.get("/page", [](request&, response& rs) { rs.send("a page"); });
    const served at{s};
    const std::string base = "ws://" + at.at().to_string();
    for (const bool compress : {false, true}) {
      websocket w = websocket::connect(base + "/echo", {.compress = compress});
      EXPECT_EQ(w.is_compressed(), compress);
      for (const std::size_t n : {0u, 1u, 125u, 126u, 511u, 65'535u, 65'536u, 200'000u}) {
        const std::string text(n, 'x');
        w.send(text);
        const auto m = w.receive();
        ASSERT_TRUE(m);
        EXPECT_TRUE(m->is_text);
        EXPECT_TRUE(m->data == text) << n;
      }
      w.send_binary("\xff");
      EXPECT_FALSE(w.receive()->is_text);
      EXPECT_THROW(w.send("\xff"), invalid_argument);
      w.close(1001, "that is all");
      EXPECT_FALSE(w.receive());
      EXPECT_EQ(w.close_code(), 1001);
      EXPECT_THROW(w.send("x"), net::io_error);
    }
    EXPECT_THROW(static_cast<void>(websocket::connect(base + "/page")), net::io_error);
    EXPECT_THROW(static_cast<void>(websocket::connect("http://localhost/")), invalid_argument);
    EXPECT_THROW(static_cast<void>(websocket::connect("wss://localhost/")), invalid_argument);
  });
}

}  // namespace
}  // namespace ramie::http
