// What a fiber spawns between two waits for events begins in its turn (sched/next_work.hpp, N2), counted in dispatches
// of a single worker.
#include <ramie/net/listener.hpp>
#include <ramie/net/pipe.hpp>
#include <ramie/net/select.hpp>
#include <ramie/net/testing.hpp>
#include <ramie/sched/next_work.hpp>
#include <ramie/sched/scheduler.hpp>
#include <ramie/worker/worker.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ramie::net {
namespace {

using namespace std::chrono_literals;
using ramie::detail::scheduler;
using ramie::detail::worker;

constexpr std::uint64_t tick = scheduler::tick_every;

std::uint64_t dispatches() { return worker::current()->dispatches.value(); }

runtime_options lone_worker() {
  runtime_options o{.workers = 1, .name = "turns", .spare_workers = 0};
  o.stall_after = 1h;  // the kernel may take the worker's processor away at any time
  return o;
}

/// Fibers of this worker that yield as long as it lives, and the longest that one has waited for its turn.
class busy_fibers {
 public:
  explicit busy_fibers(int fibers) {
    for (int i = 0; i < fibers; ++i)
      all_.spawn([this] {
        std::optional<std::uint64_t> last;
        for (; !over_; ++rounds_) {
          if (last) longest_ = std::max(longest_, dispatches() - *last);
          last = dispatches();
          this_fiber::yield();
        }
      });
    while (rounds_ < 10 * fibers) this_fiber::yield();
    longest_ = 0;
  }
  busy_fibers(const busy_fibers&) = delete;
  busy_fibers& operator=(const busy_fibers&) = delete;
  ~busy_fibers() { over_ = true; }
  [[nodiscard]] std::uint64_t longest() const noexcept { return longest_; }
  [[nodiscard]] int rounds() const noexcept { return rounds_; }

