// Beast's parser of HTTP/1, as server and client use it: headers as views of what was parsed, bodies into a buffer of
// the caller's.
#pragma once

#include <ramie/http/message.hpp>

#include <boost/beast/http/basic_parser.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace ramie::http {

namespace beast = boost::beast;

template <bool is_request>
class message_parser : public beast::http::basic_parser<is_request> {
 public:
  message_parser(std::vector<header_field>& fields, std::size_t fields_most)
      : fields_{fields}, fields_most_{fields_most} {
    this->body_limit(boost::none);  // the reader has it
    this->header_limit(UINT32_MAX);
  }

  bool has_too_many_fields = false;
  std::span<std::byte> into;  // where a body goes
  std::size_t taken = 0;      // bytes of it

 protected:
  using error_code = beast::error_code;
  using view = beast::string_view;
  static std::string_view plain(view v) noexcept { return {v.data(), v.size()}; }

 private:
  static constexpr std::size_t extensions_most = 16 * 1024;  // bytes of chunk extensions in a body; a guess

  void on_field_impl(beast::http::field, view name, view value, error_code& ec) override {
    if (in_body_) return;  // trailers
    has_too_many_fields |= fields_.size() == fields_most_;
    if (has_too_many_fields) ec = beast::http::error::header_limit;
    else fields_.push_back({plain(name), plain(value)});
  }
  void on_header_impl(error_code&) override { in_body_ = true; }
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(view body, error_code&) override { return take(body); }
  void on_chunk_header_impl(std::uint64_t, view extensions, error_code& ec) override {
    extensions_ += extensions.size();
    if (extensions_ > extensions_most) ec = beast::http::error::bad_chunk_extension;
  }
  std::size_t on_chunk_body_impl(std::uint64_t, view body, error_code&) override { return take(body); }
  void on_finish_impl(error_code&) override {}

  std::size_t take(view body) noexcept {
    const std::size_t n = std::min(body.size(), into.size() - taken);
    if (n != 0) std::memcpy(into.data() + taken, body.data(), n);
    taken += n;
    return n;
  }

  std::vector<header_field>& fields_;
  std::size_t fields_most_;
  std::size_t extensions_ = 0;
  bool in_body_ = false;
};

}  // namespace ramie::http
