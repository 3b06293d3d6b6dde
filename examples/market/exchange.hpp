// The actors of the market: the exchange, which owns the book, and the ledger, which owns all accounts.
#pragma once

#include "book.hpp"

#include <ramie/ramie.hpp>

#include <map>
#include <utility>
#include <vector>

namespace market {

struct account {
  long cash = 0, shares = 0;
};

struct totals {};  // asks the ledger for the sum of all accounts

class ledger : public ramie::actor<ledger> {
 public:
  void on(const trade& t) {
    const long value = static_cast<long>(t.price) * t.quantity;
    accounts_[t.buyer].cash -= value;
    accounts_[t.seller].cash += value;
    accounts_[t.buyer].shares += t.quantity;
    accounts_[t.seller].shares -= t.quantity;
  }
  account on(totals) {
    account sum;
    for (const auto& [trader, a] : accounts_) {
      sum.cash += a.cash;
      sum.shares += a.shares;
    }
    return sum;
  }

 private:
  std::map<int, account> accounts_;
};

class exchange : public ramie::actor<exchange> {
 public:
  explicit exchange(ramie::actor_ref<ledger> books = {}) : ledger_{std::move(books)} {}

  /// A request: the reply is what was traded at once.
  std::vector<trade> on(const order& o) {
    std::vector<trade> made = book_.place(o);
    if (ledger_)
      for (const trade& t : made) ledger_.tell(t);
    return made;
  }

 private:
  book book_;
  ramie::actor_ref<ledger> ledger_;
};

}  // namespace market
