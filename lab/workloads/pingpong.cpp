// One message at a time from one fiber or actor to the other and back.
#include <lab/harness/session.hpp>
#include <lab/workloads/plain_calls.hpp>
#include <lab/workloads/registry.hpp>

#include <ramie/ramie.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace ramie::lab {
namespace {

using numbers = ramie::channel<std::int64_t>;

run_result by_plain(session& s) { return run_plain_calls(s, s.parameter("messages")); }

template <std::size_t capacity>
run_result by_channel(session& s) {
  const std::int64_t rounds = s.parameter("messages") / 2;
  std::int64_t last = 0;
  const double seconds = s.time([&] {
    numbers ping{capacity};
    numbers pong{capacity};
    auto other = ramie::spawn([&] {
      for (const std::int64_t value : ping) static_cast<void>(pong.send(value + 1));
    });
    for (std::int64_t i = 0; i < rounds; ++i) {
      static_cast<void>(ping.send(last));
      last = *pong.recv();
    }
    ping.close();
    other.join();
  });
  return {.seconds = seconds, .units = 2 * rounds, .ok = last == rounds};
}

struct ball {
  std::int64_t hits_left;
};

class player : public ramie::actor<player> {
 public:
  player(ramie::recipient<ball> other, std::int64_t* hits) : other_{std::move(other)}, hits_{hits} {}
  /// Tells the player that was made first of the other one.
  void on(const ramie::actor_ref<player>& other) {
    other_ = other;
    other_.tell(ball{*hits_});
    *hits_ = 0;
  }
  void on(ball b) {
    ++mine_;
    if (b.hits_left > 0) other_.tell(ball{b.hits_left - 1});
    if (b.hits_left <= 1) {
      *hits_ += mine_;
      stop();
    }
  }

 private:
  ramie::recipient<ball> other_;
  std::int64_t* hits_;
  std::int64_t mine_ = 0;
};

run_result by_actor(session& s) {
  const std::int64_t messages = s.parameter("messages");
  std::int64_t hits = messages - 1;
  const double seconds = s.time([&] {
    auto first = ramie::spawn_actor<player>(ramie::recipient<ball>{}, &hits);
    auto second = ramie::spawn_actor<player>(first, &hits);
    first.tell(second);
    first.join();
    second.join();
  });
  return {.seconds = seconds, .units = messages, .ok = hits == messages};
}

std::string object_to_odd(std::int64_t messages) { return messages % 2 == 0 ? "" : "must be even"; }

}  // namespace

workload pingpong_workload() {
  return {
      .name = "pingpong",
      .summary = "one message at a time, there and back",
      .unit = "message",
      .parameters = {{.name = "messages",
                      .help = "in both directions together",
                      .standard = 2'000'000,
                      .min = 2,
                      .max = 1'000'000'000,
                      .objection = object_to_odd}},
      .styles =
          {
              {"plain", "a noinline function call in place of each message, the yardstick", false, by_plain},
              {"channel", "two fibers, two channels without buffers", true, by_channel<0>},
              {"buffered", "two fibers, two channels with room for one", true, by_channel<1>},
              {"actor", "two actors", true, by_actor},
          },
      .standard_workers = "1",
  };
}

}  // namespace ramie::lab
