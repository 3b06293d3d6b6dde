// Mostly waits.
#include <ramie/kafka.hpp>
#include <ramie/net/testing.hpp>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <array>
#include <atomic>
#include <map>
#include <set>
#include <stdexcept>

namespace ramie::kafka {
namespace {

using namespace std::chrono_literals;

/// Brokers of librdkafka's own, in this process, on ports of the loopback. A topic has four partitions.
class brokers {
 public:
  explicit brokers(int n = 1) : client_{make()}, cluster_{rd_kafka_mock_cluster_new(client_, n)} {}
  brokers(const brokers&) = delete;
  brokers& operator=(const brokers&) = delete;
  ~brokers() {
    rd_kafka_mock_cluster_destroy(cluster_);
    rd_kafka_destroy(client_);
  }
  [[nodiscard]] std::string where() const { return rd_kafka_mock_cluster_bootstraps(cluster_); }
  [[nodiscard]] rd_kafka_mock_cluster_t* get() const noexcept { return cluster_; }
  void topic(const std::string& name, int partitions) const {
    ASSERT_EQ(rd_kafka_mock_topic_create(cluster_, name.c_str(), partitions, 1), RD_KAFKA_RESP_ERR_NO_ERROR);
  }
  void down() const { rd_kafka_mock_broker_set_down(cluster_, 1); }
  void up() const { rd_kafka_mock_broker_set_up(cluster_, 1); }

