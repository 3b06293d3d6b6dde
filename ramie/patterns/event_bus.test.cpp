// The event bus: who gets what, by type and topic.
#include <ramie/patterns/event_bus.hpp>

#include <ramie/actor/testing.hpp>
#include <ramie/sync/event.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace ramie {
namespace {

using namespace actor_tests;

class event_buses : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, event_buses, few_and_many());

struct price {
  int value;
};
struct weather {
  std::string text;
};
struct got {};

class listener : public actor<listener> {
 public:
  void on(price p) { got_.push_back(std::to_string(p.value)); }
  void on(const weather& w) { got_.push_back(w.text); }
  std::vector<std::string> on(got) { return got_; }

 private:
  std::vector<std::string> got_;
};

using texts = std::vector<std::string>;

/// Types of the same name, which blocks and unnamed namespaces may have, are not mixed up.
TEST_P(event_buses, tell_types_of_the_same_name_apart) {
  in_runtime([] {
    event_bus bus;
    std::size_t taken = 0;
    {
      struct same {
        int n;
      };
      class counts : public actor<counts> {
       public:
        void on(same s) { sum_ += s.n; }
        int on(got) { return sum_; }

       private:
        int sum_ = 0;
      };
      auto a = spawn_actor<counts>();
      bus.subscribe<same>(a);
      taken += bus.publish(same{5}).taken;
      EXPECT_EQ(a.ask(got{}), 5);
    }
    {
      struct same {
        std::string text;
      };
      taken += bus.publish(same{"to nobody, though it is called as the other"}).taken;
    }
    EXPECT_EQ(taken, 1u);
  });
}

TEST_P(event_buses, pass_events_by_type_and_topic) {
  in_runtime([] {
    event_bus bus;
    auto all = spawn_actor<listener>();
    auto books = spawn_actor<listener>();
    auto sky = spawn_actor<listener>();
    bus.subscribe<price>(all);
    bus.subscribe<price>(all);
    bus.subscribe<price>("books", books);
    bus.subscribe<price>("books", all);  // gets each once all the same
    bus.subscribe<weather>(sky);
    EXPECT_EQ(bus.publish(price{1}).taken, 1u);
    EXPECT_EQ(bus.publish("books", price{2}).taken, 2u);
    EXPECT_EQ(bus.publish("films", price{3}).taken, 1u);
    EXPECT_EQ(bus.publish("", price{4}).taken, 1u);  // a topic like others
    EXPECT_EQ(bus.publish(weather{"rain"}).taken, 1u);
    EXPECT_EQ(bus.publish(5).taken, 0u);
    EXPECT_EQ(all.ask(got{}), (texts{"1", "2", "3", "4"}));
    EXPECT_EQ(books.ask(got{}), (texts{"2"}));
    EXPECT_EQ(sky.ask(got{}), (texts{"rain"}));

    EXPECT_TRUE(bus.unsubscribe<price>("books", books));
    EXPECT_FALSE(bus.unsubscribe<price>("books", books));
    EXPECT_FALSE(bus.unsubscribe<price>(books));
    EXPECT_EQ(bus.publish("books", price{5}).taken, 1u);
    bus.unsubscribe_all(all);
    EXPECT_EQ(bus.publish("books", price{6}).taken, 0u);
    stop_and_join(all, books, sky);
  });
}

TEST_P(event_buses, forget_who_has_ended) {
  in_runtime([] {
    event_bus bus;
    auto a = spawn_actor<listener>();
    auto b = spawn_actor<listener>();
    bus.subscribe<price>(a);
    bus.subscribe<price>("x", a);
    bus.subscribe<weather>(a);
    bus.subscribe<price>(b);
    stop_and_join(a);
    EXPECT_EQ(bus.publish(price{1}).taken, 1u);
    EXPECT_FALSE(bus.unsubscribe<weather>(a));
    EXPECT_FALSE(bus.unsubscribe<price>("x", a));
    stop_and_join(b);
  });
}

TEST_P(event_buses, are_not_held_up_by_a_full_mailbox) {
  in_runtime([] {
    event_bus bus;
    event go;
    auto slow = spawn_actor<price>(actor_options{.mailbox_capacity = 1}, [&](mailbox<price>& box) {
      go.wait();
      while (box.receive()) {
      }
    });
    auto quick = spawn_actor<listener>();
    bus.subscribe<price>(slow);
    bus.subscribe<price>(quick);
    EXPECT_EQ(bus.publish(price{1}).taken, 2u);
    const published second = bus.publish(price{2});
    EXPECT_EQ(second.taken, 1u);
    EXPECT_EQ(second.refused, 1u);
    EXPECT_EQ(quick.ask(got{}), (texts{"1", "2"}));
    go.set();
    stop_and_join(slow, quick);
  });
}

TEST_P(event_buses, are_used_by_many_at_once) {
  runtime rt{options()};
  event_bus bus;
  std::atomic<int> received{0};
  std::atomic<int> taken{0};
  class counting : public actor<counting> {
   public:
    explicit counting(std::atomic<int>& n) : n_{n} {}
    void on(price) { ++n_; }

   private:
    std::atomic<int>& n_;
  };
  const int rounds = scaled(200);
  const auto use = [&](int seed) {
    std::vector<actor_ref<counting>> mine;
    for (int i = 0; i < rounds; ++i) {
      const std::string topic = std::to_string((i + seed) % 3);
      if (seed != 0) {  // not on the plain thread
        mine.push_back(spawn_actor<counting>(received));
        bus.subscribe<price>(topic, mine.back());
        if (i % 5 == 0) bus.subscribe<price>(mine.back());
      }
      taken += static_cast<int>(bus.publish(topic, price{i}).taken);
      if (i % 7 == 3 && !mine.empty()) {
        if (i % 2 == 0) bus.unsubscribe_all(mine.back());
        stop_and_join(mine.back());
        mine.pop_back();
      }
    }
    for (const auto& m : mine) stop_and_join(m);
  };
  std::thread outside{[&] { use(0); }};
  std::vector<join_handle<void>> fibers;
  for (int f = 1; f <= 3; ++f) fibers.push_back(rt.spawn([&, f] { use(f); }));
  for (auto& f : fibers) f.join();
  outside.join();
  EXPECT_EQ(bus.publish("0", price{0}).taken, 0u);
  EXPECT_LE(received, taken);  // what was in the mailbox of one that had to stop first is not handled
  EXPECT_GT(received, 0);
}

}  // namespace
}  // namespace ramie
