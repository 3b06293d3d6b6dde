#include "server/h2.hpp"

#include "wire/text.hpp"

#include <ramie/channel.hpp>
#include <ramie/http/websocket.hpp>

#include <array>
#include <cstring>
#include <utility>

namespace ramie::http {

namespace {

constexpr std::size_t out_most = 64 * 1024;      // bytes of a stream that wait for the client; a guess
constexpr std::int32_t window = 64 * 1024;       // of a request's body, bytes; a guess
constexpr std::int32_t window_of_all = 1 << 20;  // of all of a connection's; a guess
constexpr std::int64_t resets_most = 200;        // S2; a guess

[[noreturn]] void gone() { throw net::io_error{"HTTP/2 stream", net::io_errc::closed}; }

}  // namespace

// ---- one stream ----------------------------------------------------------------------------------------------------

h2_exchange::h2_exchange(h2_connection& of, std::int32_t id) : exchange{of.c_.core.limits}, c_{of}, id_{id} {}

/// From the lines of the head. False: `refused_` says with what.
bool h2_exchange::make_request() {
  std::string_view method, path, authority, host;
  bool agree = true;  // RFC 9113, 8.3.1
  fields().clear();
  std::optional<std::uint64_t> length;
  for (const auto& [name, value] : lines_) {
    if (name == ":method") method = value;
    else if (name == ":path") path = value;
    else if (name == ":authority") authority = value;
    else if (!name.starts_with(':')) fields().push_back({name, value});
    if (name == "host") agree &= std::exchange(host, value).empty();
    if (name == "content-length") length = parse_number(value);
  }
  if (authority.empty()) authority = host;
  else agree &= host.empty() || same_name(host, authority);
  if (refused_ == 0 && path.size() > limits.target_most) refused_ = 414;
  const bool is_path = path.starts_with('/') || (path == "*" && method == "OPTIONS");
  if (refused_ == 0 && (!agree || !is_path || path.find('#') != std::string_view::npos || !is_authority(authority)))
    refused_ = 400;
  fresh(method, path, authority, 20, c_.c_.encrypted);
  set_length(length);
  is_head_ = method == "HEAD";
  return refused_ == 0;
}

std::size_t h2_exchange::read_body(std::span<std::byte> into) {
  if (into.empty()) return 0;
  this_fiber::throw_if_stopped();
  for (;;) {
    {
      const std::lock_guard locked{c_.lock_};
      if (!in_.empty()) {
        const std::size_t n = std::min(into.size(), in_.size());
        std::memcpy(into.data(), in_.data(), n);
        in_.erase(0, n);
        nghttp2_session_consume(c_.session_, id_, n);
        if (nghttp2_session_want_write(c_.session_) == 0) return n;
        into = into.first(n);
        break;
      }
      if (request_ended_) return 0;
      if (closed_) gone();
    }
    bool came = false;
    await_part([&](std::chrono::nanoseconds time) { came = arrived_.wait_for(time); });
    if (!came) throw status_error{408, "the body did not come in time"};
  }
  c_.flush();
  return into.size();
}

void h2_exchange::send_head(int status, std::string_view fields, std::optional<std::uint64_t> length,
                            std::string_view body) {
  const std::string code = std::to_string(status), date{date_now()}, size = length ? std::to_string(*length) : "";
  std::vector<nghttp2_nv> lines;
  const auto add = [&](std::string_view name, std::string_view value) { lines.push_back(h2_line(name, value)); };
  add(":status", code);
  add("date", date);
  while (!fields.empty()) {
    const std::size_t colon = fields.find(": "), end = fields.find("\r\n");
    add(fields.substr(0, colon), fields.substr(colon + 2, end - colon - 2));
    fields.remove_prefix(end + 2);
  }
  const bool has_none = status == 204 || status == 304;
  if (length && !has_none) add("content-length", size);
  const bool no_body = has_none || is_head_ || length == 0u;
  {
    const std::lock_guard locked{c_.lock_};
    if (closed_) gone();
    response_ended_ = no_body;
    is_bodiless_ = no_body && !length;
    if (length) left_ = length;
    nghttp2_data_provider from{};
    from.source.ptr = this;
    from.read_callback = [](nghttp2_session*, std::int32_t, std::uint8_t* into, std::size_t most, std::uint32_t* flags,
                            nghttp2_data_source* source, void*) -> ssize_t {
      auto& x = *static_cast<h2_exchange*>(source->ptr);
      const std::size_t n = std::min(most, x.out_.size() - x.out_at_);
      if (n == 0 && !x.response_ended_) return NGHTTP2_ERR_DEFERRED;
      std::memcpy(into, x.out_.data() + x.out_at_, n);
      x.out_at_ += n;
      if (x.out_at_ == x.out_.size()) {
        x.out_.clear();
        x.out_at_ = 0;
        if (x.response_ended_) *flags |= NGHTTP2_DATA_FLAG_EOF;
      }
      if (x.out_.size() - x.out_at_ < out_most) x.drained_.set();
      return static_cast<ssize_t>(n);
    };
    if (!no_body && length == body.size() && body.size() < out_most) {  // all at once
      out_ = body;
      note_sent(body.size());
      response_ended_ = true;
      body = {};
    }
    note_head(status);
    if (nghttp2_submit_response(c_.session_, id_, lines.data(), lines.size(), no_body ? nullptr : &from) != 0) gone();
  }
  if (no_body || body.empty()) c_.flush();
  else queue_part(std::as_bytes(std::span{body}));
}

void h2_exchange::send_part(std::span<const std::byte> part) {
  this_fiber::throw_if_stopped();
  queue_part(part);
}

/// Half of a part is not to be followed by anything.
void h2_exchange::queue_part(std::span<const std::byte> part) {
  const std::size_t all = part.size();
  try {
    queue_pieces(part);
  } catch (...) {
    if (part.size() != all) c_.reset(*this, NGHTTP2_INTERNAL_ERROR);
    throw;
  }
}

/// S4. Removes from `part` what it has taken.
void h2_exchange::queue_pieces(std::span<const std::byte>& part) {
  do {
    bool full = false;
    {
      const std::lock_guard locked{c_.lock_};
      if (closed_) gone();
      if (response_ended_) return;  // of a HEAD
      full = out_.size() - out_at_ >= out_most;
      if (!full) {
        const auto piece = part.first(std::min(part.size(), out_most));
        if (out_at_ > out_most) out_.erase(0, std::exchange(out_at_, 0));
        out_.append(reinterpret_cast<const char*>(piece.data()), piece.size());
        part = part.subspan(piece.size());
        note_sent(piece.size());
        if (left_) response_ended_ = (*left_ -= std::min<std::uint64_t>(*left_, piece.size())) == 0;
        nghttp2_session_resume_data(c_.session_, id_);
      }
    }
    c_.flush();
    if (full && !drained_.wait_for(limits.write_time)) {
      const std::lock_guard locked{c_.lock_};
      unread_ = true;
      throw timeout_error{"ramie: http: the client does not read"};
    }
  } while (!part.empty());
}

void h2_exchange::send_end() {
  {
    const std::lock_guard locked{c_.lock_};
    if (closed_) gone();
    if (response_ended_) return;
    response_ended_ = true;
    nghttp2_session_resume_data(c_.session_, id_);
  }
  c_.flush();
}

void h2_exchange::become_websocket(const std::function<void(request&, websocket&)>&) {
  throw status_error{400, "a WebSocket needs HTTP/1.1 here"};
}

// ---- what nghttp2 calls, under the lock ----------------------------------------------------------------------------

struct h2_connection::callbacks {
  static void set(nghttp2_session_callbacks* calls) noexcept {
    nghttp2_session_callbacks_set_on_begin_frame_callback(calls, &begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(calls, &begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(calls, &header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(calls, &frame_received);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, &data);
    nghttp2_session_callbacks_set_on_frame_send_callback(calls, &frame_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(calls, &stream_closed);
  }
  static h2_connection& of(void* c) noexcept { return *static_cast<h2_connection*>(c); }
  static h2_exchange* stream(nghttp2_session* s, std::int32_t id) noexcept {
    return static_cast<h2_exchange*>(nghttp2_session_get_stream_user_data(s, id));
  }

  /// Of a client, for which nghttp2 resets a stream.
  static bool is_fault(std::uint32_t code) noexcept {
    return code == NGHTTP2_PROTOCOL_ERROR || code == NGHTTP2_FLOW_CONTROL_ERROR || code == NGHTTP2_STREAM_CLOSED ||
           code == NGHTTP2_FRAME_SIZE_ERROR;
  }

  /// nghttp2 ignores a head with a number below an earlier one, since the stream may have been reset a moment before.
  /// One that the client has skipped was never there (RFC 9113, 5.1.1).
  static int begin_frame(nghttp2_session* s, const nghttp2_frame_hd* f, void* self) noexcept {
    h2_connection& c = of(self);
    if (f->type != NGHTTP2_HEADERS || f->stream_id % 2 == 0) return 0;
    if (f->stream_id > c.newest_) {
      if (f->stream_id != c.newest_ + 2) c.skipped_ = {c.newest_ + 2, f->stream_id};
      c.newest_ = f->stream_id;
    } else if (f->stream_id >= c.skipped_.first && f->stream_id < c.skipped_.second) {
      nghttp2_session_terminate_session(s, NGHTTP2_PROTOCOL_ERROR);
    }
    return 0;
  }

  static int begin_headers(nghttp2_session* s, const nghttp2_frame* f, void* self) noexcept {
    h2_connection& c = of(self);
    c.head_deadline_ = std::chrono::steady_clock::now() + c.c_.core.limits.header_time;
    if (f->hd.type != NGHTTP2_HEADERS || f->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    try {
      auto made = std::make_unique<h2_exchange>(c, f->hd.stream_id);
      nghttp2_session_set_stream_user_data(s, f->hd.stream_id, made.get());
      c.streams_[f->hd.stream_id] = std::move(made);
      c.c_.end_rest();
      return 0;
    } catch (const std::bad_alloc&) {
      return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
  }

  static int header(nghttp2_session* s, const nghttp2_frame* f, const std::uint8_t* name, std::size_t name_size,
                    const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* self) noexcept {
    h2_exchange* x = stream(s, f->hd.stream_id);
    if (x == nullptr || f->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;  // trailers
    const server_limits& limits = of(self).c_.core.limits;
    x->head_size_ += name_size + value_size + 32;  // as RFC 9113, 6.5.2 counts
    if (x->lines_.size() >= limits.headers_most || x->head_size_ > limits.header_most) {
      x->refused_ = 431;
      return 0;
    }
    try {
      x->lines_.emplace_back(std::string{reinterpret_cast<const char*>(name), name_size},
                             std::string{reinterpret_cast<const char*>(value), value_size});
      return 0;
    } catch (const std::bad_alloc&) {
      return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
  }

  static int frame_received(nghttp2_session* s, const nghttp2_frame* f, void* self) noexcept {
    h2_connection& c = of(self);
    if (f->hd.type == NGHTTP2_RST_STREAM) ++c.resets_;
    if (f->hd.type != NGHTTP2_HEADERS && f->hd.type != NGHTTP2_DATA) return 0;
    if (f->hd.type == NGHTTP2_HEADERS) c.head_deadline_.reset();
    h2_exchange* x = stream(s, f->hd.stream_id);
    if (x == nullptr) return 0;
    if ((f->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
      x->request_ended_ = true;
      x->arrived_.set();
    }
    if (f->hd.type == NGHTTP2_HEADERS && f->headers.cat == NGHTTP2_HCAT_REQUEST) {
      try {
        c.ready_.push_back(x);
      } catch (const std::bad_alloc&) {
        return NGHTTP2_ERR_CALLBACK_FAILURE;
      }
    }
    return 0;
  }

  static int data(nghttp2_session* s, std::uint8_t, std::int32_t id, const std::uint8_t* bytes, std::size_t n,
                  void*) noexcept {
    h2_exchange* x = stream(s, id);
    if (x == nullptr || x->response_ended_) {
      nghttp2_session_consume(s, id, n);  // nobody reads it any more
      return 0;
    }
    try {
      x->in_.append(reinterpret_cast<const char*>(bytes), n);
    } catch (const std::bad_alloc&) {
      return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    x->arrived_.set();
    return 0;
  }

  static int frame_sent(nghttp2_session* s, const nghttp2_frame* f, void* self) noexcept {
    // A client that makes nghttp2 reset its streams has reset them itself, in effect.
    if (f->hd.type == NGHTTP2_RST_STREAM && is_fault(f->rst_stream.error_code)) ++of(self).resets_;
    if ((f->hd.type != NGHTTP2_DATA && f->hd.type != NGHTTP2_HEADERS) || (f->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0)
      return 0;
    h2_connection& c = of(self);
    c.resets_ = std::max<std::int64_t>(0, c.resets_ - 1);
    // A body that the handler did not read is not wanted (RFC 9113, 8.1).
    const h2_exchange* x = stream(s, f->hd.stream_id);
    if (x != nullptr && !x->request_ended_)
      nghttp2_submit_rst_stream(s, NGHTTP2_FLAG_NONE, f->hd.stream_id, NGHTTP2_NO_ERROR);
    return 0;
  }

  static int stream_closed(nghttp2_session* s, std::int32_t id, std::uint32_t, void* self) noexcept {
    h2_exchange* x = stream(s, id);
    if (x == nullptr) return 0;
    nghttp2_session_set_stream_user_data(s, id, nullptr);
    x->closed_ = true;
    // The client does not want it any more.
    if (!x->response_ended_ || x->is_bodiless_) x->life_.cancel();
    // What nobody will read counts against the connection's window no more.
    if (!x->in_.empty()) nghttp2_session_consume_connection(s, x->in_.size());
    x->in_.clear();
    x->arrived_.set();
    x->drained_.set();
    h2_connection& c = of(self);
    std::erase(c.ready_, x);
    c.forget(*x);
    return 0;
  }
};

// ---- the connection ------------------------------------------------------------------------------------------------

h2_connection::h2_connection(connection& c)
    : c_{c},
      session_{h2_side::server,
               this,
               &callbacks::set,
               {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, c.core.limits.streams_most},
                {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window},
                {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, static_cast<std::uint32_t>(c.core.limits.header_most)}},
               window_of_all} {}

h2_connection::~h2_connection() { c_.on_rest = nullptr; }

/// Nothing has come for a while.
void h2_connection::rest() {
  if (!sending_.try_acquire()) return;
  if (under_way_.empty()) std::string{}.swap(under_way_);
  sending_.release();
  flush();  // for those who have found no permit meanwhile (S3)
}

void h2_connection::forget(h2_exchange& x) {
  if (x.closed_ && !x.running_) streams_.erase(x.id_);
}

void h2_connection::send_all() {
  for (;;) {
    {
      const std::lock_guard locked{lock_};
      session_.take_output(under_way_, out_most);
      if (under_way_.empty() && !owes_) {
        to_look_again_ = false;
        return;
      }
    }
    owes_ = true;
    std::size_t written = 0;
    try {
      c_.write(under_way_, {}, &written);
    } catch (const cancelled&) {
      under_way_.erase(0, written);  // S3
      throw;
    }
    under_way_.clear();
    owes_ = false;
  }
}

void h2_connection::flush_all() {
  {
    const std::lock_guard locked{lock_};
    to_look_again_ = true;
  }
  for (;;) {
    if (!sending_.try_acquire()) return;
    {
      const released_at_end last{sending_};
      try {
        send_all();
      } catch (const cancelled&) {
        throw;
      } catch (...) {
        c_.stream.close();  // S3
        throw;
      }
    }
    const std::lock_guard locked{lock_};
    if (!to_look_again_) break;
  }
  end_if_drained();
}

/// Of what was changed before, so it is not undone by `cancelled`: the caller's next wait throws it.
void h2_connection::flush() {
  try {
    flush_all();
  } catch (const cancelled&) {
    fibers_->spawn([this] {
      try {
        flush_all();
      } catch (const error&) {
        // The connection is over.
      }
    });
  }
}

void h2_connection::end_if_drained() {
  bool over;
  {
    const std::lock_guard locked{lock_};
    const bool drained = streams_.empty() && !to_look_again_;
    over = drained && leaving_;
    if (drained && newest_ > 0) c_.begin_rest();
  }
  if (over) c_.stream.close();
}

void h2_connection::say_good_bye() {
  {
    const std::lock_guard locked{lock_};
    leaving_ = true;
    nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(session_),
                          NGHTTP2_NO_ERROR, nullptr, 0);
  }
  flush();
}

void h2_connection::reset(h2_exchange& x, std::uint32_t code) {
  {
    const std::lock_guard locked{lock_};
    if (!x.closed_) nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, x.id_, code);
  }
  flush();
}

/// The handler has made no more of it than a part.
bool h2_exchange::is_unfinished() const {
  const std::lock_guard locked{c_.lock_};
  return !response_ended_ && !closed_;
}

bool h2_exchange::is_whole() const noexcept {
  const std::lock_guard locked{c_.lock_};
  return response_ended_ && !(closed_ && out_at_ != out_.size()) && !c_.c_.is_broken();
}

bool h2_exchange::is_over() const noexcept {
  const std::lock_guard locked{c_.lock_};
  return (closed_ && (!response_ended_ || is_bodiless_)) || unread_ || c_.c_.is_broken();
}

void h2_connection::handle(h2_exchange& x) {
  try {
    if (x.make_request()) {
      x.life_.run([&] { c_.core.handle(x); });
      if (x.is_unfinished()) reset(x, NGHTTP2_INTERNAL_ERROR);
    } else {
      c_.core.refused.fetch_add(1, std::memory_order_relaxed);
      const std::string text = std::string{reason_of(x.refused_)} + "\n";
      x.send_head(x.refused_, "content-type: text/plain; charset=utf-8\r\n", text.size(), text);
    }
  } catch (...) {
    try {
      if (x.is_unfinished()) reset(x, NGHTTP2_INTERNAL_ERROR);
    } catch (const net::io_error&) {
      // The connection is over.
    } catch (const timeout_error&) {
    }
    this_fiber::throw_if_stopped();
  }
}

/// One fiber for each.
void h2_connection::start(scope& fibers, std::vector<h2_exchange*>& all) {
  for (h2_exchange* x : all)
    fibers.spawn([this, x] {
      h2_exchange* now = x;
      try {
        while (now != nullptr) {
          handle(*now);
          now = next_after(*now);
          end_if_drained();
        }
      } catch (...) {
        const std::lock_guard locked{lock_};
        --running_;
        now->running_ = false;
        forget(*now);
        throw;
      }
    });
  all.clear();
}

/// S2. Of one that has been handled; null if no other waits.
h2_exchange* h2_connection::next_after(h2_exchange& x) {
  const std::lock_guard locked{lock_};
  x.running_ = false;
  forget(x);
  if (ready_.empty()) {
    --running_;
    return nullptr;
  }
  h2_exchange* const next = ready_.front();
  ready_.pop_front();
  next->running_ = true;
  return next;
}

void h2_connection::run() {
  if (!c_.begin_request()) return;  // from now on it ends by say_good_bye
  c_.on_rest = [this] { rest(); };
  scope fibers;
  fibers_ = &fibers;
  fibers.spawn([this] {
    select(on_ready(c_.core.stopped), on_ready(c_.leaves));
    try {
      say_good_bye();
    } catch (const error&) {
      // The connection is over.
    }
  });
  try {
    flush();
    std::vector<h2_exchange*> ready;
    for (;;) {
      bool over = false;
      {
        const std::lock_guard locked{lock_};
        const std::string_view in = c_.input();
        const ssize_t n =
            nghttp2_session_mem_recv(session_, reinterpret_cast<const std::uint8_t*>(in.data()), in.size());
        over = n < 0;
        c_.consume(in.size());
        if (resets_ > resets_most) nghttp2_session_terminate_session(session_, NGHTTP2_ENHANCE_YOUR_CALM);
        for (; !ready_.empty() && running_ < c_.core.limits.streams_most; ++running_) {
          ready.push_back(ready_.front());
          ready_.pop_front();
          ready.back()->running_ = true;
        }
      }
      if (!ready.empty()) c_.is_used();
      start(fibers, ready);
      flush();
      {
        const std::lock_guard locked{lock_};
        over |= nghttp2_session_want_read(session_) == 0 && nghttp2_session_want_write(session_) == 0;
      }
      if (over) break;
      read();
      if (c_.input().empty()) break;
    }
  } catch (const std::exception&) {
    fibers.cancel();
    fibers.join();
    throw;
  }
  fibers.cancel();
  fibers.join();
}

/// Waits for more, or says good bye if nothing comes.
void h2_connection::read() {
  for (;;) {
    auto deadline = std::chrono::steady_clock::now() + c_.core.limits.idle;
    {
      const std::lock_guard locked{lock_};
      if (head_deadline_) deadline = std::min(deadline, *head_deadline_);
    }
    try {
      c_.fill_until(deadline);
      return;
    } catch (const timeout_error&) {
      {
        const std::lock_guard locked{lock_};
        if (running_ != 0 && !head_deadline_) continue;
        nghttp2_session_terminate_session(session_, NGHTTP2_NO_ERROR);
      }
      flush();
      return;
    }
  }
}

void serve_2(connection& c) { h2_connection{c}.run(); }

}  // namespace ramie::http
