// What the versions of HTTP have to offer to requests and responses.
#pragma once

#include <ramie/http/server.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ramie::http {

/// One request and its response. Its calls are made by the fiber that handles it.
struct exchange {
  explicit exchange(const server_limits& l) : limits{l} { rq.by_ = rs.by_ = this; }
  exchange(const exchange&) = delete;
  exchange& operator=(const exchange&) = delete;
  virtual ~exchange() = default;

  /// Part of the body; 0 at its end.
  virtual std::size_t read_body(std::span<std::byte> into) = 0;
  /// The head; `body` follows if not empty. `length` none: parts follow, then the end. With a length, parts of that
  /// many bytes in all follow `body`; then it ends by itself.
  virtual void send_head(int status, std::string_view fields, std::optional<std::uint64_t> length,
                         std::string_view body) = 0;
  virtual void send_part(std::span<const std::byte> part) = 0;
  virtual void send_end() = 0;
  /// Part of a file by sendfile(2); false if that cannot be here.
  virtual bool send_from_file(int, std::uint64_t, std::uint64_t) { return false; }

  /// Becomes a WebSocket, until f returns. Throws status_error where that cannot be.
  virtual void become_websocket(const std::function<void(request&, websocket&)>& f) = 0;
  [[nodiscard]] virtual bool is_upgraded() const noexcept { return false; }

  /// The client can be told no more: its connection has failed, or it has reset the stream.
  [[nodiscard]] virtual bool is_over() const noexcept = 0;
  /// Of a response that has not begun: begin_anew forgets what was made of it since keep_headers, by its handler.
  void keep_headers() noexcept { kept_ = {rs.fields_.size(), rs.has_type_, rs.has_encoding_}; }
  void begin_anew() noexcept {
    rs.fields_.resize(kept_.fields);
    rs.has_type_ = kept_.has_type;
    rs.has_encoding_ = kept_.has_encoding;
    rs.may_compress_ = false;
  }

  [[nodiscard]] bool has_ended() const noexcept { return rs.state_ == response::state::ended; }

  [[nodiscard]] virtual const net::endpoint& peer() const noexcept = 0;
  [[nodiscard]] int sent_status() const noexcept { return sent_status_; }  // 0: no head yet
  [[nodiscard]] std::uint64_t sent() const noexcept { return sent_; }      // bytes of the body
  /// All that the head has announced was handed over, and nothing is known to be lost.
  [[nodiscard]] virtual bool is_whole() const noexcept = 0;

  [[nodiscard]] bool is_head() const noexcept { return rq.method() == "HEAD"; }

  request rq;
  response rs;
  const server_limits& limits;

 protected:
  /// Everything of the last request is forgotten.
  void fresh(std::string_view method, std::string_view target, std::string_view authority, int version, bool encrypted);
  /// The same, and their memory is given back.
  void forget() noexcept {
    std::vector<header_field>{}.swap(rq.headers_);
    std::string{}.swap(rs.fields_);
  }
  /// Of the request's body, bytes.
  [[nodiscard]] std::uint64_t body_most() const noexcept { return rq.body_most_; }
  /// Calls wait(time) for the next part of the body. The time is `body_idle`, and less if the body would be slower in
  /// all than `body_rate`; only what is spent in here counts.
  template <class F>
  void await_part(F wait) {
    using std::chrono::nanoseconds;
    const auto began = std::chrono::steady_clock::now();
    nanoseconds earned = nanoseconds::max();
    if (limits.body_rate != 0) {
      const double ns = static_cast<double>(rq.body_read_) * 1e9 / static_cast<double>(limits.body_rate);
      earned = nanoseconds{static_cast<std::int64_t>(std::min(ns, 1e18))};
    }
    earned = std::min(earned, nanoseconds::max() - limits.body_idle);
    wait(std::clamp(limits.body_idle + earned - awaited_, nanoseconds::zero(), limits.body_idle));
    awaited_ += std::chrono::steady_clock::now() - began;
  }
  [[nodiscard]] std::vector<header_field>& fields() noexcept { return rq.headers_; }
  void set_length(std::optional<std::uint64_t> n) noexcept { rq.length_ = n; }
  void note_head(int status) noexcept { sent_status_ = status; }
  void note_sent(std::uint64_t bytes) noexcept { sent_ += bytes; }
  void end_response() noexcept { rs.state_ = response::state::ended; }

 private:
  std::chrono::nanoseconds awaited_{};  // for the body
  std::uint64_t sent_ = 0;
  int sent_status_ = 0;
  struct {
    std::size_t fields = 0;
    bool has_type = false, has_encoding = false;
  } kept_;
};

}  // namespace ramie::http
