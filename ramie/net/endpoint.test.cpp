#include <ramie/net/endpoint.hpp>

#include <ramie/net/testing.hpp>

namespace ramie::net {
namespace {

TEST(net_endpoints, are_read_and_written_alike) {
  for (const char* text : {"127.0.0.1:80", "[::1]:8080", "[::]:0", "0.0.0.0:65535"})
    EXPECT_EQ(endpoint::parse(text).to_string(), text);
  EXPECT_EQ(endpoint::parse(":7").to_string(), "[::]:7");
  EXPECT_EQ(endpoint("*", 7), endpoint("", 7));
  EXPECT_EQ(endpoint("10.0.0.1", 443).port(), 443);
  EXPECT_EQ(endpoint("10.0.0.1", 443).address(), "10.0.0.1");
  EXPECT_EQ(endpoint::local("/tmp/x").to_string(), "unix:/tmp/x");
  EXPECT_EQ(endpoint::local("@hidden").address(), "@hidden");
  EXPECT_EQ(endpoint{}.to_string(), "-");
  EXPECT_NE(endpoint("10.0.0.1", 1), endpoint("10.0.0.1", 2));
}

TEST(net_endpoints, refuse_what_is_none_and_name_it) {
  for (const char* text : {"", "80", "localhost:80", "::1:80", "1.2.3.4:65536", "1.2.3.4:", "1.2.3.4:8x", "[::1:80"}) {
    try {
      static_cast<void>(endpoint::parse(text));
      ADD_FAILURE() << text;
    } catch (const invalid_argument& e) {
      EXPECT_NE(std::string{e.what()}.find('"'), std::string::npos) << e.what();
    }
  }
  EXPECT_THROW(endpoint("fe80::1%nowhere", 1), invalid_argument);
  EXPECT_THROW(endpoint("127.0.0.1", 70000), invalid_argument);
  EXPECT_THROW(endpoint("127.0.0.1", -1), invalid_argument);
  using namespace std::string_view_literals;
  EXPECT_THROW(endpoint("127.0.0.1\0.example.org"sv, 1), invalid_argument);
  EXPECT_THROW(static_cast<void>(endpoint::parse("127.0.0.1\0:1"sv)), invalid_argument);
  EXPECT_THROW(static_cast<void>(endpoint::local("a\0b"sv)), invalid_argument);
  EXPECT_EQ(endpoint::local("@a\0b"sv).address(), "@a\0b"sv);
  EXPECT_THROW(static_cast<void>(endpoint::local("")), invalid_argument);
  EXPECT_THROW(static_cast<void>(endpoint::local(std::string(108, 'x'))), invalid_argument);
  EXPECT_NO_THROW(static_cast<void>(endpoint::local(std::string(107, 'x'))));
}

TEST(net_resolving, finds_this_host_and_names_what_it_does_not_find) {
  with_workers([] {
    const std::vector<endpoint> found = resolve("localhost", "80");
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found[0].port(), 80);
    // Whatever addresses the machine has.
    EXPECT_EQ(resolve("127.0.0.1", "7").at(0), endpoint("127.0.0.1", 7));
    EXPECT_EQ(resolve("::1", "7").at(0), endpoint("::1", 7));
    const std::string impossible = std::string(64, 'x') + ".invalid";  // no server is asked for such a label
    try {
      static_cast<void>(resolve(impossible, "80"));
      ADD_FAILURE();
    } catch (const io_error& e) {
      EXPECT_NE(std::string{e.what()}.find(impossible), std::string::npos) << e.what();
    }
    scope s;  // more at a time than are let through
    for (int i = 0; i < 100; ++i) s.spawn([] { EXPECT_FALSE(resolve("127.0.0.1", "1").empty()); });
    s.join();
  });
}

}  // namespace
}  // namespace ramie::net
