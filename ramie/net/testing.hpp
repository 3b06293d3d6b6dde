// What the tests of this floor share.
#pragma once

#include <ramie/net.hpp>
#include <ramie/ramie.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ramie::net {

inline std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span{text}); }
inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Runs `program` as the main fiber of runtimes with one, two and eight workers.
template <class F>
void with_workers(F program) {
  for (const int n : {1, 2, 8}) {
    SCOPED_TRACE("workers: " + std::to_string(n));
    runtime rt{{.workers = n, .name = "net"}};
    rt.run([&] { program(); });
  }
}

/// A connection over the loopback interface: the client's end, and the server's.
inline std::pair<tcp_stream, tcp_stream> tcp_pair() {
  tcp_listener l{{"127.0.0.1", 0}};
  auto client = spawn([at = l.local()] { return tcp_stream::connect(at); });
  tcp_stream server = l.accept();
  return {client.join(), std::move(server)};
}

/// Reads until the end.
template <class Stream>
std::string read_all(Stream& from) {
  std::string all;
  std::array<std::byte, 1000> part;
  while (const std::size_t n = from.read_some(part)) all += text_of(std::span{part}.first(n));
  return all;
}

/// The error code that `f` fails with; none if it does not.
template <class F>
std::error_code code_of(F f) {
  try {
    f();
  } catch (const io_error& e) {
    return e.code();
  }
  return {};
}

/// Bytes that depend on their place, so that a lost, doubled or moved byte is noticed.
inline std::byte byte_at(std::uint64_t i) noexcept {
  i *= 0x9e3779b97f4a7c15u;
  return static_cast<std::byte>(i >> 56);
}

}  // namespace ramie::net
