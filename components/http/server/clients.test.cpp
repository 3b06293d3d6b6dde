// Clients of others: curl, nghttp and h2spec, where they are installed.
#include "../testing.hpp"

#include "../../tls/testing.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <string>

namespace ramie::http {
namespace {

struct site {
  explicit site(const server_limits& limits = {}) : s{limits} {
    s.get("/", [](request& rq, response& rs) {
      static_cast<void>(rq.body());
      rs.send("hello over " + std::to_string(rq.version()) + "\n");
    });
    s.post("/", [](request& rq, response& rs) {
      std::array<std::byte, 10'000> part;
      std::size_t n = 0;
      while (const std::size_t more = rq.read_some(part)) n += more;
      rs.send(std::to_string(n));
    });
    s.get("/large/{}", [](request&, response& rs, std::size_t parts) {
      for (; parts != 0; --parts) rs.write(std::string(1000, 'x'));
    });
    s.get("/fails", [](request&, response& rs) {
      rs.write("half");
      throw std::runtime_error{"late"};
    });
    s.get("/left", [](request&, response&) { throw status_error{403, "no"}; });
  }
  server s;
};

/// What curl prints, with its exit code if that is not 0; nullopt: there is no curl.
std::optional<std::string> curl(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"curl", "--silent", "--show-error", "--max-time", "60"});
  const auto o = run_program(std::move(arguments));
  if (!o) return std::nullopt;
  return o->status.code == 0 ? o->out : "curl: " + std::to_string(o->status.code) + " " + o->err;
}

TEST(http_clients, curl_over_both_versions) {
  bool there = true;
  const tls::scratch_folder folder;
  net::with_workers([&] {
    site mine;
    const served at{mine.s};
    const std::string base = "http://" + at.at().to_string();
    std::ofstream{folder / "upload"} << std::string(3'000'000, 'y');
    for (const std::string version : {"--http1.1", "--http2-prior-knowledge"}) {
      const auto get = [&](std::vector<std::string> a) {
        a.push_back(version);
        auto said = curl(std::move(a));
        there &= said.has_value();
        return said.value_or("");
      };
      const std::string hello = get({base + "/"});
      if (!there) return;
      EXPECT_EQ(hello, version == "--http1.1" ? "hello over 11\n" : "hello over 20\n");
      EXPECT_EQ(get({"--data-binary", "@" + (folder / "upload"), base + "/"}), "3000000");
      EXPECT_EQ(get({base + "/large/3000"}).size(), 3'000'000u);
      EXPECT_EQ(get({"--head", base + "/"}).substr(0, 5), "HTTP/");
      EXPECT_EQ(get({"--write-out", "%{http_code}", "--output", "/dev/null", base + "/none"}), "404");
      EXPECT_TRUE(get({base + "/fails"}).starts_with("curl: "));
      // curl 7.88 cannot use a connection of prior knowledge twice, with any server.
      if (version == "--http1.1") {
        EXPECT_EQ(get({base + "/", base + "/", base + "/"}), hello + hello + hello);
      }
    }
  });
  if (!there) GTEST_SKIP() << "there is no program curl here";
}

TEST(http_clients, curl_unpacks_each_coding) {
  ramie::run([] {
    std::string text;
    for (int i = 0; i < 5000; ++i) text += std::to_string(i * 7919 % 10'007) + " ";
    server s;
    s.get("/", [&](request&, response& rs) { rs.compressed().send(text); });
    const served at{s};
    for (const std::string coding : {"gzip", "br", "zstd"}) {
      const std::string head = ask(at.at(), get("/", "accept-encoding: " + coding + "\r\n"));
      if (!contains(head, "content-encoding: " + coding + "\r\n")) continue;  // built without its library
      const auto got =
          curl({"--compressed", "-H", "accept-encoding: " + coding, "http://127.0.0.1:" + at.port() + "/"});
      if (!got) GTEST_SKIP() << "needs curl";
      EXPECT_TRUE(*got == text) << coding << ": " << got->size() << " bytes of " << text.size();
    }
  });
}

TEST(http_clients, curl_over_tls_gets_http_2_by_alpn) {
  const tls::certificates files;
  bool there = true;
  ramie::run([&] {
    site mine;
    const tls::server_context context{{.certificates = {{files.chain(), files.key()}}, .alpn = server::protocols()}};
    const served at{mine.s, context};
    const std::string base = "https://localhost:" + at.port();
    const auto get = [&](std::vector<std::string> a) {
      a.insert(a.end(), {"--cacert", files.roots(), "--resolve", "localhost:" + at.port() + ":127.0.0.1"});
      auto said = curl(std::move(a));
      there &= said.has_value();
      return said.value_or("");
    };
    EXPECT_EQ(get({base + "/"}), there ? "hello over 20\n" : "");
    if (!there) return;
    EXPECT_EQ(get({"--http1.1", base + "/"}), "hello over 11\n");
    EXPECT_EQ(get({base + "/large/1000"}).size(), 1'000'000u);
    const auto untrusting = curl({"--resolve", "localhost:" + at.port() + ":127.0.0.1", base + "/"});
    EXPECT_TRUE(untrusting->starts_with("curl: 60")) << *untrusting;
  });
  if (!there) GTEST_SKIP() << "there is no program curl here";
}

TEST(http_clients, nghttp_asks_for_many_at_once) {
  std::optional<net::child_output> o;
  ramie::run([&] {
    site mine;
    const served at{mine.s};
    const std::string base = "http://" + at.at().to_string();
    o = run_program({"nghttp", "--multiply=90", base + "/large/20"});
    if (!o) return;
    EXPECT_TRUE(o->status.success());
    EXPECT_EQ(o->out.size(), 90u * 20'000);
  });
  if (!o) GTEST_SKIP() << "there is no program nghttp here";
}

std::string h2spec_program() {
  const std::string own = project_file("build/tools/h2spec");
  return own.empty() ? "h2spec" : own;
}

TEST(http_clients, h2spec_over_tls) {
  const tls::certificates files;
  std::optional<net::child_output> o;
  ramie::run([&] {
    site mine;
    const tls::server_context context{{.certificates = {{files.chain(), files.key()}}, .alpn = server::protocols()}};
    const served at{mine.s, context};
    o = run_program(
        {h2spec_program(), "--tls", "--insecure", "--host", "127.0.0.1", "--port", at.port(), "--timeout", "5"});
  });
  if (!o) GTEST_SKIP() << "there is no program h2spec here, nor in build/tools";
  EXPECT_TRUE(contains(o->out, "145 tests, 145 passed, 0 skipped, 0 failed")) << o->out;
}

TEST(http_clients, h2spec_over_tcp) {
  std::optional<net::child_output> o;
  ramie::run([&] {
    // One that spoke both versions would answer a broken preface as the broken request of HTTP/1.1 that it is.
    site mine{{.versions = http_versions::only_2}};
    const served at{mine.s};
    o = run_program({h2spec_program(), "--host", "127.0.0.1", "--port", at.port(), "--timeout", "5"});
  });
  if (!o) GTEST_SKIP() << "there is no program h2spec here, nor in build/tools";
  EXPECT_TRUE(contains(o->out, "145 tests, 145 passed, 0 skipped, 0 failed")) << o->out;
}

}  // namespace
}  // namespace ramie::http
