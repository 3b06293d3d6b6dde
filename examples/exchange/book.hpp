// An order book: which orders wait, at which price. Plain C++: no fibers, no database.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace exchange {

enum class side : std::uint8_t { buy, sell };

struct order {
  std::int64_t id = 0;
  std::string trader{};
  side what = side::buy;
  std::int64_t price = 0;  // a buyer's highest, a seller's lowest
  std::int64_t quantity = 0, remaining = 0;
  bool withdrawn = false;
  std::int64_t expires_ms = 0;  // since 1970; 0: never

  [[nodiscard]] bool is_open() const noexcept { return remaining > 0 && !withdrawn; }
  [[nodiscard]] const char* state() const noexcept {
    return withdrawn ? "withdrawn" : remaining == 0 ? "filled" : "open";
  }
};

struct trade {
  std::int64_t id = 0;
  std::int64_t buy_order = 0, sell_order = 0;
  std::int64_t price = 0, quantity = 0;
  std::int64_t at_ms = 0;  // since 1970
  side taker = side::buy;  // of the order that came second
};

struct level {
  std::int64_t price, quantity;
};
struct depth {
  std::vector<level> bids, asks;  // the best first
};

class book {
 public:
  /// Trades with the best of the other side as long as prices allow, at the price of the order that was there first.
  /// What is left of `o` waits. The trades have no numbers and times yet; `touched` gets what is left of each order
  /// that was there.
  std::vector<trade> place(order& o, std::map<std::int64_t, std::int64_t>& touched) {
    std::vector<trade> made;
    levels& others = o.what == side::buy ? asks_ : bids_;
    while (o.remaining > 0 && !others.empty() && others.begin()->first <= limit_of(o)) {
      std::list<order>& queue = others.begin()->second;
      order& first = queue.front();
      const std::int64_t n = std::min(o.remaining, first.remaining);
      made.push_back({.buy_order = o.what == side::buy ? o.id : first.id,
                      .sell_order = o.what == side::buy ? first.id : o.id,
                      .price = first.price,
                      .quantity = n,
                      .taker = o.what});
      o.remaining -= n;
      first.remaining -= n;
      touched[first.id] = first.remaining;
      if (first.remaining > 0) continue;
      places_.erase(first.id);
      queue.pop_front();
      if (queue.empty()) others.erase(others.begin());
    }
    if (o.remaining > 0) add(o);
    return made;
  }

  /// Waits behind all others of its price.
  void add(const order& o) {
    levels& own = o.what == side::buy ? bids_ : asks_;
    const auto at = own.try_emplace(key_of(o)).first;
    at->second.push_back(o);
    places_[o.id] = {at, std::prev(at->second.end())};
  }

  /// The order, which waits no more; nullopt if it does not.
  std::optional<order> withdraw(std::int64_t id) {
    const auto found = places_.find(id);
    if (found == places_.end()) return std::nullopt;
    const auto [at, where] = found->second;
    order o = std::move(*where);
    at->second.erase(where);
    if (at->second.empty()) (o.what == side::buy ? bids_ : asks_).erase(at);
    places_.erase(found);
    o.withdrawn = true;
    return o;
  }

  [[nodiscard]] const order* find(std::int64_t id) const {
    const auto found = places_.find(id);
    return found == places_.end() ? nullptr : &*found->second.where;
  }
  [[nodiscard]] std::size_t size() const noexcept { return places_.size(); }
  [[nodiscard]] depth best(std::size_t n) const { return {sums(bids_, n), sums(asks_, n)}; }

 private:
  // The best price first: by minus the price for those who buy. Of each price the oldest order first.
  using levels = std::map<std::int64_t, std::list<order>>;
  struct place_of {
    levels::iterator at;
    std::list<order>::iterator where;
  };

  static std::int64_t key_of(const order& o) noexcept { return o.what == side::buy ? -o.price : o.price; }
  static std::int64_t limit_of(const order& o) noexcept { return o.what == side::buy ? o.price : -o.price; }
  static std::vector<level> sums(const levels& of, std::size_t n) {
    std::vector<level> all;
    for (const auto& [key, queue] : of) {
      if (all.size() == n) break;
      level l{queue.front().price, 0};
      for (const order& o : queue) l.quantity += o.remaining;
      all.push_back(l);
    }
    return all;
  }

  levels bids_, asks_;
  std::unordered_map<std::int64_t, place_of> places_;
};

}  // namespace exchange
