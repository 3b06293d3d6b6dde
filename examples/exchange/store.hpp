// What the exchange keeps in PostgreSQL: all orders and trades.
#pragma once

#include "book.hpp"

#include <ramie/postgres.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace exchange {

/// What became of a request, as it is in the database.
struct receipt {
  order what;
  std::vector<trade> trades;  // that this order was a part of, so far
};

/// Changes that are written together.
struct round {
  struct fresh {
    order what;
    std::string key;  // the trader's own, by which it can ask again; "": none
  };
  std::vector<fresh> placed;
  std::vector<trade> made;
  std::map<std::int64_t, std::int64_t> touched;  // what is left of orders that were there
  std::vector<std::int64_t> withdrawn;

  [[nodiscard]] bool empty() const noexcept { return placed.empty() && withdrawn.empty(); }
};

struct recent_key {
  std::string trader, key;
  std::int64_t id;
};

class store {
 public:
  explicit store(ramie::postgres::pool& db) noexcept : db_{db} {}

  /// Makes the tables if they are not there.
  void prepare();
  /// All of it, or nothing; nothing when another engine has restored since this one. Throws what postgres::pool does:
  /// after a connection_error nobody knows which.
  void write(const round& r);

  [[nodiscard]] std::optional<receipt> find(std::int64_t id);
  [[nodiscard]] std::optional<receipt> find(const std::string& trader, const std::string& key);
  [[nodiscard]] std::vector<trade> last_trades(std::size_t n);  // the oldest first

  struct restored {
    std::vector<order> open;  // the oldest first
    std::vector<recent_key> keys;
    std::int64_t last_order = 0, last_trade = 0;
  };
  /// From here on the caller's is the one engine that writes (X5). Waits for a round of another that is under way.
  [[nodiscard]] restored restore(std::size_t keys_most);

  [[nodiscard]] ramie::postgres::pool_statistics statistics() const { return db_.statistics(); }

 private:
  ramie::postgres::pool& db_;
  std::int64_t epoch_ = 0;  // of the engine that writes
};

}  // namespace exchange
