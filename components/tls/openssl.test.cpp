// With the programs of OpenSSL at the other end.
#include "testing.hpp"

#include <ramie/net/testing.hpp>
#include <ramie/tls.hpp>

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace ramie::tls {
namespace {

bool has_openssl() {
  bool there = false;
  ramie::run([&] {
    try {
      there = net::run_child({"openssl", "version"}).status.success();
    } catch (const net::io_error&) {
      // It cannot be started.
    }
  });
  return there;
}

/// What `openssl s_client` prints that talks to a server of ours, which answers "hello".
std::string by_s_client(const server_context& context, std::vector<std::string> arguments) {
  net::tcp_listener l{{"127.0.0.1", 0}};
  auto server = spawn([&] {
    try {
      stream s = stream::accept(l.accept(), context);
      s.write_all("hello " + s.details().server_name + " " + s.details().alpn + "\n");
      s.shutdown_write();
      static_cast<void>(net::read_all(s));
    } catch (const net::io_error&) {
      // The client's output says why.
    }
  });
  std::vector<std::string> all{"openssl", "s_client", "-connect", l.local().to_string()};
  all.insert(all.end(), arguments.begin(), arguments.end());
  const net::child_output o = net::run_child(std::move(all));
  server.join();
  return o.out + o.err;
}

TEST(openssl, s_client_talks_to_a_server) {
  if (!has_openssl()) GTEST_SKIP() << "there is no program openssl here";
  const certificates files;
  ramie::run([&] {
    server_options o{.certificates = {{files.chain(), files.key()}}, .alpn = {"h2", "http/1.1"}};
    const server_context server{o};
    const std::vector<std::string> usual{"-CAfile", files.roots(), "-servername",          "localhost",
                                         "-alpn",   "http/1.1",    "-verify_return_error", "-ign_eof"};
    for (const char* v : {"-tls1_2", "-tls1_3"}) {
      std::vector<std::string> arguments = usual;
      arguments.push_back(v);
      const std::string said = by_s_client(server, arguments);
      EXPECT_NE(said.find("hello localhost http/1.1"), std::string::npos) << v << said;
      EXPECT_NE(said.find("Verification: OK"), std::string::npos) << v << said;
    }
    std::vector<std::string> old = usual;
    old.push_back("-tls1_1");
    EXPECT_EQ(by_s_client(server, old).find("hello"), std::string::npos);
  });
}

TEST(openssl, s_server_talks_to_a_client) {
  if (!has_openssl()) GTEST_SKIP() << "there is no program openssl here";
  const certificates files;
  ramie::run([&] {
    for (const char* v : {"-tls1_2", "-tls1_3"}) {
      net::child server{
          {"openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", files.chain(), "-key", files.key(), "-www", v},
          {.in = net::child_io::null, .out = net::child_io::pipe, .err = net::child_io::null}};
      net::buffered_reader out{server.out()};
      std::string at;
      while (const auto line = out.read_line())
        if (line->starts_with("ACCEPT ")) {
          at = line->substr(7);
          break;
        }
      const client_context context{{.roots = files.roots()}};
      for (const bool again : {false, true}) {
        stream s = stream::connect(net::tcp_stream::connect(net::endpoint::parse(at)), context, "localhost");
        EXPECT_EQ(s.details().spoken == version::tls_1_3, std::string{v} == "-tls1_3");
        EXPECT_EQ(s.details().resumed, again);
        s.write_all("GET / HTTP/1.0\r\n\r\n");
        EXPECT_NE(net::read_all(s).find("s_server -accept"), std::string::npos);
      }
      EXPECT_EQ(net::code_of([&] {
                  static_cast<void>(stream::connect(net::tcp_stream::connect(net::endpoint::parse(at)),
                                                    client_context{{.roots = files.roots()}}, "example.org"));
                }),
                errc::wrong_host);
    }
  });
}

}  // namespace
}  // namespace ramie::tls