 private:
  static rd_kafka_t* make() {
    std::array<char, 200> why{};
    rd_kafka_conf_t* const conf = rd_kafka_conf_new();
    rd_kafka_conf_set_log_cb(conf, nullptr);
    rd_kafka_t* const made = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why.data(), why.size());
    if (made == nullptr) throw std::runtime_error{why.data()};
    return made;
  }
  rd_kafka_t* client_;
  rd_kafka_mock_cluster_t* cluster_;
};

options to(const brokers& b, std::vector<std::pair<std::string, std::string>> settings = {}) {
  settings.emplace_back("auto.offset.reset", "earliest");
  // These brokers let a group settle for as long as its session lasts, but for a second.
  settings.emplace_back("session.timeout.ms", "3000");
  settings.emplace_back("heartbeat.interval.ms", "300");
  return {.brokers = b.where(), .settings = std::move(settings)};
}
/// Without what only consumers know.
options sender_to(const brokers& b, std::vector<std::pair<std::string, std::string>> settings = {}) {
  return {.brokers = b.where(), .settings = std::move(settings)};
}

template <class F>
std::string name_of_failure(F f) {
  try {
    f();
  } catch (const kafka_error& e) {
    return e.name();
  }
  return "";
}

void fill(const brokers& b, const std::string& topic, int n) {
  producer p{sender_to(b)};
  std::vector<record> all;
  for (int i = 0; i < n; ++i) all.push_back({.topic = topic, .value = std::to_string(i), .partition = 0});
  p.send_all(all);
}

TEST(kafka_producer, sends_for_many_fibers) {
  net::with_workers([] {
    const brokers b{3};
    producer p{sender_to(b)};
    std::set<std::pair<int, std::int64_t>> places;
    mutex lock;
    scope all;
    for (int i = 0; i < 300; ++i)
      all.spawn([&, i] {
        const place at = p.send({.topic = "t", .key = "k" + std::to_string(i % 20), .value = std::to_string(i)});
        const std::lock_guard guard{lock};
        places.emplace(at.partition, at.offset);
      });
    all.join();
    EXPECT_EQ(places.size(), 300u);  // no two in one place
    EXPECT_EQ(p.statistics().confirmed, 300u);
    EXPECT_EQ(p.statistics().under_way, 0u);

    consumer c{to(b), {.group = "g", .topics = {"t"}}};
    std::map<std::string, int> partition_of;
    std::set<std::string> values;
    for (int i = 0; i < 300; ++i) {
      const message m = c.receive();
      EXPECT_TRUE(places.contains({m.partition, m.offset}));
      EXPECT_TRUE(values.insert(m.value.value()).second);
      const auto known = partition_of.emplace(m.key.value(), m.partition);
      EXPECT_EQ(known.first->second, m.partition);
    }
  });
}

TEST(kafka_producer, keeps_bytes_and_headers_as_they_are) {
  run([] {
    const brokers b;
    producer p{sender_to(b)};
    const std::string bytes{"a\r\n\0b", 5};
    p.send({.topic = "t", .key = bytes, .value = bytes, .partition = 0, .headers = {{"h", bytes}, {"h", ""}}});
    p.send({.topic = "t", .key = "dead", .partition = 0});  // a tombstone
    p.send({.topic = "t", .value = "", .partition = 0});
    consumer c{to(b), {.group = "g", .topics = {"t"}}};
    const message m = c.receive();
    EXPECT_EQ(m.topic, "t");
    EXPECT_EQ(m.key, bytes);
    EXPECT_EQ(m.value, bytes);
    EXPECT_EQ(m.headers, (headers{{"h", bytes}, {"h", ""}}));
    EXPECT_GT(m.time_ms, 0);
    const message dead = c.receive();
    EXPECT_EQ(dead.key, "dead");
    EXPECT_EQ(dead.value, std::nullopt);
    EXPECT_EQ(dead.offset, 1);
    EXPECT_EQ(c.receive().key, std::nullopt);
  });
}

TEST(kafka_producer, lets_senders_wait_while_the_queue_is_full) {
  net::with_workers([] {
    const brokers b;
    producer p{sender_to(b, {{"queue.buffering.max.messages", "3"}, {"linger.ms", "0"}})};
    std::vector<record> all;
    for (int i = 0; i < 200; ++i) all.push_back({.topic = "t", .value = std::to_string(i), .partition = 0});
    const std::vector<place> places = p.send_all(all);
    for (int i = 0; i < 200; ++i) EXPECT_EQ(places[static_cast<std::size_t>(i)].offset, i);  // in their order
    EXPECT_GT(p.statistics().waits, 0u);
    scope many;
    for (int i = 0; i < 100; ++i) many.spawn([&p] { p.send({.topic = "t", .value = "x", .partition = 0}); });
    many.join();
    EXPECT_EQ(p.statistics().confirmed, 300u);
  });
}

TEST(kafka_producer, refuses_what_does_not_fit) {
  run([] {
    const brokers b;
    producer p{sender_to(b, {{"queue.buffering.max.kbytes", "1"}, {"message.max.bytes", "10000"}})};
    const auto send = [&](std::size_t size) {
      return name_of_failure([&] { p.send({.topic = "t", .value = std::string(size, 'x')}); });
    };
    EXPECT_EQ(send(20'000), "MSG_SIZE_TOO_LARGE");
    EXPECT_EQ(send(2'000), "_QUEUE_FULL");  // it would never fit
    EXPECT_EQ(send(500), "");
    p.flush();
    EXPECT_EQ(p.statistics().under_way, 0u);
  });
}

TEST(kafka_producer, says_why_a_record_was_not_delivered) {
  run([] {
    {
      producer p{{.brokers = "127.0.0.1:1", .settings = {{"message.timeout.ms", "100"}, {"linger.ms", "0"}}}};
      EXPECT_EQ(name_of_failure([&] { p.send({.topic = "t", .value = "x"}); }), "_MSG_TIMED_OUT");
      EXPECT_NE(p.problem(), "");
      EXPECT_EQ(p.statistics().failed, 1u);
    }
    const brokers b;
    producer p{sender_to(b)};
    constexpr std::int16_t produce = 0;  // the request's number
    p.send({.topic = "closed", .value = "x", .partition = 0});
    rd_kafka_mock_push_request_errors(b.get(), produce, 1, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
    EXPECT_EQ(name_of_failure([&] { p.send({.topic = "closed", .value = "x", .partition = 0}); }),
              "TOPIC_AUTHORIZATION_FAILED");
    // What librdkafka can try again, it does.
    p.send({.topic = "t", .value = "x", .partition = 0});
    rd_kafka_mock_push_request_errors(b.get(), produce, 1, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION);
    EXPECT_EQ(p.send({.topic = "t", .value = "x", .partition = 0}).offset, 1);
    EXPECT_EQ(name_of_failure([&] { p.send({.topic = "t", .value = "x", .partition = 77}); }), "_UNKNOWN_PARTITION");
  });
}

TEST(kafka_producer, is_not_hurt_by_a_fiber_that_gives_up) {
  net::with_workers([] {
    const brokers b;
    producer p{sender_to(b, {{"queue.buffering.max.messages", "3"}, {"reconnect.backoff.max.ms", "100"}})};
    p.send({.topic = "t", .value = "first", .partition = 0});
    b.down();
    std::vector<join_handle<void>> all;
    all.reserve(20);
    for (int i = 0; i < 20; ++i)  // three are in the queue, one waits for room, the others for that one
      all.push_back(spawn([&p, i] {
        EXPECT_THROW(with_timeout(2ms, [&] { p.send({.topic = "t", .value = std::to_string(i), .partition = 0}); }),
                     timeout_error);
      }));
    auto stopped = spawn([&p] { p.send({.topic = "t", .value = "stopped", .partition = 0}); });
    for (auto& f : all) f.join();
    stopped.request_stop();
    EXPECT_THROW(stopped.join(), cancelled);
    b.up();
    p.flush();
    EXPECT_EQ(p.statistics().under_way, 0u);
    const auto before = static_cast<std::int64_t>(p.statistics().confirmed);
    EXPECT_EQ(p.send({.topic = "t", .value = "last", .partition = 0}).offset, before);
  });
}

TEST(kafka_producer, ends_with_records_under_way) {
  run([] {
    const brokers b;
    b.down();
    producer p{sender_to(b)};
    EXPECT_THROW(with_timeout(1ms, [&] { p.send({.topic = "t", .value = "x"}); }), timeout_error);
    EXPECT_EQ(p.statistics().under_way, 1u);
  });
}

TEST(kafka_client, refuses_wrong_settings) {
  run([] {
    const auto make = [](const char* name, const char* value) {
      try {
        producer p{{.brokers = "127.0.0.1:1", .settings = {{name, value}}}};
      } catch (const kafka_error& e) {
        return std::string{e.what()};
      }
      return std::string{};
    };
    EXPECT_NE(make("no.such.setting", "secret").find("no.such.setting"), std::string::npos);
    EXPECT_EQ(make("no.such.setting", "secret").find("secret"), std::string::npos);
    EXPECT_NE(make("linger.ms", "soon").find("linger.ms"), std::string::npos);
    EXPECT_EQ(make("linger.ms", "7"), "");
    EXPECT_THROW((consumer{{.brokers = "127.0.0.1:1"}, {.group = "", .topics = {"t"}}}), invalid_argument);
    EXPECT_THROW((consumer{{.brokers = "127.0.0.1:1"}, {.group = "g", .topics = {}}}), invalid_argument);
  });
}

TEST(kafka_consumer, gets_again_what_was_not_committed) {
  run([] {
    const brokers b;
    fill(b, "t", 10);
    {
      consumer c{to(b), {.group = "g", .topics = {"t"}}};
      c.commit();  // nothing
      for (int i = 0; i < 5; ++i) EXPECT_EQ(c.receive().value, std::to_string(i));
      c.commit();
      c.commit();
      EXPECT_EQ(c.receive().value, "5");
      const message m = c.receive();
      EXPECT_EQ(m.value, "6");
      EXPECT_EQ(c.receive().value, "7");
      c.commit(m);  // 7 has not been handled
    }
    consumer c{to(b), {.group = "g", .topics = {"t"}}};
    EXPECT_EQ(c.receive().value, "7");
    c.close();
    consumer d{to(b), {.group = "g", .topics = {"t"}}};
    EXPECT_EQ(d.receive().value, "7");
    consumer other{to(b), {.group = "another", .topics = {"t"}}};
    EXPECT_EQ(other.receive().value, "0");
  });
}

TEST(kafka_consumer, loses_nothing_when_it_is_cancelled) {
  net::with_workers([] {
    const brokers b;
    fill(b, "t", 300);
    consumer c{to(b, {{"fetch.wait.max.ms", "5"}}), {.group = "g", .topics = {"t"}}};
    for (int i = 0, k = 0; i < 300; ++k) try {
        const message m = with_timeout(std::chrono::microseconds{k % 100 * 20}, [&] { return c.receive(); });
        ASSERT_EQ(m.value, std::to_string(i));
        ++i;
        if (i % 50 == 0) c.commit();
      } catch (const timeout_error&) {
      }
    auto stopped = spawn([&c] { static_cast<void>(c.receive()); });
    stopped.request_stop();
    EXPECT_THROW(stopped.join(), cancelled);
  });
}

TEST(kafka_consumer, a_commit_that_is_given_up_does_not_confuse_the_next) {
  run([] {
    const brokers b;
    fill(b, "t", 50);
    consumer c{to(b), {.group = "g", .topics = {"t"}}};
    for (int i = 0; i < 50; ++i) {
      const message m = c.receive();
      ASSERT_EQ(m.value, std::to_string(i));
      try {
        with_timeout(std::chrono::microseconds{i * 10}, [&] { c.commit(m); });
      } catch (const timeout_error&) {
      }
    }
    c.commit();
    c.close();
    producer p{sender_to(b)};
    p.send({.topic = "t", .value = "next", .partition = 0});
    consumer d{to(b), {.group = "g", .topics = {"t"}}};
    EXPECT_EQ(d.receive().value, "next");
  });
}

TEST(kafka_consumer, hands_its_partitions_over) {
  run([] {
    const brokers b;
    b.topic("t", 4);
    producer p{sender_to(b)};
    const auto send = [&](int round) {
      std::vector<record> all;
      for (int i = 0; i < 4; ++i) all.push_back({.topic = "t", .value = std::to_string(round), .partition = i});
      p.send_all(all);
    };
    send(0);
    std::vector<rebalance> news;
    std::string refused = "not tried";
    consumer* self = nullptr;
    consumer first{to(b), {.group = "g", .topics = {"t"}, .on_rebalance = [&](const rebalance& r) {
                             news.push_back(r);
                             if (r.what == rebalance::kind::revoked) refused = name_of_failure([&] { self->commit(); });
                           }}};
    self = &first;
    for (int i = 0; i < 4; ++i) EXPECT_EQ(first.receive().value, "0");
    ASSERT_EQ(news.size(), 1u);
    EXPECT_EQ(news[0].what, rebalance::kind::assigned);
    EXPECT_EQ(news[0].partitions.size(), 4u);
    EXPECT_EQ(first.assigned().size(), 4u);
    first.commit();

    // Another member comes, and gets some of them. Nothing is handled twice, because the first has committed.
    std::atomic<int> handled{0};
    consumer second{to(b), {.group = "g", .topics = {"t"}}};
    auto taking = spawn([&] {
      for (;;) {
        EXPECT_EQ(second.receive().value, "1");
        ++handled;
      }
    });
    auto others = spawn([&] {
      for (;;) {
        EXPECT_EQ(first.receive().value, "1");
        ++handled;
      }
    });
    while (second.assigned().empty()) this_fiber::sleep_for(1ms);
    send(1);
    while (handled.load() < 4) this_fiber::sleep_for(1ms);
    EXPECT_EQ(news.at(1).what, rebalance::kind::revoked);
    EXPECT_EQ(refused, "");  // there was nothing to commit; these brokers would refuse it until the group has settled
    EXPECT_LT(first.assigned().size(), 4u);
    EXPECT_EQ(first.assigned().size() + second.assigned().size(), 4u);

    // It leaves, and the first has all again.
    taking.request_stop();
    EXPECT_THROW(taking.join(), cancelled);
    second.close();
    while (first.assigned().size() < 4) this_fiber::sleep_for(1ms);
    others.request_stop();
    EXPECT_THROW(others.join(), cancelled);
  });
}

TEST(kafka_consumer, passes_on_what_its_handler_throws) {
  run([] {
    const brokers b;
    fill(b, "t", 3);
    bool thrown = false;
    consumer c{to(b), {.group = "g", .topics = {"t"}, .on_rebalance = [&](const rebalance&) {
                         if (!std::exchange(thrown, true)) throw std::runtime_error{"no"};
                       }}};
    EXPECT_THROW(static_cast<void>(c.receive()), std::runtime_error);
    EXPECT_EQ(c.receive().value, "0");  // the partitions are its own nevertheless
  });
}

TEST(kafka_consumer, tells_errors_of_topics_and_waits_out_those_of_connections) {
  run([] {
    const brokers b;
    fill(b, "t", 1);
    consumer c{to(b, {{"reconnect.backoff.max.ms", "100"}}), {.group = "g", .topics = {"t"}}};
    EXPECT_EQ(c.receive().value, "0");
    b.down();
    auto next = spawn([&] { return c.receive(); });
    while (c.problem().empty()) this_fiber::sleep_for(1ms);
    b.up();
    producer p{sender_to(b)};
    p.send({.topic = "t", .value = "later", .partition = 0});
    EXPECT_EQ(next.join().value, "later");
    consumer none{to(b, {{"allow.auto.create.topics", "false"}}), {.group = "h", .topics = {"missing"}}};
    rd_kafka_mock_topic_set_error(b.get(), "missing", RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
    EXPECT_EQ(name_of_failure([&] { static_cast<void>(none.receive()); }), "UNKNOWN_TOPIC_OR_PART");
  });
}

TEST(kafka_consumer, is_for_one_fiber_at_a_time) {
  run([] {
    const brokers b;
    consumer c{to(b), {.group = "g", .topics = {"t"}}};
    auto waiting = spawn([&] {
      for (;;) try {
          static_cast<void>(c.receive());
        } catch (const usage_error&) {
          this_fiber::sleep_for(1ms);  // the other one was faster
        }
    });
    for (bool refused = false; !refused;) try {
        with_timeout(1ms, [&] { static_cast<void>(c.receive()); });
      } catch (const timeout_error&) {
        this_fiber::sleep_for(2ms);  // the other one's turn
      } catch (const usage_error&) {
        refused = true;
      }
    waiting.request_stop();
    EXPECT_THROW(waiting.join(), cancelled);
    c.close();
    c.close();
    EXPECT_THROW(static_cast<void>(c.receive()), usage_error);
    EXPECT_THROW(c.commit(), usage_error);
  });
}

}  // namespace
}  // namespace ramie::kafka
