#include "client/h2.hpp"

#include "wire/text.hpp"

#include <ramie/channel.hpp>
#include <ramie/runtime.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>

namespace ramie::http {

namespace {

constexpr std::int32_t call_window = 256 * 1024;     // bytes of a response that nobody reads; a guess
constexpr std::int32_t client_window = 1024 * 1024;  // of all of a connection's; a guess
constexpr std::size_t sent_at_once = 64 * 1024;      // a guess

}  // namespace

// ---- what nghttp2 calls, under the lock ----------------------------------------------------------------------------

struct h2_client::callbacks {
  static void set(nghttp2_session_callbacks* calls) noexcept {
    nghttp2_session_callbacks_set_on_header_callback(calls, &header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(calls, &frame_received);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, &data);
    nghttp2_session_callbacks_set_on_stream_close_callback(calls, &stream_closed);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(calls, &frame_not_sent);
  }
  static h2_call* call(void* self, std::int32_t id) noexcept {
    auto& all = static_cast<h2_client*>(self)->calls_;
    const auto at = all.find(id);
    return at == all.end() ? nullptr : at->second.get();
  }

  static int header(nghttp2_session*, const nghttp2_frame* f, const std::uint8_t* name, std::size_t name_size,
                    const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* self) noexcept {
    h2_call* x = call(self, f->hd.stream_id);
    if (x == nullptr || x->has_head) return 0;  // trailers
    const client_options& o = static_cast<h2_client*>(self)->options_;
    x->head_size += name_size + value_size + 32;  // as RFC 9113, 6.5.2 counts
    x->too_large |= x->lines.size() >= o.headers_most || x->head_size > o.header_most;
    if (x->too_large) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;  // resets the stream
    const std::string_view n{reinterpret_cast<const char*>(name), name_size},
        v{reinterpret_cast<const char*>(value), value_size};
    try {
      if (n == ":status")
        x->status = static_cast<int>(parse_number(v).value_or(0));  // three digits: nghttp2 sees to that
      else x->lines.emplace_back(n, v);
      return 0;
    } catch (const std::bad_alloc&) {
      return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
  }

  static int frame_received(nghttp2_session*, const nghttp2_frame* f, void* self) noexcept {
    if (f->hd.type == NGHTTP2_GOAWAY) static_cast<h2_client*>(self)->leaving_ = true;
    if (f->hd.type != NGHTTP2_HEADERS && f->hd.type != NGHTTP2_DATA) return 0;
    h2_call* x = call(self, f->hd.stream_id);
    if (x == nullptr) return 0;
    if (f->hd.type == NGHTTP2_HEADERS && !x->has_head) {
      if (x->status < 200) x->lines.clear();  // 1xx
      else x->has_head = true;
    }
    if ((f->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) x->ended = true;
    x->changed.set();
    return 0;
  }

  static int data(nghttp2_session* s, std::uint8_t, std::int32_t id, const std::uint8_t* bytes, std::size_t n,
                  void* self) noexcept {
    h2_call* x = call(self, id);
    if (x == nullptr || x->given_up) {
      nghttp2_session_consume(s, id, n);  // nobody reads it any more
      return 0;
    }
    try {
      x->in.append(reinterpret_cast<const char*>(bytes), n);
    } catch (const std::bad_alloc&) {
      return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    x->changed.set();
    return 0;
  }

  static int stream_closed(nghttp2_session*, std::int32_t id, std::uint32_t code, void* self) noexcept {
    h2_client& c = *static_cast<h2_client*>(self);
    if (h2_call* x = call(self, id); x != nullptr) {
      x->closed = true;
      x->code = code;
      x->changed.set();
      c.calls_.erase(id);  // its transfer has it still, unless it was given up
    }
    return 0;
  }

  static int frame_not_sent(nghttp2_session* s, const nghttp2_frame* f, int, void* self) noexcept {
    if (f->hd.type != NGHTTP2_HEADERS) return 0;
    return stream_closed(s, f->hd.stream_id, NGHTTP2_REFUSED_STREAM, self);
  }

  static ssize_t body(nghttp2_session*, std::int32_t, std::uint8_t* into, std::size_t most, std::uint32_t* flags,
                      nghttp2_data_source* source, void*) noexcept {
    auto& x = *static_cast<h2_call*>(source->ptr);
    const std::size_t n = std::min(most, x.body.size() - x.sent);
    std::memcpy(into, x.body.data() + x.sent, n);
    x.sent += n;
    if (x.sent == x.body.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(n);
  }
};

// ---- the connection ------------------------------------------------------------------------------------------------

h2_client::h2_client(std::unique_ptr<wire> w, const client_options& o)
    : w_{std::move(w)},
      options_{o},
      session_{h2_side::client,
               this,
               &callbacks::set,
               {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
                {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, call_window},
                {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE,
                 static_cast<std::uint32_t>(std::min<std::size_t>(o.header_most, UINT32_MAX))}},
               client_window},  // K4
      last_used_{std::chrono::steady_clock::now()} {}

bool h2_client::is_usable(std::chrono::steady_clock::time_point now) noexcept {
  const std::lock_guard locked{lock_};
  return !broken_ && !leaving_ && (!calls_.empty() || now - last_used_ < options_.idle);
}

void h2_client::break_off() noexcept {
  w_->stream.close();
  const std::lock_guard locked{lock_};
  broken_ = true;
  for (const auto& [id, x] : calls_) x->changed.set();
}

std::int32_t h2_client::submit(const outgoing& what, const std::shared_ptr<h2_call>& x) {
  std::vector<nghttp2_nv> lines;
  const auto add = [&](std::string_view name, std::string_view value) { lines.push_back(h2_line(name, value)); };
  const std::string authority = what.to->authority(), size = std::to_string(x->body.size());
  add(":method", what.method);
  add(":scheme", what.to->scheme);
  add(":authority", authority);
  add(":path", what.to->target);
  for (const auto& [name, value] : what.fields) add(name, value);
  if (what.body) add("content-length", size);
  nghttp2_data_provider from{};
  from.source.ptr = x.get();
  from.read_callback = &callbacks::body;
  const std::lock_guard locked{lock_};
  if (broken_ || leaving_) throw not_begun{"HTTP/2 request", net::io_errc::closed, true};
  const std::int32_t id =
      nghttp2_submit_request(session_, nullptr, lines.data(), lines.size(), x->body.empty() ? nullptr : &from, nullptr);
  if (id < 0) {
    leaving_ = true;  // it has no more numbers
    throw not_begun{"HTTP/2 request", net::io_errc::closed, true};
  }
  last_used_ = std::chrono::steady_clock::now();
  calls_[id] = x;
  return id;
}

std::pair<std::int32_t, std::shared_ptr<h2_call>> h2_client::request(const outgoing& what) {
  auto x = std::make_shared<h2_call>();
  if (what.body) x->body = *what.body;
  const std::int32_t id = submit(what, x);
  try {
    try {
      flush();
    } catch (const net::io_error&) {
      // Broken: that is said by `wait`.
    }
    wait(*x, until::head);
  } catch (...) {
    give_up(id, *x);
    throw;
  }
  return {id, std::move(x)};
}

bool h2_client::is_due(const h2_call& x, until what) const {
  if (what == until::head && x.has_head) return true;
  if (what == until::data && (!x.in.empty() || x.ended)) return true;
  if (x.too_large) throw net::io_error{"HTTP response", net::io_errc::too_long};
  if (x.closed && x.code == NGHTTP2_REFUSED_STREAM && !x.has_head)
    throw not_begun{"HTTP/2 request", net::io_errc::closed, true};
  if (x.closed)
    throw net::io_error{"HTTP/2 response, reset for " + std::string{nghttp2_http2_strerror(x.code)},
                        net::io_errc::unexpected_end};
  if (broken_) {
    if (!x.has_head && x.head_size == 0) throw not_begun{"HTTP/2 request", net::io_errc::unexpected_end, false};
    throw net::io_error{"HTTP/2 response", net::io_errc::unexpected_end};
  }
  return false;
}

/// K2.
void h2_client::wait(h2_call& x, until what) {
  const auto deadline = std::chrono::steady_clock::now() + options_.response_time;
  try {
    for (;;) {
      {
        const std::lock_guard locked{lock_};
        if (is_due(x, what)) return;
      }
      bool reads = false;
      with_deadline(deadline, [&] { select(on_acquire(reading_, [&] { reads = true; }), on_ready(x.changed)); });
      if (!reads) continue;
      const released_at_end last{reading_};
      {
        const std::lock_guard locked{lock_};
        if (is_due(x, what)) return;
      }
      read_once(deadline);
    }
  } catch (const timeout_error&) {
    // A server that is silent gets no more requests here.
    const std::lock_guard locked{lock_};
    leaving_ = true;
    throw;
  }
}

void h2_client::read_once(std::chrono::steady_clock::time_point deadline) {
  try {
    bool is_over = w_->fill_until(deadline) == 0;
    {
      const std::lock_guard locked{lock_};
      const std::string_view in = w_->input();
      is_over |= nghttp2_session_mem_recv(session_, reinterpret_cast<const std::uint8_t*>(in.data()), in.size()) < 0;
      w_->consume(in.size());
    }
    flush();
    {
      const std::lock_guard locked{lock_};
      is_over |= nghttp2_session_want_read(session_) == 0 && nghttp2_session_want_write(session_) == 0;
    }
    if (is_over) break_off();
  } catch (const net::io_error&) {
    break_off();
  }
}

std::size_t h2_client::read(std::int32_t id, h2_call& x, std::span<std::byte> into) {
  if (into.empty()) return 0;
  wait(x, until::data);
  std::size_t n = 0;
  {
    const std::lock_guard locked{lock_};
    last_used_ = std::chrono::steady_clock::now();
    n = std::min(into.size(), x.in.size());
    std::memcpy(into.data(), x.in.data(), n);
    x.in.erase(0, n);
    if (n == 0 || broken_) return n;
    if (x.closed) nghttp2_session_consume_connection(session_, n);
    else nghttp2_session_consume(session_, id, n);
    if (nghttp2_session_want_write(session_) == 0) return n;
  }
  try {
    flush();
  } catch (const net::io_error&) {
    // The next read says so; these bytes are there.
  }
  return n;
}

void h2_client::give_up(std::int32_t id, h2_call& x) noexcept {
  const std::lock_guard locked{lock_};
  x.given_up = true;
  if (broken_) return;
  if (!x.in.empty()) nghttp2_session_consume_connection(session_, x.in.size());
  std::string{}.swap(x.in);
  if (!x.closed) nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
}

/// K3.
void h2_client::send_all() {
  for (;;) {
    {
      const std::lock_guard locked{lock_};
      session_.take_output(under_way_, sent_at_once);
      if (under_way_.empty()) {
        to_look_again_ = false;
        return;
      }
    }
    shield([&] { w_->write(under_way_); });
    under_way_.clear();
  }
}

void h2_client::flush() {
  {
    const std::lock_guard locked{lock_};
    to_look_again_ = true;
  }
  for (;;) {
    if (!sending_.try_acquire()) return;
    try {
      const released_at_end last{sending_};
      send_all();
    } catch (...) {
      break_off();  // half a frame may have been sent
      throw;
    }
    const std::lock_guard locked{lock_};
    if (!to_look_again_) return;
  }
}

// ---- one response --------------------------------------------------------------------------------------------------

namespace {

class h2_transfer final : public transfer {
 public:
  h2_transfer(std::shared_ptr<h2_client> over, std::int32_t id, std::shared_ptr<h2_call> x)
      : over_{std::move(over)}, id_{id}, x_{std::move(x)} {
    status = x_->status;  // the head does not change any more
    for (const auto& [name, value] : x_->lines) fields.push_back({name, value});
  }
  ~h2_transfer() override { over_->give_up(id_, *x_); }
  std::size_t read(std::span<std::byte> into) override { return over_->read(id_, *x_, into); }

 private:
  std::shared_ptr<h2_client> over_;
  std::int32_t id_;
  std::shared_ptr<h2_call> x_;
};

}  // namespace

std::unique_ptr<transfer> start_2(std::shared_ptr<h2_client> over, const outgoing& what) {
  auto [id, x] = over->request(what);
  return std::make_unique<h2_transfer>(std::move(over), id, std::move(x));
}

}  // namespace ramie::http
