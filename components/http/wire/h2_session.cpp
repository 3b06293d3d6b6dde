#include "wire/h2_session.hpp"

#include <ramie/net.hpp>

#include <cerrno>
#include <new>
#include <system_error>

namespace ramie::http {

h2_session::h2_session(h2_side side, void* self, set_callbacks set,
                       std::initializer_list<nghttp2_settings_entry> settings, std::int32_t window) {
  nghttp2_session_callbacks* calls = nullptr;
  nghttp2_option* options = nullptr;
  if (nghttp2_session_callbacks_new(&calls) != 0) throw std::bad_alloc{};
  set(calls);
  int code = nghttp2_option_new(&options);
  if (code == 0) {
    nghttp2_option_set_no_auto_window_update(options, 1);
    code = side == h2_side::server ? nghttp2_session_server_new2(&session_, calls, self, options)
                                   : nghttp2_session_client_new2(&session_, calls, self, options);
    nghttp2_option_del(options);
  }
  nghttp2_session_callbacks_del(calls);
  if (code != 0) throw std::bad_alloc{};
  if (nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings.begin(), settings.size()) != 0 ||
      nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, window) != 0) {
    nghttp2_session_del(session_);
    throw std::bad_alloc{};
  }
}

void h2_session::take_output(std::string& into, std::size_t most) {
  while (into.size() < most) {
    const std::uint8_t* bytes = nullptr;
    const ssize_t n = nghttp2_session_mem_send(session_, &bytes);
    if (n < 0) throw net::io_error{"HTTP/2", std::error_code{EPROTO, std::system_category()}};
    if (n == 0) return;
    into.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(n));
  }
}

nghttp2_nv h2_line(std::string_view name, std::string_view value) noexcept {
  const auto bytes = [](std::string_view s) { return reinterpret_cast<std::uint8_t*>(const_cast<char*>(s.data())); };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

}  // namespace ramie::http
