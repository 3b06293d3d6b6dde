// Calls that take what is there: they do not wait, or for the least that is worth a call.
#include <ramie/net/stream.hpp>

#include <ramie/net/testing.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace ramie::net {
namespace {

using namespace std::chrono_literals;

/// For sockets and pipes: `b` gets what is written to `a`.
template <class To, class From>
void try_both(To& a, From& b) {
  std::array<std::byte, 100> some;
  const auto got = [&]() -> std::optional<std::string> {
    const std::optional<std::size_t> n = b.try_read(some);
    return n ? std::optional{text_of(std::span{some}.first(*n))} : std::nullopt;
  };
  EXPECT_EQ(b.try_read({}), 0u);
  EXPECT_EQ(got(), std::nullopt);
  EXPECT_EQ(got(), std::nullopt);
  EXPECT_EQ(a.try_write(std::string_view{}), 0u);
  EXPECT_EQ(a.try_write("one"), 3u);
  b.await_input();
  EXPECT_EQ(got(), "one");
  EXPECT_EQ(got(), std::nullopt);
  // It has been drained, and is watched by now: the next bytes are an event, and the read after it waits for one.
  auto writer = spawn([&a] {
    this_fiber::sleep_for(std::chrono::milliseconds{1});
    a.write_all("two");
  });
  for (std::optional<std::string> next; next != "two"; next = got()) b.await_input();
  writer.join();
  auto reader = spawn([&b, &some] { return text_of(std::span{some}.first(b.read_some(some))); });
  this_fiber::yield();
  EXPECT_EQ(a.write_some("three"), 5u);
  EXPECT_EQ(reader.join(), "three");

  // Until there is no more room, and again.
  const std::string much(100'000, 'x');
  std::size_t written = 0, taken = 0;
  for (int round = 0; round < 3; ++round) {
    while (const std::size_t n = a.try_write(much)) written += n;
    EXPECT_GT(written, taken);
    while (const auto part = got()) taken += part->size();
    while (taken < written) {  // TCP's may be under way
      b.await_input();
      if (const auto part = got()) taken += part->size();
    }
    EXPECT_EQ(taken, written);
  }
  // A writer waits for room, and some of it is enough.
  while (a.try_write(much) != 0) {
  }
  auto waiting = spawn([&] { return a.write_some(much); });
  this_fiber::yield();
  std::vector<std::byte> large(10'000'000);
  b.read_some(large);
  while (!waiting.has_ended()) {
    static_cast<void>(b.try_read(large));
    this_fiber::yield();
  }
  const std::size_t n = waiting.join();
  EXPECT_GT(n, 0u);
  EXPECT_LE(n, much.size());
}

TEST(net_tries, read_and_write_what_they_can_without_waiting) {
  with_workers([] {
    auto [a, b] = tcp_pair();
    try_both(a, b);
    auto [c, d] = unix_stream::pair();
    try_both(c, d);
    auto [r, w] = make_pipe();
    try_both(w, r);
  });
}

TEST(net_tries, tell_the_end_and_failures_without_waiting) {
  with_workers([] {
    auto [a, b] = tcp_pair();
    std::array<std::byte, 10> some;
    a.write_all("x");
    a.shutdown_write();
    for (int ends = 0; ends < 3;) {
      b.await_input();
      if (b.try_read(some) == 0u) ++ends;
    }
    b.reset();
    while (code_of([&, &a = a] { static_cast<void>(a.try_read(some)); }) != std::errc::connection_reset)
      this_fiber::yield();
    EXPECT_EQ(code_of([&, &a = a] { a.try_write("x"); }), std::errc::broken_pipe);
    a.close();
    EXPECT_EQ(code_of([&, &a = a] { static_cast<void>(a.try_read(some)); }), io_errc::closed);
    EXPECT_EQ(code_of([&, &a = a] { a.try_write("x"); }), io_errc::closed);
    EXPECT_EQ(code_of([&, &a = a] { a.write_some("x"); }), io_errc::closed);
    EXPECT_EQ(code_of([&, &a = a] { a.await_input(); }), io_errc::closed);
  });
}

TEST(net_tries, write_some_pieces_in_order) {
  with_workers([] {
    auto [a, b] = unix_stream::pair();
    std::string parts[] = {"", "one ", "", "two ", "three"};
    std::vector<iovec> pieces(40, iovec{parts[0].data(), 0});  // more than go with one call, but for empty ones
    for (std::string& part : parts) pieces.push_back({part.data(), part.size()});
    EXPECT_EQ(a.write_some(pieces), 13u);
    EXPECT_EQ(a.try_write(pieces), 13u);
    EXPECT_EQ(a.write_some(std::span{pieces}.first(10)), 0u);
    a.write_all(pieces);
    a.shutdown_write();
    EXPECT_EQ(read_all(b), "one two threeone two threeone two three");
  });
}

TEST(net_tries, look_ahead) {
  with_workers([] {
    auto [a, b] = tcp_pair();
    std::array<std::byte, 3> some;
    auto writer = spawn([&a] {
      this_fiber::yield();
      a.write_all("abcdef");
    });
    EXPECT_EQ(b.peek(some), 3u);
    EXPECT_EQ(b.peek(some), 3u);
    EXPECT_EQ(text_of(some), "abc");
    writer.join();
    EXPECT_EQ(b.read_some(some), 3u);
    EXPECT_EQ(b.peek(some), 3u);
    EXPECT_EQ(text_of(some), "def");
    EXPECT_EQ(b.read_some(some), 3u);
    EXPECT_THROW(with_timeout(1ms, [&, &b = b] { b.peek(some); }), timeout_error);
    a.shutdown_write();
    EXPECT_EQ(b.peek(some), 0u);
    EXPECT_EQ(b.peek({}), 0u);
  });
}

TEST(net_tries, end_their_read_side) {
  with_workers([] {
    const auto ends = [](auto a, auto b, bool waits) {
      auto reader = spawn([&b] { return with_timeout(60s, [&b] { return read_all(b); }); });
      if (waits) this_fiber::sleep_for(1ms);
      b.shutdown_read();
      EXPECT_EQ(reader.join(), "");
      b.write_all("still");
      b.shutdown_write();
      EXPECT_EQ(read_all(a), "still");
      return a;
    };
    for (const bool waits : {false, true}) {
      auto [a, b] = tcp_pair();
      ends(std::move(a), std::move(b), waits);
      auto [c, d] = unix_stream::pair();
      unix_stream left = ends(std::move(c), std::move(d), waits);
      EXPECT_EQ(code_of([&] { left.write_all("x"); }), std::errc::broken_pipe);
    }
    auto [a, b] = unix_stream::pair();
    a.write_all("has come");
    b.shutdown_read();
    EXPECT_EQ(read_all(b), "has come");
  });
}

}  // namespace
}  // namespace ramie::net
