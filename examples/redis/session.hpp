// One connection: the commands.
#pragma once

#include "protocol.hpp"
#include "store.hpp"
#include "topics.hpp"

#include <ramie/net.hpp>
#include <ramie/ramie.hpp>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace redis {

struct database {
  store keys;
  topics channels;
};

/// Belongs to one fiber, which does all of its reading and writing, and so needs no lock.
class session {
 public:
  session(net::tcp_stream connection, database& db) : connection_{std::move(connection)}, db_{&db} {
    listener_.on_overflow = [this] { connection_.close(); };  // too slow: it would have missed messages
  }
  session(const session&) = delete;
  session& operator=(const session&) = delete;
  ~session() {
    for (const std::string& topic : subscribed_) db_->channels.remove(topic, listener_);
  }

  /// Serves the client until it leaves. Throws io_error if it vanishes.
  void run() {
    try {
      while (!quit_ && requests_.next(words_)) obey();
    } catch (const protocol_error& e) {
      reply_.error(std::string{"ERR Protocol error: "} + e.what());
    }
    out_.flush();
  }

  /// Where requests come from. Replies collect until there is nothing more to do: a client that sends a hundred
  /// requests at once gets a hundred replies at once. While it waits for requests, a subscriber gets its messages.
  std::size_t read_some(std::span<std::byte> into) {
    out_.flush();
    for (bool readable = subscribed_.empty(); !readable;)
      ramie::select(net::on_readable(connection_, [&] { readable = true; }),
                    ramie::on_recv(listener_.inbox, [&](std::optional<message> m) { deliver(std::move(m)); }));
    return connection_.read_some(into);
  }

 private:
  struct command {
    std::string_view name;
    std::size_t words_least, words_most;
    void (session::*run)();
    bool while_subscribed = false;
  };
  static constexpr std::size_t any = request_reader<session>::words_most;
  static std::span<const command> commands() {
    static constexpr command all[] = {
        {"GET", 2, 2, &session::get},
        {"SET", 3, 5, &session::set},
        {"INCR", 2, 2, &session::incr},
        {"DEL", 2, any, &session::del},
        {"EXPIRE", 3, 3, &session::expire},
        {"TTL", 2, 2, &session::ttl},
        {"PUBLISH", 3, 3, &session::publish},
        {"SUBSCRIBE", 2, any, &session::subscribe, true},
        {"UNSUBSCRIBE", 1, any, &session::unsubscribe, true},
        {"PING", 1, 2, &session::ping, true},
        {"ECHO", 2, 2, &session::echo},
        {"QUIT", 1, 1, &session::quit, true},
        {"COMMAND", 1, any, &session::command_docs},
        {"CONFIG", 3, 3, &session::config_get},
    };
    return all;
  }

  void obey() {
    std::string& name = words_[0];
    for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    const auto all = commands();
    const auto c = std::ranges::find(all, name, &command::name);
    if (c == all.end()) reply_.error("ERR unknown command '" + name.substr(0, 128) + "'");
    else if (words_.size() < c->words_least || words_.size() > c->words_most)
      reply_.error("ERR wrong number of arguments for '" + name + "' command");
    else if (!subscribed_.empty() && !c->while_subscribed)
      reply_.error("ERR Can't execute '" + name + "': only SUBSCRIBE / UNSUBSCRIBE / PING / QUIT are allowed here");
    else (this->*c->run)();
  }

