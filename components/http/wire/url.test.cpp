// Where redirects lead: the examples of RFC 3986, 5.4, without fragments.
#include "wire/url.hpp"

#include "wire/text.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace ramie::http {
namespace {

TEST(http_url, references) {
  const url from = parse_url("http://a/b/c/d;p?q");
  const std::pair<const char*, const char*> all[] = {
      {"ftp:h", "ftp:h"},
      {"g", "http://a/b/c/g"},
      {"./g", "http://a/b/c/g"},
      {"g/", "http://a/b/c/g/"},
      {"/g", "http://a/g"},
      {"//g", "http://g"},
      {"?y", "http://a/b/c/d;p?y"},
      {"g?y", "http://a/b/c/g?y"},
      {"#s", "http://a/b/c/d;p?q"},
      {"g?y#s", "http://a/b/c/g?y"},
      {";x", "http://a/b/c/;x"},
      {"g;x?y#s", "http://a/b/c/g;x?y"},
      {"", "http://a/b/c/d;p?q"},
      {".", "http://a/b/c/"},
      {"./", "http://a/b/c/"},
      {"..", "http://a/b/"},
      {"../", "http://a/b/"},
      {"../g", "http://a/b/g"},
      {"../..", "http://a/"},
      {"../../", "http://a/"},
      {"../../g", "http://a/g"},
      {"../../../g", "http://a/g"},
      {"/./g", "http://a/g"},
      {"/../g", "http://a/g"},
      {"g.", "http://a/b/c/g."},
      {"..g", "http://a/b/c/..g"},
      {"./../g", "http://a/b/g"},
      {"g/./h", "http://a/b/c/g/h"},
      {"g/../h", "http://a/b/c/h"},
      {"g;x=1/../y", "http://a/b/c/y"},
      {"g?y/../x", "http://a/b/c/g?y/../x"},
      {"/login?next=http://other/", "http://a/login?next=http://other/"},
      {"login?next=http://other/", "http://a/b/c/login?next=http://other/"},
      {"http://g/x/../y?z/../q", "http://g/y?z/../q"},
      {"//g/./x", "http://g/x"},
      {"//g?x", "http://g?x"},
      {"1:2", "http://a/b/c/1:2"},
      {"https://g:8443/x", "https://g:8443/x"},
  };
  for (const auto& [reference, expected] : all) EXPECT_EQ(resolved(from, reference), expected) << reference;
  EXPECT_EQ(resolved(parse_url("http://a"), "g"), "http://a/g");
  EXPECT_EQ(resolved(parse_url("http://[::1]:8080/x"), "/g"), "http://[::1]:8080/g");
}

TEST(http_url, authorities) {
  for (const char* right :
       {"", "a", "a.example:80", "a:", "127.0.0.1:8080", "[::1]", "[::1]:80", "a_b", "%41", "x;y=z"})
    EXPECT_TRUE(is_authority(right)) << right;
  for (const char* wrong :
       {" a",   "a b", "a/b", "a@b",    "a,b", "a\\b", "a:b", "a:65536", "a:-1",     "a:+1", "a:80:80",
        "[::1", "[]",  "[g]", "[::1]x", "%4",  "%zz",  "a?b", "a#b",     "\xc3\xa4", "a\"b", "a<b"})
    EXPECT_FALSE(is_authority(wrong)) << wrong;
}

}  // namespace
}  // namespace ramie::http
