// For tests: the actors of nodes that are processes.
#pragma once

#include "test_processes.hpp"

#include <ramie/cluster.hpp>
#include <ramie/ramie.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace cluster_tests {

class keeper;

struct number {
  std::uint64_t value = 0;
};
struct order_kept {};  // how many numbers came, each one more than that before; -1 if not so
struct text {
  std::string value;
};
struct fail {
  std::string why;
};
struct wait_for {
  std::uint64_t ms = 0;
};
struct call_back {
  ramie::actor_ref<keeper> whom;
  std::uint64_t count = 0;
};
struct spawn_bounded {
  std::uint64_t capacity = 0;
};
struct introduce {};
struct not_for_others {};
struct end_me {};
struct join_group {
  std::string name;
};

RAMIE_WIRE(number, "test.number", (1, value))
RAMIE_WIRE(order_kept, "test.order_kept")
RAMIE_WIRE(text, "test.text", (1, value))
RAMIE_WIRE(fail, "test.fail", (1, why))
RAMIE_WIRE(wait_for, "test.wait_for", (1, ms))
RAMIE_WIRE(call_back, "test.call_back", (1, whom), (2, count))
RAMIE_WIRE(spawn_bounded, "test.spawn_bounded", (1, capacity))
RAMIE_WIRE(introduce, "test.introduce")
RAMIE_WIRE(end_me, "test.end_me")
RAMIE_WIRE(join_group, "test.join_group", (1, name))

class keeper : public ramie::actor<keeper> {
 public:
  using remote = ramie::messages<number, order_kept, text, fail, wait_for, call_back, spawn_bounded, introduce, end_me,
                                 join_group>;

  void on(number n) {
    if (n.value != next_) wrong_ = true;
    ++next_;
  }
  std::int64_t on(order_kept) { return wrong_ ? -1 : static_cast<std::int64_t>(next_); }
  std::string on(const text& t) { return t.value + "!"; }
  void on(const fail& f) { throw std::runtime_error{f.why}; }
  ramie::reply<std::uint64_t> on(wait_for w) {
    if (w.ms == 0) return std::uint64_t{0};
    ramie::this_fiber::sleep_for(std::chrono::milliseconds{w.ms});
    return w.ms;
  }
  void on(const call_back& c) {
    for (std::uint64_t i = 0; i < c.count; ++i) c.whom.tell(number{i});
  }
  ramie::actor_ref<keeper> on(spawn_bounded s) {
    return ramie::spawn_actor<keeper>(ramie::actor_options{.mailbox_capacity = s.capacity});
  }
  ramie::actor_ref<keeper> on(introduce) { return self(); }
  void on(const join_group& j);
  void on(not_for_others) {}
  void on(end_me) { stop(); }

 private:
  std::uint64_t next_ = 0;
  bool wrong_ = false;
};

/// The cluster of a program that has one.
inline ramie::cluster*& this_node() {
  static ramie::cluster* it = nullptr;
  return it;
}
inline void keeper::on(const join_group& j) { this_node()->group<number>(j.name).join(self()); }

/// What others may start on a node.
class greeter : public ramie::actor<greeter> {
 public:
  using remote = ramie::messages<text>;
  greeter(std::string greeting, std::int64_t times) : greeting_{std::move(greeting)}, times_{times} {
    if (times < 0) throw std::runtime_error{"times is negative"};
  }
  std::string on(const text& t) {
    std::string all;
    for (std::int64_t i = 0; i < times_; ++i) all += greeting_ + t.value;
    return all;
  }

 private:
  std::string greeting_;
  std::int64_t times_;
};

struct add {
  std::int64_t value = 0;
};
struct total {};
struct fail_now {
  std::string why;
};
struct counted {
  std::int64_t value = 0;
  std::uint64_t token = 0, serial = 0;
};
RAMIE_WIRE(add, "test.add", (1, value))
RAMIE_WIRE(total, "test.total")
RAMIE_WIRE(fail_now, "test.fail_now", (1, why))
RAMIE_WIRE(counted, "test.counted", (1, value), (2, token), (3, serial))

/// An actor of a shard.
class counter : public ramie::actor<counter> {
 public:
  using remote = ramie::messages<add, total, fail_now>;
  explicit counter(const ramie::shard_key& k) : lease_{k.lease} {}
  void on(add a) {
    value_ += a.value;
    ++handled();
  }
  counted on(total) { return {value_, lease_.token(), serial_}; }
  void on(const fail_now& f) { throw std::runtime_error{f.why}; }
  /// `add`s in this process.
  static std::atomic<std::uint64_t>& handled() {
    static std::atomic<std::uint64_t> all{0};
    return all;
  }

 private:
  static std::uint64_t next_serial() {
    static std::atomic<std::uint64_t> last{0};
    return static_cast<std::uint64_t>(::getpid()) << 32 | ++last;
  }
  ramie::shard_lease lease_;
  std::int64_t value_ = 0;
  std::uint64_t serial_ = next_serial();
};

inline ramie::cluster_options options_for(const std::string& url, const std::string& node,
                                          std::chrono::milliseconds lost_after = std::chrono::seconds{3}) {
  return {.url = url, .name = "test", .node = node, .lost_after = lost_after};
}

/// Of the queue whose workers are killed.
inline ramie::queue_options jobs_options() {
  using std::chrono::milliseconds;
  return {.attempts = 50, .retry_after = milliseconds{100}, .worker_lost_after = milliseconds{1000}};
}

}  // namespace cluster_tests
