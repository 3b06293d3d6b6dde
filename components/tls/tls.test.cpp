// What users of ramie::tls rely on: who is refused, what is agreed, and that no byte is lost.
#include "testing.hpp"

#include <ramie/net/testing.hpp>
#include <ramie/tls.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace ramie::tls {
namespace {

using namespace std::chrono_literals;
using net::code_of;
using net::read_all;
using net::tcp_pair;
using net::with_workers;

server_options served(const certificates& c) { return {.certificates = {{c.chain(), c.key()}}}; }
client_options trusting(const certificates& c) { return {.roots = c.roots()}; }

struct ends {
  stream client, server;
};

/// Both ends after the handshake. Throws what the client's end throws; what the server's throws is in `refusal`.
ends connected(const client_context& c, const server_context& s, const std::string& host = "localhost",
               std::error_code* refusal = nullptr) {
  auto [near, far] = tcp_pair();
  ends made;
  std::exception_ptr failure;
  scope both;
  both.spawn([&, &f = far] {
    std::error_code code = code_of([&] { made.server = stream::accept(std::move(f), s); });
    if (refusal != nullptr) *refusal = code;
  });
  try {
    made.client = stream::connect(std::move(near), c, host);
  } catch (...) {
    failure = std::current_exception();
  }
  both.join();
  if (failure) std::rethrow_exception(failure);
  return made;
}

std::error_code refusal_of(const client_options& c, const server_options& s, const std::string& host = "localhost") {
  return code_of([&] { static_cast<void>(connected(client_context{c}, server_context{s}, host)); });
}

TEST(tls, carries_bytes_both_ways_and_ends_each) {
  const certificates files;
  with_workers([&] {
    ends e = connected(client_context{trusting(files)}, server_context{served(files)});
    e.client.write_all("hello");
    e.client.shutdown_write();
    EXPECT_EQ(read_all(e.server), "hello");
    e.server.write_all("good bye");
    e.server.shutdown_write();
    EXPECT_EQ(read_all(e.client), "good bye");
    EXPECT_EQ(e.client.details().spoken, version::tls_1_3);
    EXPECT_EQ(e.client.details().peer_subject, "CN=localhost");
    EXPECT_EQ(e.server.details().server_name, "localhost");
    EXPECT_FALSE(e.client.details().resumed);
  });
}

TEST(tls, carries_much_both_ways_at_once) {
  const certificates files;
  static constexpr std::size_t total = 3'000'000;
  with_workers([&] {
    ends e = connected(client_context{trusting(files)}, server_context{served(files)});
    const auto send = [](stream& to) {
      std::vector<std::byte> part(70'001);
      for (std::size_t at = 0; at < total;) {
        const std::size_t n = std::min(part.size(), total - at);
        for (std::size_t i = 0; i < n; ++i) part[i] = net::byte_at(at + i);
        to.write_all(std::span{part}.first(n));
        at += n;
      }
      to.shutdown_write();
    };
    const auto check = [](stream& from) {
      std::vector<std::byte> part(30'000);
      std::size_t at = 0;
      while (const std::size_t n = from.read_some(part)) {
        for (std::size_t i = 0; i < n; ++i)
          if (part[i] != net::byte_at(at + i)) throw std::runtime_error{"byte " + std::to_string(at + i)};
        at += n;
      }
      EXPECT_EQ(at, total);
    };
    scope all;
    all.spawn([&] { send(e.client); });
    all.spawn([&] { send(e.server); });
    all.spawn([&] { check(e.client); });
    all.spawn([&] { check(e.server); });
    all.join();
  });
}

TEST(tls, a_client_refuses_whom_it_cannot_trust) {
  const certificates good, expired{{.from_s = -7200, .until_s = -3600}}, early{{.from_s = 3600, .until_s = 7200}},
      elsewhere{{.subject = "example.org", .names = "DNS:example.org"}};
  const identity alone{{}};
  const scratch_folder folder;
  alone.write(folder / "alone.pem", folder / "alone.key");
  good.authority.write_revocation(folder / "revoked.pem", good.server);
  expired.authority.write_revocation(folder / "other.pem", expired.server);
  ramie::run([&] {
    EXPECT_EQ(refusal_of(trusting(good), served(good)), std::error_code{});
    EXPECT_EQ(refusal_of(trusting(good), served(good), "127.0.0.1"), std::error_code{});
    EXPECT_EQ(refusal_of(trusting(good), served(good), "127.0.0.2"), errc::wrong_host);
    EXPECT_EQ(refusal_of(trusting(expired), served(expired)), errc::expired);
    EXPECT_EQ(refusal_of(trusting(early), served(early)), errc::expired);
    EXPECT_EQ(refusal_of(trusting(elsewhere), served(elsewhere)), errc::wrong_host);
    EXPECT_EQ(refusal_of(trusting(elsewhere), served(elsewhere), "example.org"), std::error_code{});
    EXPECT_EQ(refusal_of(trusting(good), served(elsewhere), "example.org"), errc::untrusted);
    EXPECT_EQ(refusal_of(trusting(good), {.certificates = {{folder / "alone.pem", folder / "alone.key"}}}),
              errc::untrusted);
    EXPECT_EQ(refusal_of({}, served(good)), errc::untrusted);  // the system's roots
    EXPECT_EQ(refusal_of({.roots = good.roots(), .crl = folder / "revoked.pem"}, served(good)), errc::revoked);
    EXPECT_EQ(refusal_of({.verify = false}, served(expired)), std::error_code{});
  });
}

TEST(tls, the_server_learns_that_it_was_refused) {
  const certificates files;
  ramie::run([&] {
    std::error_code refusal;
    EXPECT_THROW(static_cast<void>(connected(client_context{}, server_context{served(files)}, "localhost", &refusal)),
                 net::io_error);
    EXPECT_EQ(refusal, errc::protocol);
  });
}

TEST(tls, a_server_with_several_certificates_shows_the_one_that_is_asked_for) {
  const certificates files;
  const identity shop{{.subject = "shop", .names = "DNS:shop.test,DNS:*.shop.test"}, &files.authority};
  shop.write(files.folder / "shop.pem", files.folder / "shop.key");
  server_options options = served(files);
  options.certificates.push_back({files.folder / "shop.pem", files.folder / "shop.key"});
  options.alpn = {"h2", "http/1.1"};
  client_options any = trusting(files);
  any.alpn = {"http/1.1", "h2"};
  ramie::run([&] {
    const server_context server{options};
    const client_context client{any};
    const auto shown = [&](const std::string& name) {
      const ends both = connected(client, server, name);
      EXPECT_EQ(both.client.details().alpn, "h2") << name;  // whatever the certificate
      return both.client.details().peer_subject;
    };
    EXPECT_EQ(shown("localhost"), "CN=localhost");
    EXPECT_EQ(shown("shop.test"), "CN=shop");
    EXPECT_EQ(shown("www.shop.test"), "CN=shop");
    EXPECT_EQ(code_of([&] { static_cast<void>(shown("elsewhere.test")); }), errc::wrong_host);
  });
}

TEST(tls, both_agree_on_a_protocol_or_fail) {
  const certificates files;
  server_options s = served(files);
  client_options c = trusting(files);
  s.alpn = {"h2", "http/1.1"};
  ramie::run([&] {
    EXPECT_EQ(connected(client_context{c}, server_context{s}).server.details().alpn, "");
    c.alpn = {"http/1.1", "h2"};
    EXPECT_EQ(connected(client_context{c}, server_context{s}).client.details().alpn, "h2");
    c.alpn = {"smtp"};
    EXPECT_EQ(refusal_of(c, s), errc::protocol);
  });
}

TEST(tls, versions_below_the_oldest_are_refused) {
  const certificates files;
  server_options s = served(files);
  s.oldest = version::tls_1_3;
  ramie::run([&] {
    EXPECT_EQ(connected(client_context{trusting(files)}, server_context{s}).server.details().spoken, version::tls_1_3);
  });
}

TEST(tls, sessions_are_resumed_also_after_a_reload) {
  const certificates files;
  ramie::run([&] {
    const client_context client{trusting(files)};
    server_context server{served(files)};
    const auto resumed = [&] {
      ends e = connected(client, server);
      e.server.write_all("x");  // the client's session comes behind the handshake
      std::byte one[1];
      EXPECT_EQ(e.client.read_some(one), 1u);
      EXPECT_EQ(e.client.details().resumed, e.server.details().resumed);
      return e.client.details().resumed;
    };
    EXPECT_FALSE(resumed());
    EXPECT_TRUE(resumed());
    server.reload();
    EXPECT_TRUE(resumed());
  });
}

TEST(tls, certificates_are_reloaded_without_a_restart) {
  const certificates files;
  const identity renewed{{.subject = "renewed"}, &files.authority};
  ramie::run([&] {
    server_context server{served(files)};
    const auto shown = [&] { return connected(client_context{trusting(files)}, server).client.details().peer_subject; };
    EXPECT_EQ(shown(), "CN=localhost");
    renewed.write(files.chain(), files.key());
    EXPECT_EQ(shown(), "CN=localhost");
    server.reload();
    EXPECT_EQ(shown(), "CN=renewed");
    std::ofstream{files.chain()} << "no certificate";
    EXPECT_EQ(code_of([&] { server.reload(); }), errc::protocol);
    EXPECT_EQ(shown(), "CN=renewed");
  });
}

TEST(tls, clients_show_a_certificate_if_they_have_to) {
  const certificates files;
  const identity ann{{.subject = "ann", .names = ""}, &files.authority};
  const identity stranger{{.subject = "stranger", .names = ""}};
  ann.write(files.folder / "ann.pem", files.folder / "ann.key");
  stranger.write(files.folder / "stranger.pem", files.folder / "stranger.key");
  files.authority.write_revocation(files.folder / "revoked.pem", ann);
  server_options s = served(files);
  s.client_roots = files.roots();
  ramie::run([&] {
    const auto outcome = [&](const client_options& c, std::string* subject = nullptr) {
      std::error_code refusal;
      try {
        ends e = connected(client_context{c}, server_context{s}, "localhost", &refusal);
        if (subject != nullptr) *subject = e.server.details().peer_subject;
      } catch (const net::io_error&) {
      }
      return refusal;
    };
    client_options c = trusting(files);
    EXPECT_EQ(outcome(c), errc::no_certificate);
    c.identity = {{files.folder / "stranger.pem", files.folder / "stranger.key"}};
    EXPECT_EQ(outcome(c), errc::untrusted);
    c.identity = {{files.folder / "ann.pem", files.folder / "ann.key"}};
    std::string subject;
    EXPECT_EQ(outcome(c, &subject), std::error_code{});
    EXPECT_EQ(subject, "CN=ann");
    s.crl = files.folder / "revoked.pem";
    EXPECT_EQ(outcome(c), errc::revoked);
  });
}

TEST(tls, handshakes_end_by_deadline_and_by_cancellation) {
  const certificates files;
  with_workers([&] {
    const server_context server{served(files)};
    {
      auto [near, far] = tcp_pair();
      EXPECT_THROW(with_timeout(20ms, [&, &f = far] { return stream::accept(std::move(f), server); }), timeout_error);
      EXPECT_EQ(read_all(near), "");  // it is closed
    }
    auto [near, far] = tcp_pair();
    auto waiting = spawn([&, &f = far] { static_cast<void>(stream::accept(std::move(f), server)); });
    this_fiber::sleep_for(5ms);
    waiting.request_stop();
    EXPECT_THROW(waiting.join(), cancelled);
  });
}

TEST(tls, what_is_no_tls_is_refused) {
  const certificates files;
  ramie::run([&] {
    auto [near, far] = tcp_pair();
    near.write_all("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(
        code_of([&, &f = far] { static_cast<void>(stream::accept(std::move(f), server_context{served(files)})); }),
        errc::protocol);
    auto [a, b] = tcp_pair();
    a.write_all("\x16\x03\x01");
    a.shutdown_write();
    EXPECT_EQ(code_of([&, &f = b] { static_cast<void>(stream::accept(std::move(f), server_context{served(files)})); }),
              net::io_errc::unexpected_end);
  });
}

TEST(tls, an_end_that_the_peer_did_not_announce_is_told) {
  const certificates files;
  ramie::run([&] {
    ends e = connected(client_context{trusting(files)}, server_context{served(files)});
    std::array<std::byte, 100> part;
    e.server.write_all("x");
    EXPECT_EQ(e.client.read_some(part), 1u);  // with all that was behind the handshake, or the kernel would reset
    e.client.write_all("half of");
    e.client = {};
    EXPECT_EQ(e.server.read_some(part), 7u);
    EXPECT_EQ(code_of([&] { e.server.read_some(part); }), net::io_errc::unexpected_end);
  });
}

TEST(tls, close_ends_the_calls_of_others) {
  const certificates files;
  with_workers([&] {
    ends e = connected(client_context{trusting(files)}, server_context{served(files)});
    auto reader = spawn([&] {
      std::array<std::byte, 10> part;
      return code_of([&] { e.client.read_some(part); });
    });
    this_fiber::sleep_for(2ms);
    e.client.close();
    EXPECT_EQ(reader.join(), net::io_errc::closed);
    EXPECT_EQ(code_of([&] { e.client.write_all("x"); }), net::io_errc::closed);
    EXPECT_EQ(code_of([&] { stream{}.write_all("x"); }), net::io_errc::closed);
  });
}

TEST(tls, a_write_that_was_cut_short_loses_nothing) {
  const certificates files;
  with_workers([&] {
    ends e = connected(client_context{trusting(files)}, server_context{served(files)});
    std::string sent(20'000'000, 'x');  // more than buffers hold
    for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>('a' + i % 23);
    std::size_t written = 0;
    EXPECT_THROW(with_timeout(30ms, [&] { e.client.write_all(sent, &written); }), timeout_error);
    EXPECT_GT(written, 0u);
    EXPECT_LT(written, sent.size());
    auto rest = spawn([&] {
      e.client.write_all(std::string_view{sent}.substr(written));
      e.client.shutdown_write();
    });
    EXPECT_TRUE(read_all(e.server) == sent);
    rest.join();
  });
}

TEST(tls, wait_readable_knows_what_is_decrypted_already) {
  const certificates files;
  ramie::run([&] {
    ends e = connected(client_context{trusting(files)}, server_context{served(files)});
    e.client.write_all("two");
    e.server.wait_readable();
    std::array<std::byte, 1> one;
    for (int i = 0; i < 3; ++i) {
      e.server.wait_readable();
      EXPECT_EQ(e.server.read_some(one), 1u);
    }
    EXPECT_THROW(with_timeout(10ms, [&] { e.server.wait_readable(); }), timeout_error);
  });
}

TEST(tls, wrong_options_are_named) {
  const certificates files;
  ramie::run([&] {
    EXPECT_THROW(server_context{server_options{}}, invalid_argument);
    server_options o = served(files);
    o.alpn = {""};
    EXPECT_THROW(server_context{o}, invalid_argument);
    try {
      const server_context c{server_options{.certificates = {{"/no/such/file.pem", files.key()}}}};
      ADD_FAILURE();
    } catch (const net::io_error& e) {
      EXPECT_NE(std::string{e.what()}.find("/no/such/file.pem"), std::string::npos);
      EXPECT_EQ(e.code(), std::errc::no_such_file_or_directory);
    }
    const certificates others;
    EXPECT_EQ(code_of([&] { server_context{server_options{.certificates = {{files.chain(), others.key()}}}}; }),
              errc::protocol);
  });
}

}  // namespace
}  // namespace ramie::tls
