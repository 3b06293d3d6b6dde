#include "wire.hpp"

#include <deque>

namespace ramie::redis {

struct connection::state {
  explicit state(const options& o) : replies{o.reply_most}, stream{connect(o, replies)}, write_time{o.write_time} {}

  parser replies;  // made before `stream`, which is connected through it
  net::any_stream stream;
  std::chrono::nanoseconds write_time;
  bool open = true;
  std::deque<message> messages;  // that came while something else was awaited

  void send(const std::string& bytes) {
    try {
      with_timeout(write_time, [&] { stream.write_all(bytes); });
    } catch (const net::io_error& e) {
      throw connection_error{e.what()};
    } catch (const timeout_error&) {
      throw connection_error{"the server takes nothing in the time that write_time allows"};
    }
  }
  /// True if it is a message, which is kept.
  bool keep(const reply& r) {
    if (r.is() != reply::kind::array || r.array().empty() || r.array()[0].is() != reply::kind::text) return false;
    const std::vector<reply>& a = r.array();
    if (a[0].text() == "message" && a.size() == 3) messages.push_back({a[1].text(), a[2].text()});
    else if (a[0].text() == "pmessage" && a.size() == 4) messages.push_back({a[2].text(), a[3].text(), a[1].text()});
    else return false;
    return true;
  }
  void close() noexcept {
    open = false;
    stream = {};
  }
  /// f(); what leaves it may leave a reply behind.
  template <class F>
  auto or_closed(F f) {
    if (!open) throw connection_error{"the connection is closed"};
    try {
      return f();
    } catch (...) {
      close();
      throw;
    }
  }
  void ask(const char* what, std::string_view name) {
    commands one;
    one.add(what, name);
    or_closed([&] {
      send(one.bytes());
      for (;;) {
        const reply r = read_reply(stream, replies);
        if (r.is() == reply::kind::error) throw command_error{r.error()};
        if (!keep(r)) return;  // the confirmation
      }
    });
  }
};

namespace {

template <class State>
State& here(const std::unique_ptr<State>& s) {
  if (!s) throw connection_error{"the connection is closed"};
  return *s;
}

}  // namespace

connection::connection() noexcept = default;
connection::connection(const options& o) : state_{std::make_unique<state>(o)} {}
connection::connection(connection&&) noexcept = default;
connection& connection::operator=(connection&&) noexcept = default;
connection::~connection() = default;

std::vector<reply> connection::run(const commands& all) {
  state& s = here(state_);
  return s.or_closed([&] {
    s.send(all.bytes());
    std::vector<reply> replies;
    while (replies.size() < all.size()) replies.push_back(read_reply(s.stream, s.replies));
    return replies;
  });
}

reply connection::single(std::vector<reply> one) {
  if (one[0].is() == reply::kind::error) throw command_error{one[0].error()};
  return std::move(one[0]);
}

void connection::subscribe(std::string_view channel) { here(state_).ask("SUBSCRIBE", channel); }
void connection::psubscribe(std::string_view pattern) { here(state_).ask("PSUBSCRIBE", pattern); }
void connection::unsubscribe(std::string_view channel) { here(state_).ask("UNSUBSCRIBE", channel); }
void connection::punsubscribe(std::string_view pattern) { here(state_).ask("PUNSUBSCRIBE", pattern); }

message connection::next_message() {
  state& s = here(state_);
  if (!s.open) throw connection_error{"the connection is closed"};
  try {
    while (s.messages.empty()) s.keep(read_reply(s.stream, s.replies));
  } catch (const connection_error&) {
    s.close();
    throw;
  }
  message m = std::move(s.messages.front());
  s.messages.pop_front();
  return m;
}

bool connection::is_open() const noexcept { return state_ && state_->open; }
void connection::close() noexcept {
  if (state_) state_->close();
}

}  // namespace ramie::redis
