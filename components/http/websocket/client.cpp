#include "websocket/websocket.hpp"
#include "wire/text.hpp"
#include "wire/url.hpp"

#include <ramie/runtime.hpp>

#include <openssl/evp.h>
#include <openssl/rand.h>

#include <array>

namespace ramie::http {

namespace {

constexpr std::size_t head_most = 16 * 1024;  // bytes of the answer's head
constexpr auto handshake_time = std::chrono::seconds{30};

[[noreturn]] void refuse(const std::string& why) {
  throw net::io_error{"WebSocket handshake: " + why, std::error_code{EPROTO, std::system_category()}};
}

std::string new_key() {
  std::array<unsigned char, 16> bytes;
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1)
    throw net::io_error{"WebSocket key", tls::errc::protocol};
  std::array<unsigned char, 32> text;
  EVP_EncodeBlock(text.data(), bytes.data(), static_cast<int>(bytes.size()));
  return {reinterpret_cast<const char*>(text.data()), 24};
}

/// The value of a header; nullopt if it is not there, and if it is there twice.
std::optional<std::string_view> field_of(std::string_view head, std::string_view name) {
  std::optional<std::string_view> found;
  bool twice = false;
  while (!head.empty()) {
    const std::size_t end = std::min(head.find("\r\n"), head.size());
    const std::string_view line = head.substr(0, end);
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos && same_name(line.substr(0, colon), name)) {
      twice = found.has_value();
      found = trimmed(line.substr(colon + 1));
    }
    head.remove_prefix(std::min(end + 2, head.size()));
  }
  return twice ? std::nullopt : found;
}

/// Of the answer's head. Throws unless the server agreed to what was asked for. True: messages may be packed.
bool judge(std::string_view head, const std::string& key, bool offered) {
  if (!head.starts_with("HTTP/1.1 101"))
    refuse("the server says \"" + std::string{head.substr(0, head.find("\r\n"))} + "\"");
  const auto is = [&](const char* name, std::string_view wanted) {
    const auto value = field_of(head, name);
    return value && same_name(*value, wanted);
  };
  if (!is("upgrade", "websocket") || !is("connection", "upgrade")) refuse("the answer is no upgrade");
  if (field_of(head, "sec-websocket-accept") != std::string_view{websocket_accept(key)})
    refuse("the key's answer is wrong");
  const auto extensions = field_of(head, "sec-websocket-extensions");
  if (!extensions || extensions->empty()) return false;
  if (!offered) refuse("an extension that was not asked for");
  bool first = true, without_takeover = false;
  any_item(
      *extensions,
      [&](std::string_view item) {
        if (first && !same_name(item, "permessage-deflate")) refuse("an extension that was not asked for");
        first = false;
        without_takeover |= same_name(item, "server_no_context_takeover");
        if (item.starts_with("client_max_window_bits")) refuse("a window that was not offered");
        return false;
      },
      ';');
  if (!without_takeover) refuse("a server that keeps its window");
  return true;
}

}  // namespace

websocket websocket::connect(std::string_view text, const websocket_options& options,
                             const tls::client_context* context) {
  const url to = parse_url(text);
  if (to.scheme != "ws" && to.scheme != "wss")
    throw invalid_argument{"ramie: http: websocket: the scheme of \"" + std::string{text} + "\" has to be ws or wss"};
  if (to.scheme == "wss" && context == nullptr)
    throw invalid_argument{"ramie: http: websocket: wss needs a tls::client_context"};
  return with_timeout(handshake_time, [&] {
    net::any_stream stream = connect_to(to);
    if (to.scheme == "wss") stream = tls::stream::connect(std::move(stream), *context, to.host);
    auto w = std::make_unique<wire>(std::move(stream), head_most, options.write_time);
    const std::string key = new_key();
    std::string asked =
        "GET " + to.target + " HTTP/1.1\r\nhost: " + to.authority() +
        "\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-version: 13\r\nsec-websocket-key: " + key +
        "\r\n";
    if (options.compress)
      asked +=
          "sec-websocket-extensions: permessage-deflate; server_no_context_takeover; client_no_context_takeover\r\n";
    w->write(asked + "\r\n");
    std::size_t end = 0;
    while ((end = w->input().find("\r\n\r\n")) == std::string_view::npos)
      if (w->fill(handshake_time) == 0) refuse("the answer ends, or does not");
    const bool packed = judge(w->input().substr(0, end + 2), key, options.compress);
    w->consume(end + 4);
    auto s = std::make_unique<state>(std::move(w), options);
    s->deflate = packed;
    return websocket{std::move(s)};
  });
}

}  // namespace ramie::http
