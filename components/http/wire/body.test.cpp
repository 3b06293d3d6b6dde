// Where bodies of HTTP/1 end: in one piece, byte by byte, and into buffers of any size.
#include "wire/body.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace ramie::http {
namespace {

struct outcome {
  std::string data, rest;
  bool done, broken;
  friend bool operator==(const outcome&, const outcome&) = default;
};

/// `piece` bytes come at a time, and a buffer takes `room`.
outcome read(body_reader r, std::string_view text, std::size_t piece, std::size_t room) {
  std::string data, pending;
  std::vector<std::byte> buffer(room);
  for (;;) {
    const body_reader::progress p = r.put(pending, buffer);
    data.append(reinterpret_cast<const char*>(buffer.data()), p.data);
    pending.erase(0, p.used);
    if (r.is_done() || r.is_broken()) break;
    if (p.used != 0 || p.data != 0) continue;
    if (text.empty()) break;
    pending += text.substr(0, piece);
    text.remove_prefix(std::min(piece, text.size()));
  }
  return {data, pending + std::string{text}, r.is_done(), r.is_broken()};
}

/// The same however it comes.
outcome read(const body_reader& r, std::string_view text) {
  const outcome whole = read(r, text, SIZE_MAX, 4096);
  for (const std::size_t piece : {1, 2, 3, 7})
    for (const std::size_t room : {1, 2, 5, 64}) {
      const outcome other = read(r, text, piece, room);
      EXPECT_EQ(other.broken, whole.broken) << piece << ' ' << room;
      if (whole.broken) continue;  // then less of it may have been read
      EXPECT_EQ(other, whole) << piece << ' ' << room;
    }
  return whole;
}

outcome chunks(std::string_view text) { return read(body_reader::in_chunks(), text); }

TEST(http_body, of_a_length_ends_there) {
  EXPECT_EQ(read(body_reader::of_length(5), "helloGET"), (outcome{"hello", "GET", true, false}));
  EXPECT_EQ(read(body_reader::of_length(0), "GET"), (outcome{"", "GET", true, false}));
  EXPECT_EQ(read(body_reader{}, "GET"), (outcome{"", "GET", true, false}));
  EXPECT_EQ(read(body_reader::of_length(6), "hello"), (outcome{"hello", "", false, false}));
  EXPECT_EQ(read(body_reader::to_end_of_connection(), "hello"), (outcome{"hello", "", false, false}));
}

TEST(http_body, in_chunks) {
  const std::string end = "0\r\n\r\n";
  for (const std::string first :
       {"5\r\nhello\r\n", "005\r\nhello\r\n", "5;a\r\nhello\r\n", "5;a=\"b;c \\\" d\";e=f\r\nhello\r\n",
        "5 ;a\r\nhello\r\n", "5;\r\nhello\r\n", "5;a\tb\xff\r\nhello\r\n", "2\r\nhe\r\n3\r\nllo\r\n"})
    EXPECT_EQ(chunks(first + end + "GET"), (outcome{"hello", "GET", true, false})) << first;
  EXPECT_EQ(chunks("a\r\n0123456789\r\nA\r\n0123456789\r\n" + end).data.size(), 20u);
  EXPECT_EQ(chunks("000\r\n\r\nGET"), (outcome{"", "GET", true, false}));
  EXPECT_EQ(chunks("0;a=b\r\n\r\nGET"), (outcome{"", "GET", true, false}));
  EXPECT_EQ(chunks("5\r\nhel"), (outcome{"hel", "", false, false}));
}

TEST(http_body, broken_chunks) {
  for (const std::string_view broken : {"\r\n",
                                        "g\r\n",
                                        " 5\r\nhello",
                                        "5\nhello",
                                        "5\rhello",
                                        "5 \r\nhello",
                                        "5 5\r\nhello",
                                        "-5\r\n",
                                        "+5\r\n",
                                        "0x5\r\n",
                                        "5_\r\n",
                                        ";a\r\n",
                                        "5;a\nb\r\n",
                                        "5;a\rb\r\n",
                                        "5;a=\"\n\"",
                                        "5;a=\"\r\"",
                                        "5;a\x01\r\n",
                                        "5;a\x7f\r\n",
                                        "5;\n",
                                        "5\r\nhellox",
                                        "5\r\nhello\n",
                                        "5\r\nhello\rx",
                                        "5\r\nhello0\r\n",
                                        "0\n\r\n",
                                        "0\r\n\n",
                                        "0\r\nx: y\n\r\n",
                                        "0\r\n\rx",
                                        "0\r\n x: y\r\n\r\n",
                                        "0\r\nx: y\r\n z\r\n\r\n",
                                        "0\r\nx\r\n\r\n",
                                        "0\r\nx : y\r\n\r\n",
                                        "0\r\n: y\r\n\r\n",
                                        "0\r\nx: \x01\r\n\r\n",
                                        "0\r\nContent-Length: 5\r\n\r\n",
                                        "0\r\ntransfer-encoding: chunked\r\n\r\n",
                                        "0\r\nhost: a\r\n\r\n",
                                        "8000000000000000\r\n",
                                        "ffffffffffffffff\r\n",
                                        "10000000000000000\r\n",
                                        "00000000000000005\r\n"})
    EXPECT_TRUE(chunks(broken).broken) << broken;
  EXPECT_TRUE(chunks(std::string_view{"0\r\nx: a\0b\r\n\r\n", 14}).broken);
  EXPECT_TRUE(chunks(std::string_view{"5;\0\r\n", 5}).broken);
}

TEST(http_body, trailers_are_dropped) {
  EXPECT_EQ(chunks("5\r\nhello\r\n0\r\na: b\r\nc:\r\nd:\t e \r\n\r\nGET"), (outcome{"hello", "GET", true, false}));
}

TEST(http_body, what_nobody_reads_is_bounded) {
  const auto line = [](std::size_t n) { return "1;" + std::string(n, 'x') + "\r\na\r\n"; };
  EXPECT_FALSE(chunks(line(10'000)).broken);
  EXPECT_TRUE(chunks(line(20'000)).broken);
  EXPECT_TRUE(chunks(line(10'000) + line(10'000)).broken);
  EXPECT_TRUE(chunks("1" + std::string(20'000, ' ') + ";").broken);
  EXPECT_TRUE(chunks("0\r\nx: " + std::string(20'000, 'y')).broken);
  std::string many;
  for (int i = 0; i < 5000; ++i) many += "x:\r\n";
  EXPECT_TRUE(chunks("0\r\n" + many).broken);
  std::string small;
  for (int i = 0; i < 20'000; ++i) small += "1\r\na\r\n";
  EXPECT_EQ(read(body_reader::in_chunks(), small + "0\r\n\r\n", SIZE_MAX, 4096).data.size(), 20'000u);
}

TEST(http_body, announces_what_is_to_come) {
  std::array<std::byte, 16> room;
  body_reader r = body_reader::in_chunks();
  r.put("3\r\nabc\r\n7fffffffffffffff\r\n", room);
  EXPECT_FALSE(r.is_broken());
  EXPECT_EQ(r.announced(), 3 + std::uint64_t{INT64_MAX});
  EXPECT_EQ(body_reader::of_length(7).announced(), 7u);
  EXPECT_EQ(body_reader::to_end_of_connection().announced(), 0u);
}

}  // namespace
}  // namespace ramie::http
