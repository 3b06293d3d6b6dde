// A connection of HTTP/1.1, one request after the other.
#pragma once

#include "server/core.hpp"
#include "wire/body.hpp"

#include <functional>
#include <string>

namespace ramie::http {

class h1_exchange final : public exchange {
 public:
  explicit h1_exchange(connection& c);
  ~h1_exchange() override;

  /// Serves the next request; false if the connection is over. Throws io_error, timeout_error, `cancelled`.
  bool next();
  void become_websocket(const std::function<void(request&, websocket&)>& f) override;
  [[nodiscard]] bool is_upgraded() const noexcept override { return upgraded_; }
  [[nodiscard]] bool is_whole() const noexcept override {
    return has_ended() && owed_ == 0 && !is_over() && (held_.empty() || !this_fiber::stop_requested());
  }
  [[nodiscard]] const net::endpoint& peer() const noexcept override { return c_.peer(); }
  [[nodiscard]] bool is_over() const noexcept override { return over_ || c_.is_broken(); }
  std::size_t read_body(std::span<std::byte> into) override;
  void send_head(int status, std::string_view fields, std::optional<std::uint64_t> length,
                 std::string_view body) override;
  void send_part(std::span<const std::byte> part) override;
  void send_end() override;
  bool send_from_file(int fd, std::uint64_t offset, std::uint64_t size) override;

 private:
  bool read_head();
  bool parse_head();
  int judge_fields(int version);
  std::size_t read_part(std::span<std::byte> into, std::uint64_t most);
  void await_more();
  bool refuse(int status);
  bool skip_body();
  void rest() noexcept;
  void flush_unless_pipelined(bool complete);
  bool try_flush(std::span<const std::byte> body = {});
  void flush();
  void flush_or_hold(std::span<const std::byte> body = {});
  void break_off();

  connection& c_;
  std::string head_;        // of the request: its method, target and headers are views of it
  std::string held_;        // to be sent
  std::uint64_t owed_ = 0;  // of a body whose length the head has told
  std::string target_;      // of the request, if it is not in `head_`
  body_reader body_;
  int version_ = 11;
  bool upgraded_ = false, busy_ = false, keep_ = true, expects_ = false, chunked_ = false, no_body_ = false,
       rq_is_head_ = false, over_ = false;
};

/// websocket.cpp. Throws status_error before `agreed` is called, and anything from f after that.
void upgrade_to_websocket(exchange& x, connection& c, const std::function<void(request&, websocket&)>& f,
                          const std::function<void()>& agreed);

}  // namespace ramie::http
