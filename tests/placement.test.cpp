// Each placement: that everything runs, and where.
#include <ramie/actor/actor.hpp>
#include <ramie/channel/channel.hpp>
#include <ramie/fiber/fork_join.hpp>
#include <ramie/fiber/spawn.hpp>
#include <ramie/fiber/this_fiber.hpp>
#include <ramie/machine/test_options.hpp>
#include <ramie/runtime/runtime.hpp>
#include <ramie/sched/policy.hpp>
#include <ramie/sync/latch.hpp>
#include <ramie/worker/worker.hpp>

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace ramie {
namespace {

#if RAMIE_TSAN || RAMIE_ASAN
constexpr int rounds = 200;
#else
constexpr int rounds = 2000;
#endif

int this_worker() { return static_cast<int>(detail::worker::current()->number); }

struct where {};
struct go {
  int left;
};

class teller : public actor<teller> {
 public:
  int on(where) { return this_worker(); }
};

/// Passes a message on to the next, and notes where it ran.
class passer : public actor<passer> {
 public:
  explicit passer(latch& over) : over_{over} {}
  void on(actor_ref<passer> next) { next_ = next; }
  void on(go m) {
    ran_on_.insert(this_worker());
    if (m.left == 0) over_.count_down();
    else next_.tell(go{m.left - 1});
  }
  std::set<int> on(where) { return ran_on_; }

 private:
  latch& over_;
  actor_ref<passer> next_;
  std::set<int> ran_on_;
};

/// Links the ring, and has that many messages go through it `rounds` times; `over` counts those that have ended.
void send_round(const std::vector<actor_ref<passer>>& ring, std::size_t messages, latch& over) {
  for (std::size_t i = 0; i < ring.size(); ++i) ring[i].tell(ring[(i + 1) % ring.size()]);
  for (std::size_t i = 0; i < messages; ++i) ring[i].tell(go{rounds});
  over.wait();
}

constexpr placement all_placements[] = {placement::work_stealing, placement::stealing_no_affinity,
                                        placement::dedicated};

class placements : public testing::TestWithParam<std::tuple<placement, int>> {
 protected:
  runtime_options options() const {
    runtime_options o;
    o.placement = std::get<0>(GetParam());
    o.workers = std::get<1>(GetParam());
    return o;
  }
};
INSTANTIATE_TEST_SUITE_P(all, placements,
                         testing::Combine(testing::ValuesIn(all_placements), testing::Values(1, 2, 8)));

long fib(int n) {
  if (n < 2) return n;
  auto [a, b] = fork_join([=] { return fib(n - 1); }, [=] { return fib(n - 2); });
  return a + b;
}

TEST_P(placements, run_fibers_channels_forks_and_actors) {
  runtime rt{options()};
  EXPECT_EQ(rt.options().placement, std::get<0>(GetParam()));
  rt.run([] {
    channel<int> numbers{4}, squares;
    auto producer = spawn([&] {
      for (int i = 0; i < rounds; ++i) static_cast<void>(numbers.send(i));
      numbers.close();
    });
    std::vector<join_handle<void>> workers;
    for (int i = 0; i < 3; ++i)
      workers.push_back(spawn([&] {
        for (const int n : numbers) static_cast<void>(squares.send(n % 7));
      }));
    auto closer = spawn([&] {
      for (auto& w : workers) w.join();
      squares.close();
    });
    long sum = 0;
    for (const int s : squares) sum += s;
    producer.join();
    closer.join();
    long expected = 0;
    for (int i = 0; i < rounds; ++i) expected += i % 7;
    EXPECT_EQ(sum, expected);
    EXPECT_EQ(fib(15), 610);

    latch over{4};
    std::vector<actor_ref<passer>> ring;
    for (int i = 0; i < 8; ++i) ring.push_back(spawn_actor<passer>(over));
    send_round(ring, 4, over);
    for (auto& r : ring) r.stop();
    for (auto& r : ring) r.join();
  });
}

TEST_P(placements, let_yielding_fibers_take_turns) {
  runtime rt{options()};
  rt.run([] {
    std::atomic<int> running{0};
    std::vector<join_handle<void>> all;
    for (int i = 0; i < 5; ++i)
      all.push_back(spawn([&] {
        running.fetch_add(1);
        // Ends only if each of the five gets to run while the others still do.
        while (running.load() < 5) this_fiber::yield();
      }));
    for (auto& f : all) f.join();
  });
}

TEST_P(placements, serve_fibers_of_other_runtimes_and_plain_threads) {
  runtime rt{options()};
  runtime other{options()};
  channel<int> there, back;
  auto echo = rt.spawn([&] {
    for (const int n : there) static_cast<void>(back.send(n + 1));
    back.close();
  });
  auto sender = other.spawn([&] {
    for (int i = 0; i < rounds / 10; ++i) static_cast<void>(there.send(i));
    there.close();
  });
  int expected = 1;
  for (const int n : back) EXPECT_EQ(n, expected++);
  EXPECT_EQ(expected, rounds / 10 + 1);
  sender.join();
  echo.join();
}

TEST_P(placements, shut_down_with_work_in_flight) {
  runtime rt{options()};
  std::atomic<int> ended{0};
  struct at_end {
    std::atomic<int>& count;
    ~at_end() { count.fetch_add(1); }
  };
  rt.run([&] {
    latch begun{20};
    for (int i = 0; i < 20; ++i)
      spawn([&] {
        at_end counted{ended};
        begun.count_down();
        channel<int> never;
        never.recv();
      }).detach();
    begun.wait();
  });
  rt.shutdown();
  EXPECT_EQ(ended.load(), 20);
}

TEST_P(placements, keep_what_is_pinned_where_it_is) {
  runtime rt{options()};
  rt.run([&] {
    const int workers = std::get<1>(GetParam());
    std::vector<join_handle<void>> all;
    std::vector<actor_ref<teller>> tellers;
    channel<int> in, out;
    for (int i = 0; i < workers; ++i) {
      all.push_back(spawn(fiber_options{.worker = i}, [&, i] {
        for (int n = 0; n < rounds / 20; ++n) {
          EXPECT_EQ(this_worker(), i);
          if (n % 3 == 0) this_fiber::yield();
          else if (n % 3 == 1) static_cast<void>(in.send(n));
          else out.recv();
        }
      }));
      tellers.push_back(spawn_actor<teller>(actor_options{.worker = i}));
    }
    // Partners without a worker of their own.
    auto taker = spawn([&] {
      while (in.recv()) {
      }
    });
    auto giver = spawn([&] {
      while (out.send(1) == channel_status::ok) {
      }
    });
    for (int n = 0; n < rounds / 20; ++n)
      for (int i = 0; i < workers; ++i) EXPECT_EQ(tellers[static_cast<std::size_t>(i)].ask(where{}), i);
    for (auto& f : all) f.join();
    in.close();
    out.close();
    taker.join();
    giver.join();
  });
}

TEST_P(placements, refuse_workers_that_there_are_not) {
  runtime rt{options()};
  const int workers = std::get<1>(GetParam());
  rt.run([&] {
    for (const int wrong : {workers, -2, 100'000}) {
      const auto complains = [&](const char* option, auto&& call) {
        try {
          call();
          ADD_FAILURE() << option << " " << wrong << " was accepted";
        } catch (const invalid_argument& e) {
          EXPECT_NE(std::string{e.what()}.find(option), std::string::npos) << e.what();
          EXPECT_NE(std::string{e.what()}.find("0 to " + std::to_string(workers - 1)), std::string::npos) << e.what();
        }
      };
      complains("fiber_options::worker", [&] { spawn(fiber_options{.worker = wrong}, [] {}).join(); });
      complains("actor_options::worker", [&] { spawn_actor<teller>(actor_options{.worker = wrong}); });
    }
  });
  EXPECT_THROW(static_cast<void>(rt.spawn(fiber_options{.worker = workers}, [] {})), invalid_argument);
  EXPECT_EQ(rt.spawn(fiber_options{.worker = workers - 1}, [] { return this_worker(); }).join(), workers - 1);
}

TEST(placement_dedicated, keeps_an_actor_on_one_worker_and_deals_them_out) {
  runtime rt{{.workers = 3, .placement = placement::dedicated}};
  rt.run([] {
    latch over{3};
    std::vector<actor_ref<passer>> ring;
    for (int i = 0; i < 6; ++i) ring.push_back(spawn_actor<passer>(over));
    send_round(ring, 3, over);
    std::vector<int> actors_of(3);
    for (auto& r : ring) {
      const std::set<int> places = r.ask(where{});
      ASSERT_EQ(places.size(), 1u);
      ++actors_of[static_cast<std::size_t>(*places.begin())];
    }
    EXPECT_EQ(actors_of, (std::vector<int>{2, 2, 2}));
  });
}

TEST(placement_dedicated, keeps_a_fiber_on_one_worker) {
  runtime rt{{.workers = 4, .placement = placement::dedicated}};
  rt.run([] {
    channel<int> c;
    std::vector<join_handle<bool>> all;
    for (int i = 0; i < 8; ++i)
      all.push_back(spawn([&c, i] {
        const int home = this_worker();
        bool stayed = true;
        for (int n = 0; n < rounds / 10; ++n) {
          if (i % 2 == 0) static_cast<void>(c.send(n));
          else c.recv();
          stayed = stayed && this_worker() == home;
        }
        return stayed;
      }));
    for (auto& f : all) EXPECT_TRUE(f.join());
  });
}

TEST(placement_dedicated, counts_a_new_fiber_neither_as_woken_nor_as_moved) {
  runtime rt{{.workers = 1, .placement = placement::dedicated}};
  constexpr std::uint64_t fibers = 100;
  rt.run([] {
    std::vector<join_handle<void>> all;
    for (std::uint64_t i = 0; i < fibers; ++i) all.push_back(spawn([] {}));
    for (auto& f : all) f.join();  // the newest runs first; the oldest is joined first, and wakes this one
  });
  const runtime_counters counted = rt.statistics().counted;
  EXPECT_GE(counted.spawned, fibers);
  EXPECT_EQ(counted.migrations, 0u);
  EXPECT_EQ(counted.wakes_elsewhere, 0u);
  EXPECT_LT(counted.wakes, fibers / 2);
}

TEST(placement_dedicated, leaves_what_is_behind_a_stalled_worker_there) {
  runtime_options options;
  options.workers = 2;
  options.placement = placement::dedicated;
  options.stall_after = std::chrono::milliseconds{1};
  runtime rt{options};
  constexpr std::size_t fibers = 10;
  std::vector<int> ran_on(fibers, -1);
  std::atomic<int> ran{0};
  rt.spawn(fiber_options{.worker = 1}, [&] {
      std::vector<join_handle<void>> all;
      for (std::size_t i = 0; i < fibers; ++i)
        all.push_back(spawn([&ran_on, &ran, i] {
          ran_on[i] = this_worker();
          ran.fetch_add(1);
        }));
      // The other worker's fibers run; then there is time for a thief to come for this one's.
      while (ran.load() < static_cast<int>(fibers) / 2) {
      }
      const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds{30};
      while (std::chrono::steady_clock::now() < end) {
      }
      EXPECT_EQ(ran.load(), static_cast<int>(fibers) / 2);
      for (auto& f : all) f.join();
    }).join();
  for (std::size_t i = 0; i < fibers; ++i) EXPECT_EQ(ran_on[i], static_cast<int>(i % 2)) << i;
  EXPECT_EQ(rt.statistics().counted.threads, 2u);
}

class noter : public actor<noter> {
 public:
  explicit noter(std::atomic<int>& noted) : noted_{noted} {}
  void on(go) { noted_.fetch_add(1); }

 private:
  std::atomic<int>& noted_;
};

TEST(placement_affinity, none_is_never_sent_home) {
  // Two workers take turns telling an actor something, so the waker is never the worker that ran it last. With a home
  // it would be sent there. There are no other wakers meanwhile.
  const detail::with_test_options at_home{{.spreading = detail::spreading::at_home}};
  runtime rt{{.workers = 2, .spare_workers = 0}};
  std::atomic<int> noted{0}, told{0}, here{0};
  auto a = rt.run([&] { return spawn_actor<noter>(actor_options{.affinity = affinity::none}, noted); });
  const auto give_way = [] {
    this_fiber::yield();
    ::sched_yield();
  };
  std::uint64_t before = 0;
  std::vector<join_handle<void>> tellers;
  for (int worker = 0; worker < 2; ++worker)
    tellers.push_back(rt.spawn(fiber_options{.worker = worker}, [&, worker] {
      if (worker == 0) before = rt.counters().wakes_elsewhere;
      here.fetch_add(1);
      while (here.load() != 2) give_way();
      while (told.load() < rounds) {
        const int n = told.load();
        if (n % 2 == worker) {
          a.tell(go{0});
          while (noted.load() != n + 1) give_way();
          told.store(n + 1);
        }
        give_way();
      }
    }));
  for (auto& t : tellers) t.join();
  EXPECT_EQ(rt.counters().wakes_elsewhere, before);
  rt.run([&] {
    a.stop();
    a.join();
  });
}

TEST(placement_threads, are_bound_on_request) {
  runtime rt{{.workers = 2, .pin_threads = true}};
  cpu_set_t allowed;
  ASSERT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
  const int cpus = CPU_COUNT(&allowed);
  std::set<int> used;
  for (int i = 0; i < 2; ++i) {
    used.insert(rt.spawn(fiber_options{.worker = i}, [] {
                    cpu_set_t mine;
                    EXPECT_EQ(::sched_getaffinity(0, sizeof mine, &mine), 0);
                    EXPECT_EQ(CPU_COUNT(&mine), 1);
                    return ::sched_getcpu();
                  }).join());
  }
  EXPECT_EQ(static_cast<int>(used.size()), std::min(2, cpus));
}

/// The higher number first; equal ones in turn.
class by_priority : public scheduling_policy {
 public:
  void put(runnable r, int) noexcept override {
    std::lock_guard guard{lock_};
    levels_[r.priority() > 0].push(r);
    ++count_;
  }
  runnable take(int) noexcept override {
    std::lock_guard guard{lock_};
    runnable r = levels_[1].pop();
    if (!r) r = levels_[0].pop();
    if (r) --count_;
    return r;
  }
  bool has_work(int) const noexcept override { return count_.load() != 0; }

 private:
  std::mutex lock_;
  runnable_queue levels_[2];
  std::atomic<int> count_{0};
};

TEST(placement_policy, of_the_users_own_decides) {
  runtime_options options;
  options.workers = 1;
  options.spare_workers = 0;
  options.policy = std::make_shared<by_priority>();
  runtime rt{options};
  rt.run([] {
    std::vector<std::string> order;
    std::vector<join_handle<void>> all;
    for (int i = 0; i < 6; ++i) {
      const int priority = i % 2;
      all.push_back(spawn(fiber_options{.priority = priority}, [&order, priority] {
        for (int n = 0; n < 2; ++n) {
          order.push_back(priority == 1 ? "high" : "low");
          this_fiber::yield();
        }
      }));
    }
    for (auto& f : all) f.join();
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));  // "high" < "low"
    EXPECT_EQ(order.size(), 12u);
  });
}

/// Each worker has a queue of its own, from which no other worker takes.
class by_turns : public scheduling_policy {
 public:
  explicit by_turns(std::size_t workers) : queues_(workers) {}
  void put(runnable r, int) noexcept override {
    std::lock_guard guard{lock_};
    queues_[turn_++ % queues_.size()].push(r);
  }
  runnable take(int worker) noexcept override {
    std::lock_guard guard{lock_};
    return of(worker) < queues_.size() ? queues_[of(worker)].pop() : runnable{};
  }
  bool has_work(int worker) const noexcept override {
    std::lock_guard guard{lock_};
    return of(worker) < queues_.size() && !queues_[of(worker)].empty();
  }

 private:
  static std::size_t of(int worker) { return static_cast<std::size_t>(worker); }
  mutable std::mutex lock_;
  std::vector<runnable_queue> queues_;
  std::size_t turn_ = 0;
};

TEST(placement_policy, may_have_work_for_one_worker_alone) {
  // Work dealt to a sleeping worker has to wake that worker: no other may take it.
  for (const int workers : {2, 3, 8}) {
    runtime_options options;
    options.workers = workers;
    options.spare_workers = 0;
    options.policy = std::make_shared<by_turns>(static_cast<std::size_t>(workers));
    runtime rt{options};
    for (int round = 0; round < rounds / 4; ++round) {
      const std::set<int> ran_on{rt.spawn([] { return this_worker(); }).join(),
                                 rt.spawn([] { return this_worker(); }).join()};
      EXPECT_EQ(ran_on.size(), 2u);
    }
  }
}

TEST(placement_policy, serves_several_workers_and_actors) {
  runtime_options options;
  options.workers = 4;
  options.policy = std::make_shared<by_priority>();
  runtime rt{options};
  rt.run([] {
    latch over{4};
    std::vector<actor_ref<passer>> ring;
    for (int i = 0; i < 8; ++i) ring.push_back(spawn_actor<passer>(actor_options{.priority = i % 2}, over));
    send_round(ring, 4, over);
    EXPECT_EQ(fib(12), 144);
  });
}

}  // namespace
}  // namespace ramie
