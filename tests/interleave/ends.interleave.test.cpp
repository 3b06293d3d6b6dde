// Ends that come at the wrong moment: a channel is closed, a fiber cancelled, detached or out of time, an actor killed,
// a runtime shut down, while another fiber or thread uses it.
#include "programs.hpp"

#include <ramie/machine/test_options.hpp>
#include <ramie/ramie.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <utility>
#include <vector>

namespace ramie::interleave {
namespace {

using namespace std::chrono_literals;

/// The same where every wait changes the worker.
template <class P>
auto migrating(P program) {
  return [program] {
    const detail::with_test_options options{{.migrate_always = true}};
    program();
  };
}

// ---- channels ------------------------------------------------------------------------------------------------------

void close_amid_traffic() {
  channel<int> c{pick(2)};
  std::array<int, 2> sent{}, refused{};
  int received = 0;
  {
    simulated_thread one{[&] {
      for (int i = 0; i < 3; ++i) ++(c.send(i) == channel_status::ok ? sent : refused)[0];
    }};
    simulated_thread two{[&] {
      for (int i = 0; i < 3; ++i)
        select(on_send(c, i, [&](channel_status s) { ++(s == channel_status::ok ? sent : refused)[1]; }));
    }};
    simulated_thread three{[&] {
      while (c.recv()) ++received;
    }};
    wait_a_little();
    c.close();
  }
  check(sent[0] + sent[1] == received, "what was sent before the close did not arrive, or more did");
  check(sent[0] + refused[0] == 3 && sent[1] + refused[1] == 3, "a send had no answer");
}
TEST(ends, of_a_channel) { expect_sound("close amid traffic", {.seeds = 8000}, close_amid_traffic); }

void time_out_on_both_sides() {
  channel<int> c;
  int sent = 0, received = 0;
  {
    simulated_thread one{[&] {
      for (int i = 0; i < 3; ++i) sent += c.send_for(i, 3us) == channel_status::ok ? 1 : 0;
    }};
    for (int i = 0; i < 3; ++i) received += c.recv_for(3us) ? 1 : 0;
  }
  check(sent == received, "one side was in time and the other not");
}
TEST(ends, of_patience) { expect_sound("timeouts on both sides", {.seeds = 8000}, time_out_on_both_sides); }

/// The last user of a channel or a primitive may destroy it at once.
void destroy_after_use() {
  for (int i = 0; i < 2; ++i) {
    auto c = std::make_unique<channel<int>>();
    auto done = std::make_unique<latch>(1);
    auto ready = std::make_unique<counting_semaphore<>>(0);
    auto m = std::make_unique<mutex>();
    simulated_thread other{[&] {
      static_cast<void>(c->send(1));
      done->count_down();
      ready->release();
      std::lock_guard guard{*m};
    }};
    c->recv();
    c.reset();
    done->wait();
    done.reset();
    ready->acquire();
    ready.reset();
    other.join();
    m.reset();
  }
}
TEST(ends, of_what_was_just_used) { expect_sound("destroyed after use", {.seeds = 8000}, destroy_after_use); }

// ---- sync ----------------------------------------------------------------------------------------------------------

void share_and_meet() {
  shared_mutex m;
  barrier both{2};
  event gone;
  once_flag once;
  wait_group all;
  int value = 0, calls = 0;
  all.add(2);
  auto party = [&] {
    for (int i = 0; i < 2; ++i) {
      {
        std::lock_guard guard{m};
        ++value;
      }
      both.arrive_and_wait();
      {
        std::shared_lock guard{m};
        check(value == 2 * (i + 1), "the barrier let somebody through");
      }
      both.arrive_and_wait();
    }
    call_once(once, [&] { ++calls; });
    all.done();
  };
  {
    simulated_thread one{party};
    simulated_thread two{party};
    simulated_thread three{[&] {
      gone.wait();
      check(value == 4, "the event came too early");
    }};
    all.wait();
    gone.set();
  }
  check(calls == 1, "call_once called not once");
}
TEST(sync, of_all_kinds) {
  expect_sound("shared mutex, barrier, event, once, wait group", {.seeds = 6000}, share_and_meet);
}

void keep_promises() {
  promise<int> kept;
  std::optional<promise<int>> broken{std::in_place};
  auto a = kept.get_future();
  auto b = broken->get_future();
  bool was_broken = false;
  {
    simulated_thread one{[&] { kept.set_value(4); }};
    simulated_thread two{[&] { broken.reset(); }};
    check(a.get() == 4, "a wrong value");
    try {
      b.get();
    } catch (const broken_promise&) {
      was_broken = true;
    }
  }
  check(was_broken, "a promise that went away was not told");
}
TEST(sync, futures) { expect_sound("futures", {.seeds = 6000}, keep_promises); }

// ---- fibers --------------------------------------------------------------------------------------------------------

void join_in_all_ways() {
  channel<int> gate;  // outlives the detached fiber
  runtime rt{workers(2)};
  auto slow = rt.spawn([&] { return gate.recv().value_or(0); });
  auto quick = rt.spawn([] { return 1; });
  auto gone = rt.spawn([&] { static_cast<void>(gate.try_send(0)); });
  gone.detach();
  bool timed_out = !slow.join_for(2us);
  wait_a_little();
  check(quick.join() == 1, "a wrong result");
  if (!timed_out) return;  // the detached fiber gave it its value
  slow.request_stop();
  bool over = false;
  while (!over) {
    try {
      over = slow.join_for(5us).has_value();
    } catch (const cancelled&) {
      over = true;
    }
  }
}
TEST(ends, of_fibers) { expect_sound("join, join_for, detach, stop", {.seeds = 1500}, join_in_all_ways); }

void stop_blocking_calls() {
  runtime rt{[] {
    auto o = workers(1);
    o.blocking_threads = 1;
    return o;
  }()};
  int finished = 0;
  auto first = rt.spawn([&] { blocking([&] { detail::os_sleep(5000), ++finished; }); });
  auto second = rt.spawn([&] { blocking([&] { detail::os_sleep(5000), ++finished; }); });
  wait_a_little();
  second.request_stop();
  first.join();
  int stopped = 0;
  try {
    second.join();
  } catch (const cancelled&) {
    ++stopped;
  }
  check(finished + stopped == 2, "a blocking call was cut short, or not made");
}
TEST(ends, of_blocking_calls) { expect_sound("blocking calls that are stopped", {.seeds = 1000}, stop_blocking_calls); }

void wander() {
  channel<int> c{1};
  auto a = spawn([&] {
    for (int i = 0; i < 3; ++i) static_cast<void>(c.send(i));
    c.close();
  });
  mutex m;
  int inside = 0;
  auto use = [&] {
    std::lock_guard guard{m};
    check(++inside == 1, "two fibers hold the mutex");
    this_fiber::yield();
    --inside;
  };
  auto b = spawn(use);
  auto [n, unit] = fork_join(
      [&] {
        int count = 0;
        while (c.recv()) ++count;
        return count;
      },
      use);
  check(n == 3, "elements were lost");
  a.join();
  b.join();
}
TEST(ends, each_on_another_worker) {
  expect_sound("migration at every wake-up", {.seeds = 1500}, migrating(in_runtime(wander)));
}

/// Favours come after two and three uses in a row here, so they begin and end all the time.
void use_by_favour() {
  mutex m;
  int inside = 0, uses = 0;
  auto use = [&](int times, bool rests) {
    for (int i = 0; i < times; ++i) {
      std::lock_guard guard{m};
      check(++inside == 1, "two hold the mutex");
      ++uses;
      if (rests && pick(4) == 0) this_fiber::yield();
      check(--inside == 0, "two hold the mutex");
    }
  };
  {
    runtime rt{workers(2)};
    simulated_thread other{[&] {
      wait_a_little();
      use(2, false);
    }};
    rt.run([&] {
      auto child = spawn([&] { use(6, true); });
      use(6, true);
      child.join();
    });
  }
  check(uses == 12 + 2, "somebody was let in and did nothing");
}
TEST(mutex, passes_from_favourite_to_favourite) { expect_sound("mutex with favours", {.seeds = 3000}, use_by_favour); }
TEST(mutex, whose_favour_ends_unfenced_is_found) {
  expect_found(plant::mutex_favour_no_fence, "mutex, favour ended without a fence", {.seeds = 20'000}, use_by_favour);
}

TEST(mutex, whose_favour_forgets_those_who_wait_is_found) {
  expect_found(plant::mutex_favour_unattended, "mutex, favour with nobody on his way", {.seeds = 20'000},
               use_by_favour);
}

void spawn_into_the_end() {
  int started = 0, refused = 0, ended = 0;
  {
    runtime rt{workers(2)};
    simulated_thread other{[&] {
      for (int i = 0; i < 3; ++i) {
        try {
          auto h = rt.spawn([] { this_fiber::yield(); });
          ++started;
          try {
            h.join();
          } catch (const cancelled&) {
          }
          ++ended;
        } catch (const usage_error&) {
          ++refused;
        }
      }
    }};
    wait_a_little();
    rt.shutdown();
  }
  check(started == ended && started + refused == 3, "a fiber was started, and its end never told");
}
TEST(ends, of_a_runtime_that_is_in_use) { expect_sound("spawn into the end", {.seeds = 1500}, spawn_into_the_end); }

void two_runtimes() {
  runtime first{workers(1)};
  runtime second{workers(1)};
  channel<int> there, back;
  auto a = first.spawn([&] {
    while (auto v = there.recv()) static_cast<void>(back.send(*v + 1));
  });
  auto b = second.spawn([&] {
    int sum = 0;
    for (int i = 0; i < 3; ++i) {
      static_cast<void>(there.send(i));
      sum += back.recv().value_or(0);
    }
    there.close();
    return sum;
  });
  check(b.join() == 6, "a wrong sum");
  a.join();
}
TEST(runtimes, talk_to_each_other) { expect_sound("two runtimes", {.seeds = 1500}, two_runtimes); }

// ---- placements ----------------------------------------------------------------------------------------------------

/// Each worker has a queue of its own, from which no other worker takes.
class by_turns : public scheduling_policy {
 public:
  explicit by_turns(std::size_t workers) : queues_(workers) {}
  void put(runnable r, int) noexcept override {
    const std::lock_guard guard{lock_};
    queues_[turn_++ % queues_.size()].push(r);
  }
  runnable take(int worker) noexcept override {
    const std::lock_guard guard{lock_};
    return queues_[static_cast<std::size_t>(worker)].pop();
  }
  bool has_work(int worker) const noexcept override {
    const std::lock_guard guard{lock_};
    return !queues_[static_cast<std::size_t>(worker)].empty();
  }

 private:
  mutable detail::spin_lock lock_;
  std::vector<runnable_queue> queues_;
  std::size_t turn_ = 0;
};

void place_everything(placement how, detail::spreading woken = detail::spreading::automatic, int by_turns_of = 0) {
  runtime_options options = workers(by_turns_of == 0 ? 2 : by_turns_of);
  options.placement = how;
  if (by_turns_of != 0) options.policy = std::make_shared<by_turns>(static_cast<std::size_t>(by_turns_of));
  const detail::with_test_options told{{.spreading = woken}};
  runtime rt{options};
  channel<int> there, back{1};
  auto outside = rt.spawn([&] {
    while (auto v = there.recv()) static_cast<void>(back.send(*v + 1));
  });
  rt.run([&] {
    auto [a, b] = fork_join(
        [&] {
          int sum = 0;
          for (int i = 0; i < 2; ++i) {
            static_cast<void>(there.send(i));
            sum += back.recv().value_or(0);
          }
          return sum;
        },
        [] { return 1; });
    check(a == 3 && b == 1, "a wrong sum");
    auto child = spawn([] {
      this_fiber::yield();
      return 5;
    });
    this_fiber::sleep_for(2us);
    check(child.join() == 5, "a wrong result");
  });
  there.close();
  outside.join();
}
TEST(placements, lose_nothing) {
  constexpr std::array<std::pair<placement, const char*>, 3> all{{{placement::work_stealing, "work stealing"},
                                                                  {placement::stealing_no_affinity, "no affinity"},
                                                                  {placement::dedicated, "dedicated"}}};
  for (const auto& [how, name] : all) expect_sound(name, {.seeds = 600}, [one = how] { place_everything(one); });
}
TEST(placements, lose_nothing_wherever_who_is_woken_runs) {
  using detail::spreading;
  constexpr std::array<std::pair<spreading, const char*>, 3> all{
      {{spreading::together, "together"}, {spreading::at_home, "at home"}, {spreading::by_waker, "by the waker"}}};
  for (const auto& [how, name] : all)
    expect_sound(name, {.seeds = 600}, [one = how] { place_everything(placement::work_stealing, one); });
}
TEST(placements, by_a_policy_with_a_queue_a_worker_lose_nothing) {
  for (const auto& [n, name] : {std::pair{2, "two by turns"}, std::pair{3, "three by turns"}})
    expect_sound(name, {.seeds = 600},
                 [by = n] { place_everything(placement::work_stealing, detail::spreading::automatic, by); });
}
TEST(placements, by_a_policy_whose_wake_up_is_not_passed_on_are_found) {
  expect_found(plant::policy_wake_not_passed_on, "policy, wake-up not passed on", {.seeds = 20'000},
               [] { place_everything(placement::work_stealing, detail::spreading::automatic, 2); });
}
TEST(placements, an_inbox_announced_too_early_is_found) {
  expect_found(plant::inbox_announced_early, "inbox announced too early", {.seeds = 20'000},
               [] { place_everything(placement::dedicated); });
}

// ---- actors --------------------------------------------------------------------------------------------------------

struct add {
  int amount;
};
struct total {};
struct fail_now {};
class sum_actor : public actor<sum_actor> {
 public:
  void on(add m) { sum_ += m.amount; }
  void on(fail_now) { throw 1; }
  int on(total) const { return sum_; }

 private:
  int sum_ = 0;
};

void kill_and_ask() {
  auto ref = spawn_actor<sum_actor>();
  auto killer = spawn([ref] {
    if (pick(2) == 0) this_fiber::yield();
    if (pick(2) == 0) ref.kill();
    else ref.stop();
  });
  int answers = 0, downs = 0;
  fork_join(
      [&] {
        try {
          ref.ask(total{});
          ++answers;
        } catch (const actor_down&) {
          ++downs;
        }
      },
      [&] {
        for (int i = 0; i < 3; ++i) ref.tell(add{1});
      });
  check(answers + downs == 1, "an ask had no answer");
  killer.join();
  const exit_kind how = ref.join().kind();
  check(how == exit_kind::killed || how == exit_kind::stopped, "a strange end");
  check(ref.tell(add{1}) == tell_status::down, "a dead actor takes mail");
}
TEST(ends, of_actors) { expect_sound("kill and ask", {.seeds = 1500}, in_runtime(kill_and_ask)); }

void press_into_a_mailbox() {
  auto ref = spawn_actor<sum_actor>(actor_options{.mailbox_capacity = 1});
  auto teller = spawn([ref] {
    for (int i = 0; i < 3; ++i) check(ref.tell(add{1}) == tell_status::ok, "a waiting sender was refused");
  });
  for (int i = 0; i < 3; ++i) check(ref.tell(add{1}) == tell_status::ok, "a waiting sender was refused");
  teller.join();
  check(ref.ask(total{}) == 6, "mail was lost");
  ref.stop();
  ref.join();
}
/// Nearly each of these has to wait while the actor takes the one before.
void press_from_a_thread() {
  runtime rt{workers(1)};
  auto ref = rt.run([] { return spawn_actor<sum_actor>(actor_options{.mailbox_capacity = 1}); });
  for (int i = 0; i < 8; ++i) check(ref.tell(add{1}) == tell_status::ok, "a waiting sender was refused");
  check(ref.ask(total{}) == 8, "mail was lost");
  ref.stop();
  ref.join();
}
TEST(actors, make_senders_wait) {
  expect_sound("bounded mailbox", {.seeds = 1500}, in_runtime(press_into_a_mailbox));
  expect_sound("bounded mailbox, from a thread", {.seeds = 1500}, press_from_a_thread);
}
TEST(actors, whose_room_is_counted_late_are_found) {
  expect_found(plant::room_counted_late, "room counted late", {.seeds = 20'000}, press_from_a_thread);
}

void restart_a_child() {
  supervisor sup;
  auto ref = sup.spawn_actor<sum_actor>(child_options{.actor = {.asks_wait_for_restart = true}});
  fork_join([&] { ref.tell(fail_now{}); }, [&] { ref.tell(add{1}); });
  const int sum = ref.ask(total{});
  check(sum == 0 || sum == 1, "a restarted actor has an old state");
  check(sup.restarts() == 1, "it was restarted not once");
}
TEST(actors, are_restarted) { expect_sound("restart", {.seeds = 1500}, in_runtime(restart_a_child)); }

}  // namespace
}  // namespace ramie::interleave
