// What listeners of the WebSocket get: the book and the tape as they are now, and what concerns their own orders.
//
// Nothing is queued for a listener but that. There is one state of the market, with a number that counts its changes; a
// listener that is ready for more takes the latest state, and the trades since its last one. So one that is slow gets
// fewer states, and holds up nobody.
#pragma once

#include "store.hpp"

#include <ramie/ramie.hpp>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace exchange {

[[nodiscard]] std::string to_json(const trade& t);
[[nodiscard]] std::string to_json(const order& o);
[[nodiscard]] std::string to_json(const receipt& r);

class feed {
 public:
  /// One listener. `trader`: also what concerns the orders of this one; "": of nobody.
  class listener {
   public:
    listener(feed& of, std::string trader);
    listener(const listener&) = delete;
    listener& operator=(const listener&) = delete;
    ~listener();
    /// What is new, as JSON: {"book": ..., "trades": [...], "own": [...]}. Suspends until there is something, and at
    /// least for a while after the last. nullopt once it is over.
    [[nodiscard]] std::optional<std::string> next();
    void close();

   private:
    friend class feed;
    feed& of_;
    const std::string trader_;
    std::uint64_t seen_ = 0;        // the number of the state
    std::int64_t last_trade_ = -1;  // -1: none, so it gets the last ones
    std::deque<std::string> own_;
    bool closed_ = false;
  };

  void publish(const depth& d, const std::vector<trade>& fresh);
  /// Tells the listeners of this trader.
  void tell(const std::string& trader, const std::string& json);
  /// Ends all listeners.
  void close();
  [[nodiscard]] std::size_t listeners() const;
  [[nodiscard]] std::string book() const;
  [[nodiscard]] std::vector<trade> tape() const;

 private:
  mutable ramie::mutex lock_;
  ramie::condition_variable news_;
  std::uint64_t number_ = 0;
  std::string book_ = R"({"bids":[],"asks":[]})";
  std::deque<trade> tape_;
  std::multimap<std::string, listener*> all_;
  bool closed_ = false;
};

}  // namespace exchange
