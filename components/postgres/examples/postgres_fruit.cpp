// A shop's fruit in PostgreSQL. `./run example postgres_fruit "host=/run/postgresql dbname=shop"` makes a table, fills
// and reads it, and drops it; without an argument it only says so.
#include <ramie/postgres.hpp>
#include <ramie/ramie.hpp>

#include <chrono>
#include <cstdio>
#include <string>

namespace pg = ramie::postgres;
using namespace std::chrono_literals;

namespace {

void sell(const std::string& where) {
  pg::pool db{{.where = where, .most = 4}};
  db.query("create table fruit (name text primary key, price int not null)");

  pg::batch deliveries;  // one round trip, one transaction
  const pg::prepared insert{"insert into fruit values ($1, $2)"};
  deliveries.add(insert, "plum", 3);
  deliveries.add(insert, "apple", 2);
  deliveries.add(insert, "melon", 9);
  db.run(deliveries);

  db.transaction([](pg::connection& c) {
    const int price = c.query("select price from fruit where name = $1 for update", "plum")[0].get<int>("price");
    c.query("update fruit set price = $1 where name = $2", price + 1, "plum");
  });

  for (const pg::row r : db.query("select name, price from fruit where price < $1 order by price", 5))
    std::printf("%s costs %d\n", r.get<std::string>("name").c_str(), r.get<int>("price"));

  try {
    ramie::with_timeout(100ms, [&] { db.query("select pg_sleep(600)"); });
  } catch (const ramie::timeout_error&) {
    std::printf("too late: the server has stopped, too\n");
  }
  db.query("drop table fruit");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::printf("usage: %s WHERE, as in \"host=/run/postgresql dbname=shop\"\n", argv[0]);
    return 0;
  }
  return ramie::run([&] { sell(argv[1]); });
}
