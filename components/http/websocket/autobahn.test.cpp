// The cases of AutobahnTestsuite, from both ends, by interop/autobahn_cases.py. Skips itself without the suite in
// build/tools
// (`./run setup` gets it) or python3-autobahn.
#include "../testing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

namespace ramie::http {
namespace {

#if RAMIE_TSAN || RAMIE_ASAN
constexpr bool all_cases = false;
#else
constexpr bool all_cases = true;
#endif
constexpr std::size_t message_most = 32 << 20;  // the largest that a case sends is 16 MiB

std::vector<std::string> cases_program() {
  const std::string script = project_file("components/http/websocket/interop/autobahn_cases.py"),
                    suite = project_file("build/tools/autobahntestsuite");
  if (script.empty() || suite.empty()) return {};
  std::vector<std::string> all{"/usr/bin/python3", script, "--suite", suite};
  // Under a sanitizer those that send a lot are left out.
  if (!all_cases) all.insert(all.end(), {"--only", "Case([1-7]|10)_"});
  return all;
}

void echo(websocket& w) {
  while (const auto m = w.receive()) {
    if (m->is_text) w.send(m->data);
    else w.send_binary(m->data);
  }
}

TEST(http_autobahn, a_server_passes_each_case) {
  std::vector<std::string> program = cases_program();
  if (program.empty()) GTEST_SKIP() << "there is no build/tools/autobahntestsuite here";
  std::optional<net::child_output> o;
  ramie::run([&] {
    server s{{.websocket_message_most = message_most}};
    s.upgrade("/", [](request&, websocket& w) { echo(w); });
    const served at{s};
    program.insert(program.end(), {"client", "ws://" + at.at().to_string() + "/"});
    o = run_program(program);
  });
  if (!o || o->status.code == 77) GTEST_SKIP() << (o ? o->out : "there is no /usr/bin/python3 here");
  // Not strict: text that is not UTF-8 is noticed at the end of its message, not at once. Informational: what comes of
  // a message behind which a close follows at once, and of close codes from outside any range.
  EXPECT_TRUE(contains(
      o->out, all_cases ? "517 cases, 0 failed: 3 INFORMATIONAL, 4 NON-STRICT, 510 OK" : "247 cases, 0 failed"))
      << o->out << o->err;
}

TEST(http_autobahn, a_client_passes_each_case) {
  std::vector<std::string> program = cases_program();
  if (program.empty()) GTEST_SKIP() << "there is no build/tools/autobahntestsuite here";
  program.emplace_back("server");
  std::string said;
  bool there = true;
  ramie::run([&] {
    net::child peer{program, {.in = net::child_io::null, .out = net::child_io::pipe, .err = net::child_io::null}};
    net::buffered_reader out{peer.out()};
    const std::string port{out.read_line().value_or("")};
    if (port.empty() || port.find_first_not_of("0123456789") != std::string::npos) {
      there = false;
      said = port;
      return;
    }
    const std::string base = "ws://127.0.0.1:" + port;
    const websocket_options options{.message_most = message_most};
    websocket w = websocket::connect(base + "/cases", options);
    const int count = std::stoi(w.receive().value().data);
    std::atomic<int> next{0};
    scope all;
    for (int i = 0; i < 24; ++i)
      all.spawn([&] {
        for (int n = next++; n < count; n = next++) {
          try {
            websocket one = websocket::connect(base + "/case/" + std::to_string(n), options);
            echo(one);
          } catch (const net::io_error&) {
            // That is what many cases want.
          } catch (const timeout_error&) {
            ADD_FAILURE() << "case " << n << " does not end";
          }
        }
      });
    all.join();
    websocket end = websocket::connect(base + "/end");
    static_cast<void>(end.receive());
    said = net::read_all(out);
  });
  if (!there) GTEST_SKIP() << said;
  EXPECT_TRUE(contains(said, all_cases ? "517 cases, 0 failed" : "247 cases, 0 failed")) << said;
  // A window for what the client packs is not offered: zlib has none of 256 bytes, which a server could choose.
  EXPECT_EQ(contains(said, "72 UNIMPLEMENTED"), all_cases) << said;
}

}  // namespace
}  // namespace ramie::http
