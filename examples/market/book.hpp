// An order book: which traders would buy or sell, at which price. Plain C++, without fibers or actors.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <stdexcept>
#include <vector>

namespace market {

enum class side { buy, sell };

struct order {
  int trader;
  side what;
  int price;  // a buyer's highest, a seller's lowest
  int quantity;
};

struct trade {
  int buyer, seller;
  int price;
  int quantity;
};

class book {
 public:
  /// Trades with the best of the other side as long as prices allow, at the price of the order that was there first;
  /// the rest of the order waits in the book. Throws std::invalid_argument if its quantity or price is not positive.
  std::vector<trade> place(order o) {
    if (o.price <= 0 || o.quantity <= 0) throw std::invalid_argument{"an order needs a price and a quantity"};
    const bool buys = o.what == side::buy;
    queues& others = buys ? sellers_ : buyers_;
    const int limit = buys ? o.price : -o.price;
    std::vector<trade> made;
    while (o.quantity > 0 && !others.empty() && others.begin()->first <= limit) {
      std::deque<order>& queue = others.begin()->second;
      order& first = queue.front();
      const int n = std::min(o.quantity, first.quantity);
      if (buys) made.push_back({o.trader, first.trader, first.price, n});
      else made.push_back({first.trader, o.trader, first.price, n});
      o.quantity -= n;
      first.quantity -= n;
      if (first.quantity == 0) queue.pop_front();
      if (queue.empty()) others.erase(others.begin());
    }
    if (o.quantity > 0) (buys ? buyers_ : sellers_)[buys ? -o.price : o.price].push_back(o);
    return made;
  }

 private:
  using queues = std::map<int, std::deque<order>>;  // the best price first, and of each price the oldest order
  queues buyers_;                                   // by minus the price
  queues sellers_;
};

}  // namespace market
