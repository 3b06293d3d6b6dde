// A shop's fruit in Redis. `./run example redis_fruit 127.0.0.1:6379` counts and shows some of it, and takes it away
// again; without an argument it only says so.
#include <ramie/ramie.hpp>
#include <ramie/redis.hpp>

#include <cstdio>
#include <string>

namespace redis = ramie::redis;

namespace {

void sell(const std::string& where) {
  redis::client db{{.where = where}};
  db.command("hset", "ramie:fruit", "plum", 3, "apple", 2);
  {
    ramie::scope customers;  // they share one connection, and their commands go out together
    for (int i = 0; i < 100; ++i) customers.spawn([&] { db.command("hincrby", "ramie:fruit", "plum", 1); });
    customers.join();
  }
  std::printf("plums: %s\n", db.command("hget", "ramie:fruit", "plum").text().c_str());

  redis::commands several;
  several.add("hdel", "ramie:fruit", "apple");
  several.add("hlen", "ramie:fruit");
  several.add("del", "ramie:fruit");
  std::printf("kinds left: %d\n", static_cast<int>(db.run(several)[1].integer()));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::printf("usage: %s WHERE, as in 127.0.0.1:6379, or the path of a local socket\n", argv[0]);
    return 0;
  }
  return ramie::run([&] { sell(argv[1]); });
}
