#include "store.hpp"

namespace exchange {

namespace {

namespace pg = ramie::postgres;

// The database refuses what must never be: an order that is filled twice, or a key that is used twice.
constexpr const char* schema = R"(
create table if not exists orders (
  id bigint primary key, trader text not null, key text, buys boolean not null, price bigint not null check (price > 0),
  quantity bigint not null check (quantity > 0), remaining bigint not null check (remaining between 0 and quantity),
  withdrawn boolean not null default false, expires_ms bigint not null default 0,
  placed timestamptz not null default clock_timestamp(), unique (trader, key));
create index if not exists orders_open on orders (id) where remaining > 0 and not withdrawn;
create table if not exists trades (
  id bigint primary key, buy_order bigint not null references orders, sell_order bigint not null references orders,
  price bigint not null, quantity bigint not null check (quantity > 0), at_ms bigint not null, buyer_came_second boolean not null);
create index if not exists trades_of_buyer on trades (buy_order);
create index if not exists trades_of_seller on trades (sell_order);
create table if not exists engine (one boolean primary key default true check (one), epoch bigint not null);
insert into engine (epoch) values (0) on conflict do nothing;
create or replace function be_engine(mine bigint) returns void language plpgsql as $$
begin
  perform from engine where epoch = mine for update;
  if not found then raise exception 'another engine has taken over from that of epoch %', mine; end if;
end $$;
)";

// X5: first in each round, so that it is of the transaction.
constexpr pg::prepared be_engine{"select be_engine($1)"};
constexpr pg::prepared take_over{"update engine set epoch = epoch + 1 returning epoch"};
constexpr pg::prepared insert_order{
    "insert into orders (id, trader, key, buys, price, quantity, remaining, expires_ms) "
    "values ($1, $2, nullif($3, ''), $4, $5, $6, $7, $8)"};
constexpr pg::prepared insert_trade{"insert into trades values ($1, $2, $3, $4, $5, $6, $7)"};
constexpr pg::prepared set_remaining{"update orders set remaining = $2 where id = $1"};
constexpr pg::prepared set_withdrawn{"update orders set withdrawn = true where id = $1"};

#define ORDER_COLUMNS "id, trader, buys, price, quantity, remaining, withdrawn, expires_ms"
constexpr pg::prepared by_id{"select " ORDER_COLUMNS " from orders where id = $1"};
constexpr pg::prepared by_key{"select " ORDER_COLUMNS " from orders where trader = $1 and key = $2"};
constexpr pg::prepared all_open{"select " ORDER_COLUMNS
                                " from orders where remaining > 0 and not withdrawn order by id"};
constexpr pg::prepared trades_of{"select * from trades where buy_order = $1 or sell_order = $1 order by id"};

order order_of(const pg::row& r) {
  return {.id = r.get<std::int64_t>(0),
          .trader = r.get<std::string>(1),
          .what = r.get<bool>(2) ? side::buy : side::sell,
          .price = r.get<std::int64_t>(3),
          .quantity = r.get<std::int64_t>(4),
          .remaining = r.get<std::int64_t>(5),
          .withdrawn = r.get<bool>(6),
          .expires_ms = r.get<std::int64_t>(7)};
}

std::vector<trade> trades_in(const pg::result& rows) {
  std::vector<trade> all;
  for (const pg::row r : rows)
    all.push_back({.id = r.get<std::int64_t>(0),
                   .buy_order = r.get<std::int64_t>(1),
                   .sell_order = r.get<std::int64_t>(2),
                   .price = r.get<std::int64_t>(3),
                   .quantity = r.get<std::int64_t>(4),
                   .at_ms = r.get<std::int64_t>(5),
                   .taker = r.get<bool>(6) ? side::buy : side::sell});
  return all;
}

}  // namespace

void store::prepare() { db_.take()->script(schema); }

void store::write(const round& r) {
  pg::batch b;
  b.add(be_engine, epoch_);
  for (const auto& [o, key] : r.placed)
    b.add(insert_order, o.id, o.trader, key, o.what == side::buy, o.price, o.quantity, o.remaining, o.expires_ms);
  for (const trade& t : r.made)
    b.add(insert_trade, t.id, t.buy_order, t.sell_order, t.price, t.quantity, t.at_ms, t.taker == side::buy);
  for (const auto& [id, remaining] : r.touched) b.add(set_remaining, id, remaining);
  for (const std::int64_t id : r.withdrawn) b.add(set_withdrawn, id);
  db_.run(b);
}

std::optional<receipt> store::find(std::int64_t id) {
  pg::pool::lease c = db_.take();
  const pg::result found = c->query(by_id, id);
  if (found.empty()) return std::nullopt;
  return receipt{order_of(found[0]), trades_in(c->query(trades_of, id))};
}

std::optional<receipt> store::find(const std::string& trader, const std::string& key) {
  pg::pool::lease c = db_.take();
  const pg::result found = c->query(by_key, trader, key);
  if (found.empty()) return std::nullopt;
  receipt r{order_of(found[0]), {}};
  r.trades = trades_in(c->query(trades_of, r.what.id));
  return r;
}

std::vector<trade> store::last_trades(std::size_t n) {
  return trades_in(
      db_.query(pg::prepared{"select * from (select * from trades order by id desc limit $1) as last order by id"}, n));
}

store::restored store::restore(std::size_t keys_most) {
  pg::pool::lease c = db_.take();
  restored all;
  epoch_ = c->query(take_over)[0].get<std::int64_t>(0);
  for (const pg::row r : c->query(all_open)) all.open.push_back(order_of(r));
  for (const pg::row r :
       c->query("select trader, key, id from orders where key is not null order by id desc limit $1", keys_most))
    all.keys.push_back({r.get<std::string>(0), r.get<std::string>(1), r.get<std::int64_t>(2)});
  const pg::result last =
      c->query("select coalesce((select max(id) from orders), 0), coalesce((select max(id) from trades), 0)");
  all.last_order = last[0].get<std::int64_t>(0);
  all.last_trade = last[0].get<std::int64_t>(1);
  return all;
}

}  // namespace exchange