  void get() {
    if (db_->keys.get(words_[1], value_)) reply_.string(value_);
    else reply_.nothing();
  }
  void set() {
    auto expires = store::never;
    if (words_.size() > 3) {
      const std::optional<std::int64_t> n = words_.size() == 5 ? to_number(words_[4]) : std::nullopt;
      const bool in_s = words_[3] == "EX" || words_[3] == "ex", in_ms = words_[3] == "PX" || words_[3] == "px";
      if (!in_s && !in_ms) return reply_.error("ERR syntax error");
      if (!n || *n <= 0) return reply_.error("ERR invalid expire time in 'set' command");
      expires = in_s ? after<std::chrono::seconds>(*n) : after<std::chrono::milliseconds>(*n);
    }
    db_->keys.set(words_[1], words_[2], expires);
    reply_.status("OK");
  }
  void incr() {
    if (const auto n = db_->keys.increment(words_[1])) reply_.number(*n);
    else reply_.error("ERR value is not an integer or out of range");
  }
  void del() {
    reply_.number(std::count_if(words_.begin() + 1, words_.end(), [this](auto& key) { return db_->keys.erase(key); }));
  }
  void expire() {
    const std::optional<std::int64_t> n = to_number(words_[2]);
    if (!n) return reply_.error("ERR value is not an integer or out of range");
    reply_.number(db_->keys.expire(words_[1], after<std::chrono::seconds>(*n)) ? 1 : 0);
  }
  void ttl() {
    const auto when = db_->keys.expiry(words_[1]);
    if (!when) return reply_.number(-2);
    if (*when == store::never) return reply_.number(-1);
    reply_.number(std::chrono::round<std::chrono::seconds>(*when - store::clock::now()).count());
  }

  void publish() { reply_.number(static_cast<std::int64_t>(db_->channels.publish(words_[1], words_[2]))); }
  void subscribe() {
    for (std::size_t i = 1; i < words_.size(); ++i) {
      if (subscribed_.insert(words_[i]).second) db_->channels.add(words_[i], listener_);
      confirm("subscribe", words_[i]);
    }
  }
  void unsubscribe() {
    if (words_.size() == 1) words_.insert(words_.end(), subscribed_.begin(), subscribed_.end());
    for (std::size_t i = 1; i < words_.size(); ++i) {
      if (subscribed_.erase(words_[i]) != 0) db_->channels.remove(words_[i], listener_);
      confirm("unsubscribe", words_[i]);
    }
    if (words_.size() == 1) confirm("unsubscribe", {});
  }
  void confirm(std::string_view what, std::optional<std::string_view> topic) {
    reply_.array(3);
    reply_.string(what);
    if (topic) reply_.string(*topic);
    else reply_.nothing();
    reply_.number(static_cast<std::int64_t>(subscribed_.size()));
  }
  void deliver(std::optional<message> m) {
    for (; m; m = listener_.inbox.try_recv()) out_.write(**m);
    out_.flush();
  }

  void ping() {
    if (!subscribed_.empty()) {
      reply_.array(2);
      reply_.string("pong");
      reply_.string(words_.size() == 2 ? words_[1] : "");
    } else if (words_.size() == 2) {
      reply_.string(words_[1]);
    } else {
      reply_.status("PONG");
    }
  }
  void echo() { reply_.string(words_[1]); }
  void quit() {
    reply_.status("OK");
    quit_ = true;
  }
  // What redis-cli and redis-benchmark ask before they begin. They go on without an answer.
  void command_docs() { reply_.array(0); }
  void config_get() {
    reply_.array(2);
    reply_.string(words_[2]);
    reply_.string("");
  }

  /// `n` units from now; a time in the past for negative ones, and `never` for what is too far to be a time.
  template <class Unit>
  static store::clock::time_point after(std::int64_t n) {
    const auto now = store::clock::now();
    if (n > std::chrono::duration_cast<Unit>(store::never - now).count() - 1) return store::never;
    return now + Unit{std::max<std::int64_t>(n, -1)};
  }

  net::tcp_stream connection_;
  database* db_;
  net::buffered_writer<net::tcp_stream> out_{connection_};
  reply_writer<net::buffered_writer<net::tcp_stream>> reply_{out_};
  request_reader<session> requests_{*this};
  std::vector<std::string> words_;
  std::string value_;
  std::set<std::string> subscribed_;
  subscriber listener_;
  bool quit_ = false;
};

}  // namespace redis
