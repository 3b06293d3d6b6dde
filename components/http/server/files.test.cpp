// Files as responses: parts of them, conditions, and what clients may ask of them that costs too much.
#include "../testing.hpp"
#include "server/ranges.hpp"
#include "wire/text.hpp"

#include "../../tls/testing.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

namespace ramie::http {
namespace {

std::string ranges_text(std::string_view text, std::uint64_t size) {
  const wanted_ranges w = ranges_of(text, size);
  if (w.what != wanted_ranges::kind::parts) return w.what == wanted_ranges::kind::all ? "all" : "nothing";
  std::string said;
  for (const byte_range& r : w.parts)
    said += (said.empty() ? "" : " ") + std::to_string(r.first) + "+" + std::to_string(r.size);
  return said;
}

TEST(http_ranges, are_understood_merged_and_bounded) {
  EXPECT_EQ(ranges_text("bytes=0-99", 1000), "0+100");
  EXPECT_EQ(ranges_text("Bytes=0-", 1000), "0+1000");
  EXPECT_EQ(ranges_text("bytes=-5", 1000), "995+5");
  EXPECT_EQ(ranges_text("bytes=-5000", 1000), "0+1000");
  EXPECT_EQ(ranges_text("bytes=0-18446744073709551615", 10), "0+10");
  EXPECT_EQ(ranges_text("bytes=0-0, 5-6 ,-1", 10), "0+1 5+2 9+1");
  EXPECT_EQ(ranges_text("bytes=8-9,0-1", 10), "8+2 0+2");       // in the order asked for
  EXPECT_EQ(ranges_text("bytes=0-4,3-6", 10), "0+7");           // they overlap
  EXPECT_EQ(ranges_text("bytes=0-4,5-6", 10), "0+7");           // they touch
  EXPECT_EQ(ranges_text("bytes=0-1,4-5,8-9,1-8", 10), "0+10");  // the last joins all
  EXPECT_EQ(ranges_text("bytes=4-5,0-1,1-4", 10), "0+6");
  EXPECT_EQ(ranges_text("bytes=0-1,20-30", 10), "0+2");  // one that cannot be had is left out
  for (const char* none : {"bytes=10-", "bytes=-0", "bytes=10-20,30-"})
    EXPECT_EQ(ranges_text(none, 10), "nothing") << none;
  EXPECT_EQ(ranges_text("bytes=-1", 0), "nothing");
  for (const char* broken : {"", "bytes", "bytes=", "bytes=,", "bytes=5-2", "bytes=a-b", "bytes=0-1-2", "bytes=--1",
                             "bytes=0x1-", "lines=0-1", "bytes=0-18446744073709551616", "bytes=+0-1", "bytes 0-1"})
    EXPECT_EQ(ranges_text(broken, 10), "all") << broken;
  // As many as an attacker likes, overlapping or not.
  std::string same = "bytes=0-", apart = "bytes=0-0";
  for (int i = 0; i < 1000; ++i) {
    same += ",0-";
    apart += "," + std::to_string(2 * i) + "-" + std::to_string(2 * i);
  }
  EXPECT_EQ(ranges_text(same, 1'000'000), "all");
  EXPECT_EQ(ranges_text(apart, 1'000'000), "all");
}

struct numbers {
  numbers() {
    for (int i = 0; i < 50'000; ++i) content += std::to_string(i) + "\n";
    std::ofstream{folder / "numbers.txt"} << content;
    s.files("/f/", folder / "");
    s.get("/mine", [this](request& rq, response& rs) {
      rs.header("content-type", "text/x-mine").send_file(rq, folder / "numbers.txt");
    });
  }
  tls::scratch_folder folder;
  std::string content;
  server s;
};

std::string field_of(std::string_view response, const std::string& name) {
  const std::size_t at = response.find("\r\n" + name + ": ");
  if (at == std::string_view::npos) return {};
  const std::size_t begin = at + name.size() + 4;
  return std::string{response.substr(begin, response.find("\r\n", begin) - begin)};
}

TEST(http_files, several_parts_are_sent_in_one_response) {
  numbers n;
  net::with_workers([&] {
    server s;
    s.files("/f/", n.folder / "");
    s.get("/mine", [&](request& rq, response& rs) {
      rs.header("content-type", "text/x-mine").send_file(rq, n.folder / "numbers.txt");
    });
    const served at{s};
    const std::string size = std::to_string(n.content.size());
    for (const auto& [target, type] :
         {std::pair{"/f/numbers.txt", "text/plain; charset=utf-8"}, std::pair{"/mine", "text/x-mine"}}) {
      const std::string said = ask(at.at(), get(target, "range: bytes=0-4, 1000-150999, -3\r\nconnection: close\r\n"));
      EXPECT_EQ(status_of(said), 206);
      const std::string outer = field_of(said, "content-type");
      ASSERT_TRUE(outer.starts_with("multipart/byteranges; boundary=")) << outer;
      const std::string mark = "--" + outer.substr(outer.find('=') + 1);
      const auto part = [&](const std::string& where, const std::string& bytes) {
        return mark + "\r\ncontent-type: " + type + "\r\ncontent-range: bytes " + where + "/" + size + "\r\n\r\n" +
               bytes + "\r\n";
      };
      const std::size_t last = n.content.size() - 3;
      EXPECT_TRUE(body_of(said) ==
                  part("0-4", n.content.substr(0, 5)) + part("1000-150999", n.content.substr(1000, 150'000)) +
                      part(std::to_string(last) + "-" + std::to_string(n.content.size() - 1), n.content.substr(last)) +
                      mark + "--\r\n");
      EXPECT_EQ(field_of(said, "content-length"), std::to_string(body_of(said).size()));
    }
    // A client that asks for the whole file a thousand times gets it once.
    std::string many = "range: bytes=0-";
    for (int i = 0; i < 1000; ++i) many += ",0-";
    const std::string whole = ask(at.at(), get("/f/numbers.txt", many + "\r\nconnection: close\r\n"));
    EXPECT_EQ(status_of(whole), 200);
    EXPECT_EQ(body_of(whole).size(), n.content.size());
    const std::string merged = ask(at.at(), get("/f/numbers.txt", "range: bytes=0-9,5-19\r\nconnection: close\r\n"));
    EXPECT_EQ(field_of(merged, "content-range"), "bytes 0-19/" + size);
    EXPECT_EQ(body_of(merged), n.content.substr(0, 20));
    // Only a GET has parts (RFC 9110, 14.2).
    const std::string head = ask(at.at(), "HEAD /f/numbers.txt HTTP/1.1\r\nhost: x\r\nrange: bytes=0-4\r\n\r\n");
    EXPECT_EQ(status_of(head), 200);
    EXPECT_EQ(field_of(head, "content-length"), size);
  });
}

TEST(http_files, are_sent_if_conditions_hold) {
  numbers n;
  ramie::run([&] {
    const served at{n.s};
    const auto status = [&](const std::string& fields) {
      return status_of(ask(at.at(), get("/f/numbers.txt", fields)));
    };
    const std::string said = ask(at.at(), get("/f/numbers.txt")), tag = field_of(said, "etag"),
                      date = field_of(said, "last-modified");
    EXPECT_EQ(status("if-none-match: " + tag + "\r\n"), 304);
    EXPECT_EQ(status("if-none-match: W/" + tag + "\r\n"), 304);
    EXPECT_EQ(status("if-none-match: *\r\n"), 304);
    EXPECT_EQ(status("if-none-match: \"x\"\r\n"), 200);
    EXPECT_EQ(status("if-match: " + tag + "\r\n"), 200);
    EXPECT_EQ(status("if-match: W/" + tag + "\r\n"), 412);  // strongly compared
    EXPECT_EQ(status("if-match: \"x\"\r\n"), 412);
    EXPECT_EQ(status("if-modified-since: " + date + "\r\n"), 304);
    EXPECT_EQ(status("if-modified-since: Fri, 01 Jan 2100 00:00:00 GMT\r\n"), 304);  // later than the file
    EXPECT_EQ(status("if-modified-since: Sun Nov  6 08:49:37 1994\r\n"), 200);
    EXPECT_EQ(status("if-modified-since: yesterday\r\n"), 200);
    EXPECT_EQ(status("if-none-match: \"x\"\r\nif-modified-since: " + date + "\r\n"), 200);  // the tag decides
    EXPECT_EQ(status("if-unmodified-since: " + date + "\r\n"), 200);
    EXPECT_EQ(status("if-unmodified-since: Sunday, 06-Nov-94 08:49:37 GMT\r\n"), 412);
    const auto part = [&](const std::string& condition) { return status("range: bytes=0-1\r\n" + condition); };
    EXPECT_EQ(part("if-range: " + tag + "\r\n"), 206);
    EXPECT_EQ(part("if-range: " + date + "\r\n"), 206);
    EXPECT_EQ(part("if-range: W/" + tag + "\r\n"), 200);
    EXPECT_EQ(part("if-range: \"x\"\r\n"), 200);
    EXPECT_EQ(part("if-none-match: " + tag + "\r\n"), 304);
  });
}

TEST(http_files, are_not_sent_with_a_status_that_has_no_body) {
  numbers n;
  n.s.get("/same", [&](request& rq, response& rs) { rs.status(304).send_file(rq, n.folder / "numbers.txt"); });
  ramie::run([&] {
    const served at{n.s};
    const std::string said = ask(at.at(), get("/same") + get("/none"));
    EXPECT_EQ(status_of(said), 304);
    EXPECT_EQ(status_of(body_of(said)), 404);
  });
}

TEST(http_files, dates_of_all_three_forms) {
  for (const char* text :
       {"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"})
    EXPECT_EQ(parse_date(text), 784'111'777) << text;
  EXPECT_EQ(parse_date("Thu, 29 Feb 2024 23:59:59 GMT"), 1'709'251'199);
  for (const char* broken :
       {"", "now", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun, 06 Novem 1994 08:49:37 GMT", "Sun, 06 anF 1994 08:49:37 GMT", "Sun, 06 Nov 1994 25:49:37 GMT",
        "Sun, 06 Nov 99999999999 08:49:37 GMT", "- - - - - - - -"})
    EXPECT_FALSE(parse_date(broken)) << broken;
  EXPECT_EQ(date_of(784'111'777), "Sun, 06 Nov 1994 08:49:37 GMT");
}

}  // namespace
}  // namespace ramie::http