 private:
  bool over_ = false;
  int rounds_ = 0;
  std::uint64_t longest_ = 0;
  scope all_;  // the last one: its fibers use the others
};

/// What one of `fibers` that are ready waits at most while no turns are left to spawned tasks (next_work.hpp).
constexpr std::uint64_t usual_wait(std::uint64_t fibers) {
  return fibers + (fibers + tick - 1) / tick + 1 + tick + ramie::detail::tasks_in_a_row;
}

void send_a_byte(pipe_writer& to) { to.write_all(bytes_of("x")); }
template <class Stream>
bool take_a_byte(Stream& from) {
  std::array<std::byte, 1> one;
  return from.read_some(one) == 1;
}

/// What was spawned last begins, and waits.
void let_it_wait() { this_fiber::sleep_for(1ms); }

/// `wait()` returns once for each byte that is sent, and false at the end.
template <class Wait>
std::uint64_t longest_wait_of_spawned(pipe_writer& to, Wait wait) {
  constexpr int newcomers = 50;
  std::uint64_t longest = 0;
  int begun = 0;
  scope all;
  all.spawn([&] {
    while (wait())
      all.spawn([&, since = dispatches()] {
        longest = std::max(longest, dispatches() - since);
        ++begun;
      });
  });
  let_it_wait();
  const busy_fibers busy{100};
  for (int i = 0; i < newcomers; ++i) {
    const int before = begun;
    send_a_byte(to);
    while (begun == before) this_fiber::yield();
  }
  to.close();
  while (busy.rounds() < 1'000'000 && begun < newcomers) this_fiber::yield();
  EXPECT_EQ(begun, newcomers);
  return longest;
}

// The spawner waits, and then it is their turn, but for what a tick brings.
constexpr std::uint64_t at_once = 3;

TEST(io_turns, are_those_of_what_a_reader_spawns) {
  runtime rt{lone_worker()};
  rt.run([] {
    auto [from, to] = make_pipe();
    EXPECT_LE(longest_wait_of_spawned(to, [&from = from] { return take_a_byte(from); }), at_once);
  });
}

TEST(io_turns, are_those_of_what_a_select_spawns) {
  runtime rt{lone_worker()};
  rt.run([] {
    auto [from, to] = make_pipe();
    channel<int> never;
    const auto wait = [&, &from = from] {
      bool came = false;
      select(on_readable(from, [&] { came = take_a_byte(from); }), on_recv(never, [](std::optional<int>) { FAIL(); }));
      return came;
    };
    EXPECT_LE(longest_wait_of_spawned(to, wait), at_once);
  });
}

TEST(io_turns, are_those_of_what_an_acceptor_spawns) {
  runtime rt{lone_worker()};
  rt.run([] {
    constexpr int clients = 200;  // more than may be accepted in a row
    tcp_listener listener{{"127.0.0.1", 0}};
    std::vector<tcp_stream> there;
    std::uint64_t longest = 0;
    int begun = 0;
    scope all;
    all.spawn([&] {
      try {
        for (;;)
          all.spawn([&, s = listener.accept(), since = dispatches()] {
            longest = std::max(longest, dispatches() - since);
            ++begun;
          });
      } catch (const io_error& e) {
        EXPECT_EQ(e.code(), io_errc::closed);
      }
    });
    let_it_wait();
    const busy_fibers busy{100};
    for (int i = 0; i < clients; ++i) there.push_back(tcp_stream::connect(listener.local()));
    while (begun < clients) this_fiber::yield();
    // Those that were accepted together have each other's turns between.
    EXPECT_LE(longest, worker::turns_most + worker::turns_most / tick + at_once);
    listener.close();
  });
}

// What begins in a turn may spawn others, which are newer than those that still wait for theirs.
TEST(io_turns, are_not_lost_to_what_their_tasks_spawn) {
  runtime rt{lone_worker()};
  rt.run([] {
    auto [from, to] = make_pipe();
    auto [idle, other] = make_pipe();
    constexpr int handlers = 20;
    std::uint64_t longest = 0;
    int begun = 0;
    scope all;
    const auto note = [&](std::uint64_t since) {
      longest = std::max(longest, dispatches() - since);
      ++begun;
    };
    all.spawn([&, &from = from, &idle = idle] {
      while (take_a_byte(from))
        all.spawn([&, since = dispatches()] {
          note(since);
          all.spawn([&, since = dispatches()] { note(since); });
          static_cast<void>(take_a_byte(idle));
        });
    });
    let_it_wait();
    {
      const busy_fibers busy{100};
      to.write_all(std::string(handlers, 'x'));
      while (begun < 2 * handlers) this_fiber::yield();
      EXPECT_LE(longest, 3 * handlers + at_once);  // a handler that waits leaves for a loop, which counts
    }
    to.close();
    other.close();
  });
}

// However many a fiber spawns: those that are ready wait for turns_most of them, and no more.
TEST(io_turns, are_limited) {
  runtime rt{lone_worker()};
  rt.run([] {
    auto [from, to] = make_pipe();
    constexpr int fibers = 50, many = 1000;
    int begun = 0, bytes = 0;
    scope all;
    all.spawn([&, &from = from] {
      for (; take_a_byte(from); ++bytes)
        for (int i = 0; i < many; ++i) all.spawn([&] { ++begun; });
    });
    let_it_wait();
    {
      const busy_fibers busy{fibers};
      for (int i = 0; i < 5; ++i) {
        send_a_byte(to);
        while (bytes <= i) this_fiber::yield();
      }
      // The reader, and this one.
      EXPECT_LE(busy.longest(), usual_wait(fibers + 2) + worker::turns_most);
      to.close();
    }
    all.join();
    EXPECT_EQ(begun, 5 * many);
  });
}

// What begins in a turn leaves none itself, or each could spawn the next for ever.
TEST(io_turns, are_not_passed_on) {
  runtime rt{lone_worker()};
  rt.run([] {
    auto [from, to] = make_pipe();
    constexpr int fibers = 20;
    int links = 0;
    bool over = false;
    struct link {
      scope& all;
      pipe_reader& from;
      int& links;
      const bool& over;
      void operator()() const {
        ++links;
        if (!over && links < 3000) all.spawn(link{*this});
        static_cast<void>(take_a_byte(from));
      }
    };
    scope all;
    all.spawn([&, &from = from] {
      static_cast<void>(take_a_byte(from));
      all.spawn(link{all, from, links, over});
      static_cast<void>(take_a_byte(from));
    });
    let_it_wait();
    {
      const busy_fibers busy{fibers};
      const int rounds = busy.rounds();
      send_a_byte(to);
      while (busy.rounds() < rounds + 1000) this_fiber::yield();
      over = true;
      EXPECT_GT(links, 0);
      EXPECT_LE(busy.longest(), usual_wait(fibers + 2) + worker::turns_most);
    }
    to.close();
  });
}

}  // namespace
}  // namespace ramie::net
