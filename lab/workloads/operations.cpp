// What each single operation costs when uncontended: on one worker, with no other user. Waits, spawns and messages have
// workloads of their own (yield, spawn, pingpong, actors, ...); this is the rest of a table of costs.
#include <lab/harness/opaque.hpp>
#include <lab/harness/session.hpp>
#include <lab/workloads/plain_calls.hpp>
#include <lab/workloads/registry.hpp>

#include <ramie/ramie.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <numeric>
#include <optional>
#include <shared_mutex>
#include <stop_token>
#include <vector>

namespace ramie::lab {
namespace {

using namespace std::chrono_literals;

/// The number of units of a slow operation: one for each `share` that were asked for.
std::int64_t one_in(std::int64_t share, const session& s) {
  return std::max<std::int64_t>(1, s.parameter("count") / share);
}

/// An operation is an object of a type of its own that lives for one run; one call of it is one unit. It returns 1 if
/// the result is right.
template <class Operation, std::int64_t share = 1>
run_result by(session& s) {
  const std::int64_t count = one_in(share, s);
  std::int64_t right = 0;
  const double seconds = s.time([&] {
    Operation operation;
    for (std::int64_t i = 0; i < count; ++i) right += operation();
  });
  return {.seconds = seconds, .units = count, .ok = right == count};
}

run_result by_plain(session& s) { return run_plain_calls(s, s.parameter("count")); }

// --- fork and join ---------------------------------------------------------------------------------------------------

struct forks {
  std::int64_t operator()() const {
    auto [a, b] = ramie::fork_join([] { return opaque_input(1); }, [] { return opaque_input(2); });
    return a + b == 3;
  }
};

struct scopes {
  std::int64_t operator()() const {
    int a = 0;
    int b = 0;
    ramie::scope s;
    s.spawn([&a] { a = 1; });
    s.spawn([&b] { b = 2; });
    s.join();
    return a + b == 3;
  }
};

struct scopes_with_results {
  std::int64_t operator()() const {
    ramie::scope s;
    const auto one = s.spawn([] { return 1; });
    s.join();
    return one.get();
  }
};

struct limited_scopes {
  std::int64_t operator()() const {
    int a = 0;
    int b = 0;
    ramie::limited_scope s{2};
    s.spawn([&a] { a = 1; });
    s.spawn([&b] { b = 2; });
    s.join();
    return a + b == 3;
  }
};

constexpr std::int64_t loop_length = 10'000;

run_result by_parallel_for(session& s) {
  const std::int64_t rounds = one_in(loop_length, s);
  std::vector<std::int64_t> numbers(loop_length);
  const double seconds = s.time([&] {
    for (std::int64_t round = 0; round < rounds; ++round) {
      ramie::parallel_for(std::int64_t{0}, loop_length,
                          [&](std::int64_t i) { numbers[static_cast<std::size_t>(i)] += opaque(i); });
    }
  });
  const std::int64_t sum = std::accumulate(numbers.begin(), numbers.end(), std::int64_t{0});
  return {
      .seconds = seconds, .units = rounds * loop_length, .ok = sum == rounds * (loop_length * (loop_length - 1) / 2)};
}

// --- synchronisation -------------------------------------------------------------------------------------------------

template <class Mutex>
struct locks {
  Mutex mutex;
  std::int64_t operator()() {
    const std::lock_guard hold{mutex};
    return opaque_input(1);
  }
};

struct shared_locks {
  ramie::shared_mutex mutex;
  std::int64_t operator()() {
    const std::shared_lock hold{mutex};
    return opaque_input(1);
  }
};

struct permits {
  ramie::counting_semaphore<> semaphore{1};
  std::int64_t operator()() {
    semaphore.acquire();
    semaphore.release();
    return 1;
  }
};

struct waits_for_what_was {
  ramie::event happened{ramie::event_reset::manual, true};
  std::int64_t operator()() {
    happened.wait();
    return 1;
  }
};

struct sets_and_resets {
  ramie::event happened;
  std::int64_t operator()() {
    happened.set();
    happened.reset();
    return 1;
  }
};

struct latches {
  std::int64_t operator()() const {
    ramie::latch last{1};
    last.count_down();
    last.wait();
    return 1;
  }
};

struct groups {
  ramie::wait_group group;
  std::int64_t operator()() {
    group.add();
    group.done();
    group.wait();
    return 1;
  }
};

struct onces {
  ramie::once_flag flag;
  std::int64_t operator()() {
    ramie::call_once(flag, [] {});
    return 1;
  }
};

struct notifies_nobody {
  ramie::condition_variable somebody;
  std::int64_t operator()() {
    somebody.notify_one();
    return 1;
  }
};

struct values_made_once {
  static int make() { return 1; }
  ramie::once_value<int (*)()> number{&make};
  std::int64_t operator()() { return *number; }
};

struct promises {
  std::int64_t operator()() const {
    ramie::promise<int> given;
    ramie::future<int> kept = given.get_future();
    given.set_value(1);
    return kept.get();
  }
};

struct locals {
  ramie::fiber_local<int> mine{[] { return 1; }};
  std::int64_t operator()() { return opaque_input(*mine); }
};

// --- channels --------------------------------------------------------------------------------------------------------

struct sends_with_room {
  ramie::channel<int> numbers{16};
  std::int64_t operator()() {
    static_cast<void>(numbers.send(1));
    return *numbers.recv();
  }
};

struct tries {
  ramie::channel<int> numbers{16};
  std::int64_t operator()() {
    static_cast<void>(numbers.try_send(1));
    return *numbers.try_recv();
  }
};

struct finds_nothing {
  ramie::channel<int> a{16};
  ramie::channel<int> b{16};
  std::int64_t operator()() {
    std::int64_t nothing = 0;
    ramie::select(ramie::on_recv(a, [](std::optional<int>) {}), ramie::on_recv(b, [](std::optional<int>) {}),
                  ramie::otherwise([&] { nothing = 1; }));
    return nothing;
  }
};

struct selects_what_is_there {
  ramie::channel<int> a{16};
  ramie::channel<int> b{16};
  std::int64_t operator()() {
    std::int64_t got = 0;
    static_cast<void>(a.try_send(1));
    ramie::select(ramie::on_recv(a, [&](std::optional<int> x) { got = *x; }),
                  ramie::on_recv(b, [&](std::optional<int> x) { got = *x; }));
    return got;
  }
};

struct sends_without_bound {
  ramie::channel<int> numbers{ramie::unbounded};
  std::int64_t operator()() {
    static_cast<void>(numbers.send(1));
    return *numbers.recv();
  }
};

/// Copies of the ends, as each fiber has its own.
struct copies_ends {
  ramie::channel_ends<int> numbers = ramie::make_channel<int>(16);
  std::int64_t operator()() {
    const ramie::sender<int> to = numbers.sender;
    const ramie::receiver<int> from = numbers.receiver;
    return static_cast<bool>(to) && static_cast<bool>(from);
  }
};

struct selects_an_event {
  ramie::event is_set;
  ramie::channel<int> empty{16};
  selects_an_event() { is_set.set(); }
  std::int64_t operator()() {
    std::int64_t got = 0;
    ramie::select(ramie::on_recv(empty, [](std::optional<int>) {}), ramie::on_ready(is_set, [&] { got = 1; }));
    return got;
  }
};

struct makes_channels {
  std::int64_t operator()() const {
    ramie::channel<int> numbers{16};
    return numbers.try_send(1) == ramie::channel_status::ok;
  }
};

// --- cancellation, time, other threads -------------------------------------------------------------------------------

struct asks_whether_to_stop {
  std::int64_t operator()() const { return ramie::this_fiber::stop_requested() ? 0 : 1; }
};

struct shields {
  std::int64_t operator()() const {
    return ramie::shield([] { return opaque_input(1); });
  }
};

struct stop_tokens {
  std::int64_t operator()() const {
    return ramie::with_stop_token([](const std::stop_token& token) { return token.stop_requested() ? 0 : 1; });
  }
};

struct deadlines {
  std::int64_t operator()() const {
    return ramie::with_timeout(1h, [] { return opaque_input(1); });
  }
};

/// A waiting fiber is asked to stop, wakes up, throws, catches, ends.
struct cancels {
  std::int64_t operator()() const {
    ramie::event never;
    bool stopped = false;
    auto waiting = ramie::spawn([&] {
      try {
        never.wait();
      } catch (const ramie::cancelled&) {
        stopped = true;
        throw;
      }
    });
    ramie::this_fiber::yield();
    waiting.request_stop();
    try {
      waiting.join();
    } catch (const ramie::cancelled&) {
      return stopped;
    }
    return 0;
  }
};

struct helpers {
  std::int64_t operator()() const {
    return ramie::blocking([] { return 1; });
  }
};

/// From a thread that is not a worker, and back.
run_result by_run(session& s) {
  const std::int64_t count = one_in(100, s);
  ramie::runtime& rt = s.runtime();
  std::int64_t right = 0;
  const double seconds = s.time([&] {
    for (std::int64_t i = 0; i < count; ++i) right += rt.run([] { return 1; });
  });
  return {.seconds = seconds, .units = count, .ok = right == count};
}

run_result by_runtimes(session& s) {
  const std::int64_t count = one_in(1000, s);
  std::int64_t right = 0;
  const double seconds = s.time([&] {
    for (std::int64_t i = 0; i < count; ++i) {
      ramie::runtime rt{{.workers = s.workers()}};
      right += rt.run([] { return 1; });
    }
  });
  return {.seconds = seconds, .units = count, .ok = right == count};
}

// --- actors ----------------------------------------------------------------------------------------------------------

struct question {};
class oracle : public ramie::actor<oracle> {
 public:
  std::int64_t on(question) { return 1; }
};

struct asks_for_later {
  ramie::actor_ref<oracle> wise = ramie::spawn_actor<oracle>();
  std::int64_t operator()() { return wise.ask_async(question{}).get(); }
  ~asks_for_later() { wise.stop(); }
};

struct looks_up {
  ramie::actor_ref<oracle> wise = ramie::spawn_actor<oracle>();
  looks_up() { ramie::register_name("lab's oracle", wise); }
  std::int64_t operator()() const { return ramie::whereis<oracle>("lab's oracle").has_value(); }
  ~looks_up() {
    ramie::unregister_name("lab's oracle");
    wise.stop();
    wise.join();
  }
};

}  // namespace

workload operations_workload() {
  return {
      .name = "operations",
      .summary = "each operation of the library, uncontended; a style each",
      .unit = "operation",
      .parameters = {{.name = "count",
                      .help = "operations; of the slow ones a 10th to a 1000th",
                      .standard = 1'000'000,
                      .min = 1,
                      .max = 1'000'000'000}},
      .styles =
          {
              {"plain", "a noinline function call, the yardstick", false, by_plain},
              {"fork_join", "fork_join of two functions that do nothing", true, by<forks>},
              {"scope", "a scope, two children, join", true, by<scopes>},
              {"scope_result", "a scope, a child with a result, join", true, by<scopes_with_results>},
              {"limited_scope", "a limited_scope of two, two children, join", true, by<limited_scopes>},
              {"parallel_for", "an element of a parallel_for over 10,000", true, by_parallel_for},
              {"mutex", "lock and unlock a mutex", true, by<locks<ramie::mutex>>},
              {"timed_mutex", "lock and unlock a timed_mutex", true, by<locks<ramie::timed_mutex>>},
              {"recursive_mutex", "lock and unlock a recursive_mutex", true, by<locks<ramie::recursive_mutex>>},
              {"shared_mutex", "lock and unlock a shared_mutex", true, by<locks<ramie::shared_mutex>>},
              {"shared_lock", "lock_shared and unlock_shared", true, by<shared_locks>},
              {"semaphore", "acquire and release a counting_semaphore", true, by<permits>},
              {"event_wait", "wait for an event that is set", true, by<waits_for_what_was>},
              {"event_set", "set and reset an event", true, by<sets_and_resets>},
              {"latch", "make a latch, count down, wait", true, by<latches>},
              {"wait_group", "add, done, wait", true, by<groups>},
              {"call_once", "call_once after the first time", true, by<onces>},
              {"once_value", "look at a once_value after the first time", true, by<values_made_once>},
              {"notify", "notify_one on a condition_variable without waiters", true, by<notifies_nobody>},
              {"promise", "make a promise, get_future, set_value, get", true, by<promises>},
              {"fiber_local", "look at a fiber_local", true, by<locals>},
              {"send_recv", "send and recv by one fiber, through a buffer with room", true, by<sends_with_room>},
              {"try_send_recv", "try_send and try_recv", true, by<tries>},
              {"select_nothing", "select over two empty channels, with otherwise", true, by<finds_nothing>},
              {"select_ready", "try_send, then select over that channel and an empty one", true,
               by<selects_what_is_there>},
              {"select_event", "select over an empty channel and an event that is set", true, by<selects_an_event>},
              {"unbounded", "send and recv by one fiber, through an unbounded channel", true, by<sends_without_bound>},
              {"ends", "copy and drop a sender and a receiver", true, by<copies_ends>},
              {"make_channel", "make a channel for 16, send one message, destroy it", true, by<makes_channels>},
              {"stop_requested", "this_fiber::stop_requested", true, by<asks_whether_to_stop>},
              {"shield", "shield around nothing", true, by<shields>},
              {"stop_token", "with_stop_token around nothing", true, by<stop_tokens>},
              {"with_timeout", "with_timeout around nothing", true, by<deadlines>},
              {"cancel", "spawn, wait, request_stop, throw and catch twice, join", true, by<cancels, 10>},
              {"blocking", "blocking: to a helper thread and back", true, by<helpers, 100>},
              {"run", "runtime::run from a thread that is no worker, and back", false, by_run},
              {"runtime", "start a runtime, run a function there, stop it", false, by_runtimes},
              {"ask_async", "ask_async of an actor, and get of the future", true, by<asks_for_later>},
              {"whereis", "whereis", true, by<looks_up>},
          },
      .standard_workers = "1",
  };
}

}  // namespace ramie::lab
