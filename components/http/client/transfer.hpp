// A request that was sent, and its response: what the versions of HTTP have to offer to a client.
#pragma once

#include "wire/url.hpp"

#include <ramie/http/client.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ramie::http {

struct client_pool;
class wire;
class h2_client;

/// Judged already: names are in lower case, and nothing belongs to the connection.
struct outgoing {
  std::string method;
  const url* to = nullptr;
  bool absolute = false;  // for a proxy: the whole URL is the target
  std::vector<std::pair<std::string, std::string>> fields{};
  std::optional<std::string_view> body{};
};

/// The request failed before anything of its response came. `surely`: the server says that it did nothing.
struct not_begun : net::io_error {
  not_begun(const std::string& what, std::error_code code, bool is_sure) : io_error{what, code}, surely{is_sure} {}
  bool surely;
};

class transfer {
 public:
  transfer() = default;
  transfer(const transfer&) = delete;
  transfer& operator=(const transfer&) = delete;
  virtual ~transfer() = default;

  /// Part of the body; 0 at its end. Suspends.
  virtual std::size_t read(std::span<std::byte> into) = 0;

  int status = 0;
  std::vector<header_field> fields;  // views of what the transfer owns
};

[[noreturn]] void refuse_response(const char* why);

/// Sends it and reads the head of the response. Suspends. Throws not_begun, io_error, timeout_error, `cancelled`.
[[nodiscard]] std::unique_ptr<transfer> start_1(std::shared_ptr<client_pool> of, std::string key,
                                                std::unique_ptr<wire> w, const outgoing& what);
[[nodiscard]] std::unique_ptr<transfer> start_2(std::shared_ptr<h2_client> over, const outgoing& what);

}  // namespace ramie::http
