// An event bus: who wants to know subscribes to a type, or to one topic of it; who publishes knows nobody.
#include <ramie/ramie.hpp>

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

struct price {
  std::string what;
  int cents;
};
struct closing {};
struct summary {};

/// Hears of one kind of goods.
class shop : public ramie::actor<shop> {
 public:
  explicit shop(std::string name) : name_{std::move(name)} {}
  void on(const price& p) { heard_ += " " + p.what + " " + std::to_string(p.cents); }
  std::string on(summary) { return name_ + " heard:" + heard_; }

 private:
  std::string name_;
  std::string heard_;
};

/// Hears of everything.
class statistics : public ramie::actor<statistics> {
 public:
  void on(const price& p) { sum_ += p.cents, ++count_; }
  void on(closing) { closed_ = true; }
  std::string on(summary) {
    return std::to_string(count_) + " prices, " + std::to_string(sum_) + " cents" + (closed_ ? ", closed" : "");
  }

 private:
  int count_ = 0;
  int sum_ = 0;
  bool closed_ = false;
};

int main() {
  return ramie::run([] {
    ramie::event_bus bus;
    auto books = ramie::spawn_actor<shop>("the bookshop");
    auto fruit = ramie::spawn_actor<shop>("the greengrocer");
    auto all = ramie::spawn_actor<statistics>();
    bus.subscribe<price>("books", books);
    bus.subscribe<price>("fruit", fruit);
    bus.subscribe<price>(all);
    bus.subscribe<closing>(all);

    bus.publish("books", price{"Ulysses", 1200});
    bus.publish("fruit", price{"apples", 250});
    bus.publish("fruit", price{"pears", 300});
    fruit.stop();
    fruit.join();
    const ramie::published last = bus.publish("fruit", price{"plums", 400});
    std::printf("plums: %zu took it\n", last.taken);  // the greengrocer has gone, and is forgotten
    bus.publish(closing{});

    std::puts(books.ask(summary{}).c_str());
    std::puts(all.ask(summary{}).c_str());
    books.stop(), books.join();
    all.stop(), all.join();
    return 0;
  });
}
