// A request as a server's handler sees it, and its response: the same for HTTP/1.1 and HTTP/2.
#pragma once

#include <ramie/net.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ramie::http {

struct exchange;  // one request and its response on a connection

enum class http_versions : unsigned char {
  automatic,  // HTTP/2 over TLS if both sides want it (ALPN). Without TLS a client speaks HTTP/1.1, and a server either
  only_1,     // HTTP/1.1, and 1.0 of clients
  only_2,     // HTTP/2, also without TLS, where the other side is known to speak it ("prior knowledge")
};

/// A response other than success, as an exception: thrown by a handler it becomes that response, with the text as its
/// body, if nothing has been sent yet.
class status_error : public error {
 public:
  status_error(int status, const std::string& text) : error{text}, status_{status} {}
  [[nodiscard]] int status() const noexcept { return status_; }

 private:
  int status_;
};

struct header_field {
  std::string_view name, value;
};

/// Names are compared without regard to case. None: nullopt; the first, if there are several.
[[nodiscard]] std::optional<std::string_view> find_header(std::span<const header_field> in,
                                                          std::string_view name) noexcept;

/// A request. What it returns by view or span is valid as long as the request. For one fiber at a time.
class request {
 public:
  request(const request&) = delete;
  request& operator=(const request&) = delete;

  [[nodiscard]] std::string_view method() const noexcept { return method_; }  // "GET"
  [[nodiscard]] std::string_view target() const noexcept { return target_; }  // as sent: "/a%20b?c=d"
  /// The target before the '?', as sent.
  [[nodiscard]] std::string_view path() const noexcept;
  /// The value of a name behind the '?', decoded; nullopt if it is not there.
  [[nodiscard]] std::optional<std::string> query(std::string_view name) const;
  [[nodiscard]] std::string_view authority() const noexcept { return authority_; }  // of Host or :authority
  [[nodiscard]] int version() const noexcept { return version_; }                   // 10, 11 or 20
  [[nodiscard]] bool is_encrypted() const noexcept { return encrypted_; }
  /// The address of the connection's other end, perhaps a proxy's; names nothing where there is no socket.
  [[nodiscard]] const net::endpoint& peer() const noexcept;

  [[nodiscard]] std::span<const header_field> headers() const noexcept { return headers_; }
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const noexcept {
    return find_header(headers_, name);
  }
  [[nodiscard]] std::optional<std::string_view> cookie(std::string_view name) const noexcept;

  /// The next bytes of the body; 0 at its end. The client is held up while nobody reads. Suspends. Throws status_error
  /// (408 if nothing comes for server_limits::body_idle, 413 beyond `body_most`, 400 if it is broken or not whole),
  /// io_error, `cancelled`.
  std::size_t read_some(std::span<std::byte> into);
  /// All that is left of the body. Same; 413 if that is more than `most` bytes.
  [[nodiscard]] std::string body(std::size_t most = SIZE_MAX);
  /// What the client announced; nullopt for a body in chunks, or none.
  [[nodiscard]] std::optional<std::uint64_t> content_length() const noexcept { return length_; }
  /// Other than the server's; before the first read.
  void limit_body(std::uint64_t most) noexcept { body_most_ = most; }

 private:
  friend struct exchange;
  request() = default;

  exchange* by_ = nullptr;
  std::string_view method_, target_, authority_;
  std::vector<header_field> headers_;
  std::optional<std::uint64_t> length_;
  std::uint64_t body_most_ = 0, body_read_ = 0;
  int version_ = 11;
  bool encrypted_ = false;
};

struct cookie_options {
  std::string_view path = "/";
  std::optional<std::int64_t> max_age_s{};  // none: until the browser ends
  bool secure = true, http_only = true;
  std::string_view same_site = "Lax";
};

/// A response. All calls that send suspend, while the client does not take it, and throw io_error, `cancelled`,
/// timeout_error (nothing was taken for server_limits::write_time). For one fiber at a time.
class response {
 public:
  response(const response&) = delete;
  response& operator=(const response&) = delete;

  /// Before anything is sent. Throws invalid_argument (not 200 to 599; a name or value that HTTP does not allow; a
  /// header that belongs to the connection, as content-length), usage_error afterwards.
  response& status(int code);
  [[nodiscard]] int status() const noexcept { return status_; }
  response& header(std::string_view name, std::string_view value);
  response& cookie(std::string_view name, std::string_view value, const cookie_options& options = {});

  /// What `send` sends may be packed by gzip, if the client takes that and it has 1 KiB or more. Not for a body with
  /// both a secret and something that others choose: its length would tell of the secret (BREACH).
  response& compressed() noexcept;

  /// All of the body, and the end. Without a content-type it is text/plain in UTF-8.
  void send(std::string_view body);
  void send_json(std::string_view body);
  /// A part of a body whose length is not known; `finish` ends it, and so does the handler's return.
  void write(std::span<const std::byte> part);
  void write(std::string_view part) { write(std::as_bytes(std::span{part})); }
  void finish();
  /// A regular file, or the parts of it that `asked` wants: with type, date and entity tag, and 304, 206, 412 and 416
  /// where they are due. By sendfile(2) where the bytes go to a socket as they are. Ranges that overlap are merged, and
  /// a request for more than 16 gets the whole file. 404 if there is no such file.
  void send_file(const request& asked, const std::string& path);
  /// 302, or another status of redirection.
  void redirect(std::string_view to, int status_code = 302);

  [[nodiscard]] bool has_begun() const noexcept { return state_ != state::fresh; }

 private:
  friend struct exchange;
  enum class state : unsigned char { fresh, streaming, ended };
  response() = default;
  void begin(std::optional<std::uint64_t> length);
  void expect_fresh(const char* what) const;

  exchange* by_ = nullptr;
  int status_ = 200;
  std::string fields_;  // as HTTP/1.1 has them: names in lower case
  bool has_type_ = false, has_encoding_ = false, may_compress_ = false;
  state state_ = state::fresh;
};

struct server_event {
  std::string_view data, name{}, id{};
};

/// Server-sent events: the body of a response that stays open. Sends the head at once.
class event_stream {
 public:
  explicit event_stream(response& over);
  /// Suspends. Throws as response::write; invalid_argument if name or id has a line break.
  void send(const server_event& e);
  /// A comment, which keeps proxies from closing an idle stream.
  void keep_alive();

 private:
  response* to_;
};

/// One part of a multipart/form-data body.
struct form_part {
  std::string name, file_name, content_type, data;
};
/// All parts of the body, in order. Suspends. Throws status_error: 415 if it is no multipart/form-data, 413 beyond
/// `most` bytes or 1,000 parts, 400 if it is broken.
[[nodiscard]] std::vector<form_part> read_form(request& from, std::size_t most = std::size_t{1} << 20);

}  // namespace ramie::http
