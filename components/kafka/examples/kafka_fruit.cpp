// A shop's fruit through Kafka. `./run example kafka_fruit 127.0.0.1:9092` sends some of it to the topic "ramie_fruit"
// and receives it; without an argument it only says so.
#include <ramie/kafka.hpp>
#include <ramie/ramie.hpp>

#include <cstdio>
#include <string>

namespace kafka = ramie::kafka;

namespace {

void deliver(const std::string& brokers) {
  kafka::producer to{{.brokers = brokers}};
  ramie::scope farmers;  // librdkafka makes batches of what they send at the same time
  for (int i = 0; i < 100; ++i)
    farmers.spawn([&to, i] {
      to.send({.topic = "ramie_fruit", .key = i % 2 == 0 ? "plum" : "apple", .value = std::to_string(i)});
    });
  farmers.join();
}

void sell(const std::string& brokers) {
  kafka::consumer from{{.brokers = brokers, .settings = {{"auto.offset.reset", "earliest"}}},
                       {.group = "ramie_shop", .topics = {"ramie_fruit"}}};
  int plums = 0, apples = 0;
  while (plums + apples < 100) {
    const kafka::message m = from.receive();
    ++(m.key == "plum" ? plums : apples);
    if ((plums + apples) % 10 == 0) from.commit();  // what comes after it would come again after a crash
  }
  std::printf("plums: %d, apples: %d\n", plums, apples);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::printf("usage: %s BROKERS, as in 127.0.0.1:9092\n", argv[0]);
    return 0;
  }
  return ramie::run([&] {
    deliver(argv[1]);
    sell(argv[1]);
  });
}
