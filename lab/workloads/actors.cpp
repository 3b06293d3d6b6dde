// The basic operations of actors: a message there and back, a burst, a request, a lifetime.
#include <lab/harness/memory.hpp>
#include <lab/harness/session.hpp>
#include <lab/workloads/plain_calls.hpp>
#include <lab/workloads/registry.hpp>

#include <ramie/ramie.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ramie::lab {
namespace {

run_result by_plain(session& s) { return run_plain_calls(s, s.parameter("count")); }

struct ball {
  std::int64_t left;
};

class player : public ramie::actor<player> {
 public:
  void on(ramie::actor_ref<player> other) { other_ = std::move(other); }
  void on(ball b) {
    ++hits_;
    if (b.left != 0) {
      other_.tell(ball{b.left - 1});
      return;
    }
    other_.stop();
    stop();
  }
  std::int64_t on(const ramie::down&) { return hits_; }

 private:
  ramie::actor_ref<player> other_;
  std::int64_t hits_ = 0;
};

run_result ping_pong(session& s) {
  const std::int64_t count = s.parameter("count");
  bool ok = false;
  const double seconds = s.time([&] {
    auto ping = ramie::spawn_actor<player>();
    auto pong = ramie::spawn_actor<player>();
    ping.tell(pong);
    pong.tell(ping);
    ping.tell(ball{count - 1});
    ok = ping.join().normal() && pong.join().normal();
  });
  return {.seconds = seconds, .units = count, .ok = ok};
}

struct add {
  std::int64_t n;
};
struct total {};

class adder : public ramie::actor<adder> {
 public:
  void on(add a) { sum_ += a.n; }
  std::int64_t on(total) { return sum_; }

 private:
  std::int64_t sum_ = 0;
};

run_result tell_many(session& s) {
  constexpr std::int64_t burst = 64;
  const std::int64_t count = s.parameter("count");
  std::int64_t sum = 0;
  const double seconds = s.time([&] {
    auto a = ramie::spawn_actor<adder>();
    for (std::int64_t i = 0; i < count; ++i) {
      a.tell(add{i});
      if (i % burst == burst - 1) ramie::this_fiber::yield();
    }
    sum = a.ask(total{});
    a.stop();
    a.join();
  });
  return {.seconds = seconds, .units = count, .ok = sum == count * (count - 1) / 2};
}

run_result ask_many(session& s) {
  const std::int64_t count = s.parameter("count");
  std::int64_t zeros = 0;
  const double seconds = s.time([&] {
    auto a = ramie::spawn_actor<adder>();
    for (std::int64_t i = 0; i < count; ++i) zeros += static_cast<std::int64_t>(a.ask(total{}) == 0);
    a.stop();
    a.join();
  });
  return {.seconds = seconds, .units = count, .ok = zeros == count};
}

/// `spawn()` makes each.
template <class Spawn>
std::int64_t stopped_by_64(std::int64_t count, Spawn spawn) {
  constexpr std::int64_t batch = 64;
  std::int64_t stopped = 0;
  std::vector<ramie::actor_ref<adder>> actors;
  actors.reserve(batch);
  for (std::int64_t i = 0; i < count; ++i) {
    actors.push_back(spawn());
    actors.back().stop();
    if (actors.size() < batch && i != count - 1) continue;
    ramie::this_fiber::yield();
    for (auto& a : actors) stopped += static_cast<std::int64_t>(a.join().normal());
    actors.clear();
  }
  return stopped;
}

run_result spawn_and_stop(session& s) {
  const std::int64_t count = s.parameter("count");
  std::int64_t stopped = 0;
  const double seconds = s.time([&] { stopped = stopped_by_64(count, [] { return ramie::spawn_actor<adder>(); }); });
  return {.seconds = seconds, .units = count, .ok = stopped == count};
}

run_result spawn_in_pool(session& s) {
  const std::int64_t count = s.parameter("count");
  std::int64_t stopped = 0;
  const double seconds = s.time([&] {
    ramie::actor_pool<adder> pool;
    stopped = stopped_by_64(count, [&] { return pool.spawn(); });
  });
  return {.seconds = seconds, .units = count, .ok = stopped == count};
}

run_result idle(session& s) {
  const std::int64_t count = s.parameter("count");
  std::int64_t resident = 0;
  double seconds = 0;
  std::vector<ramie::actor_ref<adder>> actors(static_cast<std::size_t>(count));
  s.runtime().run([] { ramie::spawn_actor<adder>().stop(); });
  const std::int64_t before = read_memory_use().resident_bytes;
  seconds = s.time([&] {
    for (auto& a : actors) a = ramie::spawn_actor<adder>();
  });
  resident = read_memory_use().resident_bytes - before;
  std::int64_t sum = 0;
  s.runtime().run([&] {
    for (auto& a : actors) a.tell(add{1});
    for (auto& a : actors) sum += a.ask(total{});
    for (auto& a : actors) a.stop();
    for (auto& a : actors) a.join();
  });
  return {.seconds = seconds,
          .units = count,
          .ok = sum == count,
          .figures = {{"resident_bytes_per_actor", static_cast<double>(resident) / static_cast<double>(count)}}};
}

}  // namespace

workload actors_workload() {
  return {
      .name = "actors",
      .summary = "messages between actors; starting and stopping them",
      .unit = "message",
      .parameters = {{.name = "count",
                      .help = "messages, requests, or actors",
                      .standard = 5'000'000,
                      .min = 1,
                      .max = 1'000'000'000}},
      .styles =
          {
              {"plain", "a noinline function call in place of each message, the yardstick", false, by_plain},
              {"pingpong", "one message to and fro between two actors", true, ping_pong},
              {"tell", "a fiber sends bursts of 64 messages to an actor", true, tell_many},
              {"ask", "a fiber asks an actor, and waits, again and again", true, ask_many},
              {"spawn", "actors that are made, stopped and joined, 64 at a time; a unit is an actor", true,
               spawn_and_stop},
              {"pool", "the same actors as children of a pool", true, spawn_in_pool},
          },
      .standard_workers = "1",
  };
}

workload idle_actors_workload() {
  return {
      .name = "idle_actors",
      .summary =
          "memory of actors that do nothing, with an empty mailbox and 8 bytes of state, and the time to make them",
      .unit = "actor",
      .parameters = {{.name = "count", .help = "actors", .standard = 1'000'000, .min = 1, .max = 100'000'000}},
      .styles = {{"idle", "actors that get no message while they are measured", true, idle}},
      .yardstick = "",
      .standard_runs = 3,
      .standard_warmup = 0,
      .standard_workers = "1",
      .fresh_process_each_run = true,
  };
}

}  // namespace ramie::lab
