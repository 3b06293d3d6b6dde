// nghttp2's session, of a server or a client: how it is made, and what comes out of it.
#pragma once

#include <nghttp2/nghttp2.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace ramie::http {

enum class h2_side : unsigned char { server, client };

/// Owns the session. Not for several threads at a time: whoever has it guards it. nghttp2 opens no window by itself;
/// nghttp2_session_consume does.
class h2_session {
 public:
  using set_callbacks = void (*)(nghttp2_session_callbacks*);

  /// `set` sets the callbacks, which get `self`. The settings and the connection's window (bytes) are what is sent
  /// first. Throws std::bad_alloc.
  h2_session(h2_side side, void* self, set_callbacks set, std::initializer_list<nghttp2_settings_entry> settings,
             std::int32_t window);
  h2_session(const h2_session&) = delete;
  h2_session& operator=(const h2_session&) = delete;
  ~h2_session() { nghttp2_session_del(session_); }

  // NOLINTNEXTLINE(google-explicit-constructor): as nghttp2 wants
  operator nghttp2_session*() const noexcept { return session_; }

  /// Appends what the session wants to send, until `into` has `most` bytes or more. Throws io_error (EPROTO) if the
  /// session is broken.
  void take_output(std::string& into, std::size_t most);

 private:
  nghttp2_session* session_ = nullptr;
};

/// One line of a head. Its texts have to stay until it was submitted.
[[nodiscard]] nghttp2_nv h2_line(std::string_view name, std::string_view value) noexcept;

}  // namespace ramie::http
