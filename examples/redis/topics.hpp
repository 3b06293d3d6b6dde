// PUBLISH and SUBSCRIBE.
#pragma once

#include "protocol.hpp"

#include <ramie/ramie.hpp>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <string>
#include <string_view>

namespace redis {

/// As it goes over the wire: encoded once, for all subscribers.
using message = std::shared_ptr<const std::string>;

/// A connection that listens. Messages wait in its inbox; a publisher never waits for it.
struct subscriber {
  static constexpr std::size_t messages_most = 1024;
  ramie::channel<message> inbox{messages_most};
  std::function<void()> on_overflow;  // called from any fiber; must not wait
};

/// Any fiber may call anything at any time.
class topics {
 public:
  void add(const std::string& topic, subscriber& who) {
    const std::lock_guard guard{lock_};
    subscribers_[topic].insert(&who);
  }
  void remove(const std::string& topic, subscriber& who) {
    const std::lock_guard guard{lock_};
    const auto at = subscribers_.find(topic);
    if (at != subscribers_.end() && at->second.erase(&who) != 0 && at->second.empty()) subscribers_.erase(at);
  }
  /// Returns how many get it.
  std::size_t publish(const std::string& topic, std::string_view text) {
    const std::shared_lock guard{lock_};
    const auto at = subscribers_.find(topic);
    if (at == subscribers_.end()) return 0;
    const message m = encoded(topic, text);
    std::size_t reached = 0;
    for (subscriber* s : at->second) {
      if (s->inbox.try_send(m) == ramie::channel_status::ok) ++reached;
      else s->on_overflow();
    }
    return reached;
  }

 private:
  struct text_out {
    std::string text;
    void write(std::string_view more) { text += more; }
  };
  static message encoded(std::string_view topic, std::string_view text) {
    text_out out;
    reply_writer reply{out};
    reply.array(3);
    reply.string("message");
    reply.string(topic);
    reply.string(text);
    return std::make_shared<const std::string>(std::move(out.text));
  }

  ramie::shared_mutex lock_;
  std::map<std::string, std::set<subscriber*>, std::less<>> subscribers_;
};

}  // namespace redis
