// The actors: one engine, which owns the book, and an actor for each order that waits.
//
//  X1 The engine takes requests in rounds: the first, and those that have come meanwhile. It matches them in its book,
//     writes the round in one transaction, and only then answers, tells the orders, and publishes. While it writes, the
//     next round gathers.
//  X2 If the write fails, the book is ahead of the database, and it may be unknown what the database has. So the engine
//     fails: whoever waits for this round gets an error that says so, and the supervisor starts an engine that reads
//     the book from the database. Requests that were not taken wait for it.
//  X3 Who does not know what became of an order sends it again with the same key, and gets the receipt of the first:
//     from the database, or from the engine's recent keys, or, if both are too slow, by the database's refusal of a key
//     that is there, which is X2 again.
//  X4 An order's actor holds what the database has of it, answers for it, tells its trader of fills, and asks the engine
//     to withdraw it when its time is over. One that is restarted reads the database.
//  X5 The database may still work at a round of an engine that has gone, killed or cut off, when the next one reads the
//     book, which would then be older than that round. So an engine takes the next epoch before it reads, and each
//     round begins by a look, in its transaction, that locks the epoch's row and fails if it is not the engine's own.
//     What is under way is thus waited for, and what comes later is refused.
#pragma once

#include "feed.hpp"
#include "store.hpp"

#include <ramie/ramie.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace exchange {

struct place {
  order what;
  std::string key;
};
struct withdraw {
  std::int64_t id;
  std::string trader;
};
struct expire {
  std::int64_t id;
};
/// What `withdraw` is answered with if it cannot be.
class not_open : public ramie::error {
 public:
  not_open() : error{"there is no such open order of this trader"} {}
};

using place_request = ramie::request<place, receipt>;
using withdraw_request = ramie::request<withdraw, receipt>;
using engine_box = ramie::mailbox<place_request, withdraw_request, expire>;

struct services;

/// X4.
class order_actor : public ramie::actor<order_actor> {
 public:
  struct fill {
    trade what;
  };
  struct is_now {  // as the database has it
    order what;
  };
  struct reload {};
  struct get {};

  /// `first` is true the first time.
  order_actor(services* all, const order& o, const std::shared_ptr<bool>& first);
  void on(const fill& f);
  void on(const is_now& i);
  void on(reload);
  void on(expire e);
  order on(get) { return order_; }

 private:
  void look_at_it();
  services* all_;
  order order_;
};

/// The actors of open orders, by number.
class desk {
 public:
  void add(services& all, const order& o);
  [[nodiscard]] ramie::actor_ref<order_actor> find(std::int64_t id) const;
  void remove(std::int64_t id);
  [[nodiscard]] std::vector<std::int64_t> ids() const;
  ramie::pool_ref<order_actor> pool;

 private:
  mutable ramie::mutex lock_;
  std::unordered_map<std::int64_t, ramie::actor_ref<order_actor>> all_;
};

struct counters {
  std::atomic<std::uint64_t> orders{0}, trades{0}, withdrawn{0}, refused{0}, rounds{0}, starts{0}, write_us{0};
};

struct services {
  explicit services(ramie::postgres::pool& db) : data{db} {}
  store data;
  feed news;
  desk orders;
  counters count;
  ramie::event ready;  // an engine has read the book
  ramie::actor_ref<engine_box> engine;
};

/// The engine's function, until it is stopped.
void run_engine(services& all, engine_box& box);

}  // namespace exchange
