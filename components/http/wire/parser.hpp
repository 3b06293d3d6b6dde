// Beast's parser of the heads of HTTP/1, as server and client use it: fields as views of what was parsed. Bodies are
// body.hpp's.
#pragma once

#include <ramie/http/message.hpp>

#include <boost/beast/http/basic_parser.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace ramie::http {

namespace beast = boost::beast;

template <bool is_request>
class message_parser : public beast::http::basic_parser<is_request> {
 public:
  message_parser(std::vector<header_field>& fields, std::size_t fields_most)
      : fields_{fields}, fields_most_{fields_most} {
    this->body_limit(boost::none);
    this->header_limit(UINT32_MAX);
  }

  /// A head that has_whole_lines. False: it is broken, or has too many fields.
  [[nodiscard]] bool parse(std::string_view head) {
    error_code ec;
    this->put(boost::asio::const_buffer{head.data(), head.size()}, ec);
    has_bad_version = ec == beast::http::error::bad_version;
    return this->is_header_done() && (!ec || ec == beast::http::error::need_more);
  }

  bool has_too_many_fields = false, has_bad_version = false;

 protected:
  using error_code = beast::error_code;
  using view = beast::string_view;
  static std::string_view plain(view v) noexcept { return {v.data(), v.size()}; }

 private:
  void on_field_impl(beast::http::field, view name, view value, error_code& ec) override {
    has_too_many_fields |= fields_.size() == fields_most_;
    if (has_too_many_fields) ec = beast::http::error::header_limit;
    else fields_.push_back({plain(name), plain(value)});
  }
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(view, error_code&) override { return 0; }
  void on_chunk_header_impl(std::uint64_t, view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, view, error_code&) override { return 0; }
  void on_finish_impl(error_code&) override {}

  std::vector<header_field>& fields_;
  std::size_t fields_most_;
};

}  // namespace ramie::http
