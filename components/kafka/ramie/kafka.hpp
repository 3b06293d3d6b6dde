// Kafka for fibers, by librdkafka: link ramie::kafka.
//
//   namespace kafka = ramie::kafka;
//   kafka::producer to{{.brokers = "127.0.0.1:9092"}};
//   to.send({.topic = "fruit", .key = "plum", .value = "3"});
//
//   kafka::consumer from{{.brokers = "127.0.0.1:9092"}, {.group = "shop", .topics = {"fruit"}}};
//   for (;;) {
//     const kafka::message m = from.receive();
//     ...             // handle it
//     from.commit();  // and only then say so
//   }
#pragma once

#include <ramie/ramie.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

struct rd_kafka_s;  // librdkafka's

namespace ramie::kafka {

/// librdkafka or a broker refused. `code()` is an rd_kafka_resp_err_t (below 0: librdkafka's own), `name()` its name,
/// as "UNKNOWN_TOPIC_OR_PART" or "_MSG_TIMED_OUT". After a fatal one the producer or consumer is of no use any more.
class kafka_error : public error {
 public:
  kafka_error(const std::string& what, int code, bool is_fatal = false);
  [[nodiscard]] int code() const noexcept { return code_; }
  [[nodiscard]] std::string name() const;
  [[nodiscard]] bool is_fatal() const noexcept { return is_fatal_; }

 private:
  int code_;
  bool is_fatal_;
};

struct options {
  std::string brokers{};  // "host:port,host:port": any that are up tell of the others
  /// Any of librdkafka's settings (CONFIGURATION.md there), as {"compression.type", "zstd"}; they win over those above.
  std::vector<std::pair<std::string, std::string>> settings{};
};

using headers = std::vector<std::pair<std::string, std::string>>;

/// To be sent.
struct record {
  std::string topic;
  std::optional<std::string> key{};    // those of one key go to one partition
  std::optional<std::string> value{};  // nullopt: a tombstone, which deletes the key from a compacted topic
  int partition = -1;                  // -1: by the key
  ramie::kafka::headers headers{};
};

/// Where a record has been put.
struct place {
  int partition = -1;
  std::int64_t offset = -1;  // -1 if the brokers were not asked for it ("acks" is 0)
};

struct producer_statistics {
  std::size_t under_way = 0;    // records that no broker has confirmed yet
  std::uint64_t confirmed = 0;  // since the start
  std::uint64_t failed = 0;     // reported as not delivered
  std::uint64_t waits = 0;      // for room in the queue
};

/// Sends records, in batches that librdkafka makes of those of many fibers ("linger.ms", "batch.size"). Made and
/// destroyed by a fiber; all its calls are for any fibers and plain threads.
class producer {
 public:
  /// Does not wait for brokers. Throws kafka_error (a wrong setting), std::bad_alloc. Suspends.
  explicit producer(const options& o);
  producer(const producer&) = delete;
  producer& operator=(const producer&) = delete;
  /// No call is under way. Records that were not waited for to their end are dropped if no broker has them: `flush`
  /// before. Suspends.
  ~producer();

  /// Suspends until a broker has confirmed the record, as "acks" says. While the queue is full
  /// ("queue.buffering.max.messages" and ".kbytes"), senders wait for room in their order. A stop or deadline ends the
  /// wait alone: whether the record arrives is not known then. Throws kafka_error, `cancelled`, std::bad_alloc.
  place send(const record& r);
  /// The same for several, in their order in each partition; suspends until all are confirmed, or have failed. Throws
  /// what the first failure was. What throws before (no room in time, a record that is too large) leaves those behind
  /// it unsent.
  std::vector<place> send_all(std::span<const record> all);

  /// Suspends until nothing is under way, also of calls that were given up. Throws `cancelled`.
  void flush();

  [[nodiscard]] producer_statistics statistics() const;  // does not suspend
  /// What librdkafka has last complained of, as a broker that is away: it tries again by itself. "" if of nothing.
  [[nodiscard]] std::string problem() const;
  /// For what has no name here, as transactions. Its main queue is the producer's.
  [[nodiscard]] rd_kafka_s* native() noexcept;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

struct message {
  std::string topic;
  int partition = -1;
  std::int64_t offset = -1;
  std::optional<std::string> key{}, value{};
  std::int64_t time_ms = -1;  // since 1970, of its sending or storing, as the topic says; -1 if unknown
  ramie::kafka::headers headers{};
};

struct topic_partition {
  std::string topic;
  int partition = -1;
  friend bool operator==(const topic_partition&, const topic_partition&) noexcept = default;
};

/// Partitions change hands.
struct rebalance {
  /// assigned: these are this consumer's from now on. revoked: they go to others once the handler has returned, so what
  /// is done can still be committed. lost: they have gone already.
  enum class kind : std::uint8_t { assigned, revoked, lost };
  kind what;
  std::vector<topic_partition> partitions;
};

struct consumer_options {
  std::string group;
  std::vector<std::string> topics;  // one that begins with "^" is a regular expression
  /// Called inside of `receive` and `close`, in the calling fiber. It may suspend, and commit. What it throws is passed
  /// on, after the partitions have changed hands.
  std::function<void(const rebalance&)> on_rebalance{};
};

/// A member of a group of consumers, which share the partitions of their topics. Nothing is committed by itself
/// ("enable.auto.commit" is false unless the settings say otherwise): what was received and not committed comes again,
/// here or at another member. `receive` and `close` are for one fiber (or plain thread) at a time; usage_error if
/// another uses it.
class consumer {
 public:
  /// Does not wait for brokers. Throws kafka_error, std::bad_alloc. Suspends.
  consumer(const options& o, consumer_options c);
  consumer(const consumer&) = delete;
  consumer& operator=(const consumer&) = delete;
  ~consumer();  // closes, whatever `on_rebalance` throws. Suspends

  /// The next message. Suspends until there is one. A member that does not receive for "max.poll.interval.ms" is taken
  /// for dead; waiting in here is receiving. Throws `cancelled`, by which nothing is lost, and kafka_error for what
  /// concerns topics or the group (UNKNOWN_TOPIC_OR_PART, _MAX_POLL_EXCEEDED, an authorisation) and for fatal ones.
  /// Unless it is fatal, receive again. Troubles with connections are waited out; `problem` tells them.
  [[nodiscard]] message receive();

  /// Everything that `receive` has returned so far has been handled. Suspends until the group's coordinator has noted
  /// it. Nothing to commit: returns at once. Any fiber. Throws kafka_error (ILLEGAL_GENERATION, _UNKNOWN_MEMBER and the
  /// like: a partition has changed hands meanwhile), `cancelled`; whether it was noted is not known then.
  void commit();
  /// The same for all messages of its partition up to this one.
  void commit(const message& last);

  [[nodiscard]] std::vector<topic_partition> assigned() const;  // does not suspend
  [[nodiscard]] std::string problem() const;                    // as the producer's

  /// Leaves the group, so that others get the partitions at once. Nothing is committed but by `on_rebalance`. Suspends;
  /// not ended by stops and deadlines. Throws what `on_rebalance` throws. Afterwards calls throw usage_error.
  void close();
  [[nodiscard]] rd_kafka_s* native() noexcept;  // its consumer queue is the consumer's. Null once it is closed

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace ramie::kafka
