#include <ramie/net/buffered.hpp>

#include <ramie/net/copy.hpp>
#include <ramie/net/testing.hpp>

#include <chrono>

namespace ramie::net {
namespace {

using namespace std::chrono_literals;

/// Gives its text in pieces of `most` bytes.
struct text_source {
  std::string_view text;
  std::size_t most;
  std::size_t read_some(std::span<std::byte> into) {
    const std::size_t n = std::min({into.size(), text.size(), most});
    for (std::size_t i = 0; i < n; ++i) into[i] = static_cast<std::byte>(text[i]);
    text.remove_prefix(n);
    return n;
  }
};

/// The capacity is the longest line, whatever it ends with.
TEST(net_buffered, have_lines_as_long_as_their_capacity) {
  const auto lines_of = [](std::string_view all, std::size_t capacity) {
    auto [mine, peer] = unix_stream::pair();
    peer.write_all(all);
    peer.shutdown_write();
    buffered_reader reader{mine, capacity};
    std::string got;
    try {
      while (const auto line = reader.read_line()) got += std::string{*line} + "|";
    } catch (const io_error& e) {
      got += e.code() == io_errc::too_long ? "too long" : e.what();
    }
    return got;
  };
  for (const std::string_view end : {"\n", "\r\n"}) {
    const std::string e{end};
    EXPECT_EQ(lines_of("12345678" + e + "a" + e, 8), "12345678|a|");
    EXPECT_EQ(lines_of("a" + e + "12345678" + e, 8), "a|12345678|");
    EXPECT_EQ(lines_of("123456789" + e, 8), "too long");
    EXPECT_EQ(lines_of("a" + e + "123456789", 8), "a|too long");
  }
  EXPECT_EQ(lines_of("12345678", 8), "12345678|");
  EXPECT_EQ(lines_of("12345678\r", 8), "12345678|");
  EXPECT_EQ(lines_of("123456789\r", 8), "too long");
  EXPECT_EQ(lines_of("\n\r\n", 1), "||");
  EXPECT_EQ(lines_of("", 1), "");
}

TEST(net_buffered_readers, give_the_same_lines_whatever_the_pieces) {
  for (std::size_t most = 1; most < 30; ++most)
    for (const std::size_t capacity : {8, 9, 100}) {
      text_source from{"one\r\n\ntwo\nthree\rx\nlast", most};
      buffered_reader reader{from, capacity};
      std::vector<std::string> lines;
      while (const auto line = reader.read_line()) lines.emplace_back(*line);
      EXPECT_EQ(lines, (std::vector<std::string>{"one", "", "two", "three\rx", "last"}));
      EXPECT_FALSE(reader.read_line());
    }
}

TEST(net_buffered_readers, refuse_a_line_that_is_too_long_and_take_nothing_of_it) {
  text_source from{"0123456789\n", 3};
  buffered_reader reader{from, 8};
  EXPECT_EQ(code_of([&] { static_cast<void>(reader.read_line()); }), io_errc::too_long);
  std::array<std::byte, 10> all;
  EXPECT_TRUE(reader.read_exactly(all));
  EXPECT_EQ(text_of(all), "0123456789");
  EXPECT_THROW((buffered_reader{from, 0}), invalid_argument);
}

TEST(net_buffered_readers, mix_all_ways_to_read) {
  text_source from{"8:12345678rest of it;end", 5};
  buffered_reader reader{from, 16};
  EXPECT_EQ(reader.read_until(':'), "8");
  std::array<std::byte, 8> eight;
  EXPECT_TRUE(reader.read_exactly(eight));
  EXPECT_EQ(text_of(eight), "12345678");
  EXPECT_EQ(text_of(reader.peek().first(1)), "r");
  reader.consume(1);
  EXPECT_EQ(reader.read_until(';'), "est of it");
  EXPECT_EQ(read_all(reader), "end");
}

TEST(net_buffered_writers, keep_the_order_of_small_and_large_pieces) {
  with_workers([] {
    auto [a, b] = unix_stream::pair();
    auto reader = spawn([&b] { return read_all(b); });
    std::string all;
    {
      buffered_writer writer{a, 64};
      for (std::size_t i = 0; i < 300; ++i) {
        const std::string piece(i % 97, static_cast<char>('a' + i % 26));
        writer.write(piece);
        all += piece;
      }
      writer.flush();
      EXPECT_EQ(writer.buffered(), 0u);
    }
    a.close();
    EXPECT_EQ(reader.join(), all);
  });
}

/// Takes at most `most` bytes, then throws.
struct full_sink {
  std::size_t most;
  std::string got;
  void write_all(std::span<const std::byte> from, std::size_t* written = nullptr) {
    const std::size_t n = std::min(from.size(), most - got.size());
    got += text_of(from.first(n));
    if (written != nullptr) *written = n;
    if (n != from.size()) throw io_error{"sink", io_errc::closed};
  }
};

TEST(net_buffered_writers, keep_what_was_not_written) {
  full_sink to{5, {}};
  buffered_writer writer{to, 64};
  writer.write("hello world");
  EXPECT_THROW(writer.flush(), io_error);
  EXPECT_EQ(writer.buffered(), 6u);
  EXPECT_THROW(writer.flush(), io_error);
  EXPECT_EQ(writer.buffered(), 6u);
  to.most = 100;
  writer.write("!");
  writer.flush();
  EXPECT_EQ(writer.buffered(), 0u);
  EXPECT_EQ(to.got, "hello world!");
}

TEST(net_copies, end_with_their_source_and_when_nothing_moves) {
  with_workers([] {
    auto [a, b] = unix_stream::pair();
    auto [c, d] = tcp_pair();
    auto middle = spawn([&b, &c] {
      const std::uint64_t n = net::copy(b, c, 1h);
      c.shutdown_write();
      return n;
    });
    const std::string much(300'000, 'm');
    auto reader = spawn([&d] { return read_all(d); });
    a.write_all(much);
    a.shutdown_write();
    EXPECT_EQ(reader.join(), much);
    EXPECT_EQ(middle.join(), much.size());
    auto [e, f] = unix_stream::pair();
    EXPECT_THROW(net::copy(f, a, 2ms), timeout_error);
  });
}

}  // namespace
}  // namespace ramie::net
