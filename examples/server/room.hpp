// Everybody hears what anybody says.
#pragma once

#include <ramie/net.hpp>
#include <ramie/ramie.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

namespace net = ramie::net;

/// A text that several connections send.
using shared_text = std::shared_ptr<const std::string>;

class room {
 public:
  /// A connection in the room, from now on until it leaves or ends. `backlog` lines wait here until they are sent.
  class member {
   public:
    member(room& r, net::tcp_stream& connection, std::size_t backlog)
        : room_{&r}, connection_{&connection}, lines_{backlog} {
      const std::lock_guard guard{room_->lock_};
      room_->members_.insert(this);
    }
    member(const member&) = delete;
    member& operator=(const member&) = delete;
    ~member() { leave(); }

    void leave() {
      const std::lock_guard guard{room_->lock_};
      room_->members_.erase(this);
      lines_.close();
    }

    /// Sends what is said in the room, until the member has left. Throws io_error.
    void send_lines() {
      while (std::optional<shared_text> line = lines_.recv()) connection_->write_all(**line);
    }

   private:
    friend room;
    room* room_;
    net::tcp_stream* connection_;
    ramie::channel<shared_text> lines_;
  };

  /// Waits for nobody: a member that has not taken its last lines is cut off.
  void say(std::string text) {
    const auto line = std::make_shared<const std::string>(std::move(text));
    const std::lock_guard guard{lock_};
    for (member* m : members_)
      if (m->lines_.try_send(line) == ramie::channel_status::full) m->connection_->close();
  }
  [[nodiscard]] std::size_t size() {
    const std::lock_guard guard{lock_};
    return members_.size();
  }

 private:
  ramie::mutex lock_;
  std::unordered_set<member*> members_;
};
