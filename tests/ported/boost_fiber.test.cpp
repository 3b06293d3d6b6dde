// After the tests of Boost.Fiber: test_barrier.cpp, test_condition_*.cpp, test_mutex_*.cpp, test_future_*.cpp,
// test_shared_future_*.cpp, test_promise_*.cpp, test_packaged_task_*.cpp, test_async_*.cpp, test_fss_*.cpp,
// test_fiber_*.cpp.
#include "ported.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>

namespace ramie::ported {
namespace {

class boost_fiber : public program {};
INSTANTIATE_TEST_SUITE_P(on, boost_fiber, on_1_2_and_8_workers(), workers_of);

// test_barrier.cpp: each phase begins when all have arrived, and exactly one is told so.
TEST_P(boost_fiber, barriers_hold_all_back_until_the_last) {
  run([] {
    std::atomic<int> phases{0}, before{0};
    constexpr int parties = 3, rounds = 5;
    barrier all_here{parties, [&]() noexcept { ++phases; }};
    crew all;
    for (int i = 0; i < parties; ++i)
      all.go([&] {
        for (int round = 0; round < rounds; ++round) {
          ++before;
          all_here.arrive_and_wait();
          EXPECT_GE(before, parties * (round + 1));
          EXPECT_GE(phases, round + 1);
        }
      });
    all.join();
    EXPECT_EQ(phases, rounds);
  });
}

// test_condition_mt_post.cpp, test_condition_mt_dispatch.cpp: notify_one wakes one waiter.
TEST_P(boost_fiber, notify_one_wakes_one) {
  run([] {
    mutex m;
    condition_variable changed;
    int waiting = 0, woken = 0, tickets = 0;
    crew all;
    for (int i = 0; i < 2; ++i)
      all.go([&] {
        std::unique_lock lock{m};
        ++waiting;
        changed.wait(lock, [&] { return tickets > 0; });
        --tickets;
        ++woken;
      });
    const auto inside = [&](auto f) {
      std::lock_guard guard{m};
      return f();
    };
    until([&] { return inside([&] { return waiting == 2; }); });
    for (int n = 1; n <= 2; ++n) {
      inside([&] { return ++tickets; });
      changed.notify_one();
      until([&] { return inside([&] { return woken == n; }); });
    }
  });
}

// test_condition_mt_post.cpp: two fibers notify all, and wait for each other's.
TEST_P(boost_fiber, notify_all_wakes_all) {
  run([] {
    mutex m;
    condition_variable changed;
    bool open = false;
    int through = 0;
    crew all;
    for (int i = 0; i < 10; ++i)
      all.go([&] {
        std::unique_lock lock{m};
        while (!open) changed.wait(lock);
        ++through;
      });
    {
      std::lock_guard guard{m};
      open = true;
    }
    changed.notify_all();
    all.join();
    EXPECT_EQ(through, 10);
  });
}

// test_condition_post.cpp, do_test_condition_wait_for and wait_until: with and without a predicate.
TEST_P(boost_fiber, conditions_give_up_in_time) {
  run([] {
    mutex m;
    condition_variable changed;
    std::unique_lock lock{m};
    EXPECT_FALSE(changed.wait_for(lock, 100us, [] { return false; }));
    EXPECT_TRUE(changed.wait_for(lock, 0us, [] { return true; }));
    EXPECT_EQ(changed.wait_until(lock, std::chrono::steady_clock::now() + 100us), std::cv_status::timeout);
    EXPECT_EQ(changed.wait_until(lock, std::chrono::system_clock::now() - 1s), std::cv_status::timeout);
    EXPECT_TRUE(lock.owns_lock());
  });
}

// test_condition_any_post.cpp: a condition with any kind of lock.
TEST_P(boost_fiber, conditions_take_any_lock) {
  run([] {
    timed_mutex m;
    recursive_mutex again;
    condition_variable changed;
    int step = 0;
    crew all;
    all.go([&] {
      std::unique_lock lock{m};
      changed.wait(lock, [&] { return step == 1; });
    });
    all.go([&] {
      std::lock_guard lock{m};
      step = 1;
      changed.notify_all();
    });
    all.join();
    std::unique_lock lock{again};
    EXPECT_FALSE(changed.wait_for(lock, 10us, [] { return false; }));
  });
}

// test_mutex_mt_post.cpp: increments by many are not lost.
template <class Mutex>
void count_by_many() {
  Mutex m;
  int value = 0;
  {
    crew all;
    for (int i = 0; i < 10; ++i)
      all.go([&] {
        for (int n = 0; n < 100; ++n) {
          std::lock_guard guard{m};
          const int seen = value;
          if (n % 10 == 0) this_fiber::yield();
          value = seen + 1;
        }
      });
  }
  EXPECT_EQ(value, 1000);
}
TEST_P(boost_fiber, mutexes_exclude) {
  run([] {
    count_by_many<mutex>();
    count_by_many<timed_mutex>();
    count_by_many<recursive_mutex>();
    count_by_many<recursive_timed_mutex>();
  });
}

// test_mutex_dispatch.cpp, test_lock: what is held cannot be had a second time, and misuse is an error.
TEST_P(boost_fiber, mutexes_tell_misuse) {
  run([] {
    mutex m;
    m.lock();
    EXPECT_THROW(m.lock(), usage_error);
    crew all;
    all.go([&] {
      EXPECT_FALSE(m.try_lock());
      EXPECT_THROW(m.unlock(), usage_error);
    });
    all.join();
    m.unlock();
    EXPECT_THROW(m.unlock(), usage_error);
  });
}

// test_mutex_post.cpp, fn13 to fn16: recursive ones.
TEST_P(boost_fiber, recursive_mutexes_are_free_after_as_many_unlocks) {
  run([] {
    recursive_timed_mutex m;
    for (int i = 0; i < 3; ++i) m.lock();
    for (int held = 3; held >= 0; --held) {
      spawn([&, held] {
        EXPECT_EQ(m.try_lock(), held == 0);
        if (held == 0) m.unlock();
      }).join();
      if (held > 0) m.unlock();
    }
  });
}

// test_mutex_post.cpp, fn8 to fn12: timed ones.
TEST_P(boost_fiber, timed_mutexes_give_up) {
  run([] {
    timed_mutex m;
    std::unique_lock mine{m};
    spawn([&] {
      EXPECT_FALSE(m.try_lock_for(100us));
      EXPECT_FALSE(m.try_lock_until(std::chrono::system_clock::now() + 100us));
    }).join();
    auto later = spawn([&] {
      const bool got = m.try_lock_for(1h);
      if (got) m.unlock();
      return got;
    });
    this_fiber::sleep_for(50us);
    mine.unlock();
    EXPECT_TRUE(later.join());
  });
}

// test_promise_post.cpp: values of all kinds, and a reference.
TEST_P(boost_fiber, promises_keep_values_references_and_nothing) {
  run([] {
    promise<int> number;
    promise<int&> place;
    promise<void> done;
    promise<std::unique_ptr<int>> box;
    int there = 0;
    auto a = number.get_future();
    auto b = place.get_future();
    auto c = done.get_future();
    auto d = box.get_future();
    spawn([&] {
      number.set_value(7);
      place.set_value(there);
      done.set_value();
      box.set_value(std::make_unique<int>(8));
    }).join();
    EXPECT_EQ(a.get(), 7);
    EXPECT_EQ(&b.get(), &there);
    EXPECT_NO_THROW(c.get());
    EXPECT_EQ(*d.get(), 8);
    EXPECT_FALSE(a.valid());
  });
}

// test_promise_post.cpp: a second value, a second future.
TEST_P(boost_fiber, promises_are_kept_once) {
  run([] {
    promise<int> p;
    auto f = p.get_future();
    EXPECT_THROW(static_cast<void>(p.get_future()), future_error);
    p.set_value(1);
    EXPECT_THROW(p.set_value(2), future_error);
    EXPECT_THROW(p.set_exception(std::make_exception_ptr(1)), future_error);
    EXPECT_EQ(f.get(), 1);
  });
}

// test_future_post.cpp: a promise that goes away, and exceptions.
TEST_P(boost_fiber, futures_bring_failures) {
  run([] {
    future<int> broken, failed;
    {
      promise<int> p;
      broken = p.get_future();
    }
    EXPECT_THROW(broken.get(), broken_promise);
    promise<int> p;
    failed = p.get_future();
    p.set_exception(std::make_exception_ptr(std::runtime_error{"no"}));
    EXPECT_THROW(failed.get(), std::runtime_error);
    EXPECT_THROW(failed.get(), future_error);
  });
}

// test_future_post.cpp, wait_for and wait_until
TEST_P(boost_fiber, futures_give_up_in_time) {
  run([] {
    promise<void> p;
    auto f = p.get_future();
    EXPECT_EQ(f.wait_for(100us), std::future_status::timeout);
    EXPECT_EQ(f.wait_until(std::chrono::system_clock::now() + 100us), std::future_status::timeout);
    p.set_value();
    EXPECT_EQ(f.wait_for(0us), std::future_status::ready);
    f.wait();
    f.get();
  });
}

// test_shared_future_post.cpp: many readers, and copies that outlive the first.
TEST_P(boost_fiber, shared_futures_have_many_readers) {
  run([] {
    promise<std::string> p;
    shared_future<std::string> first = p.get_future().share();
    std::atomic<int> read{0};
    crew all;
    for (int i = 0; i < 10; ++i)
      all.go([&read, mine = first] {
        EXPECT_EQ(mine.get(), "text");
        ++read;
      });
    first = {};
    EXPECT_FALSE(first.valid());
    p.set_value("text");
    all.join();
    EXPECT_EQ(read, 10);
  });
}

// test_packaged_task_post.cpp: results, exceptions, a second call, a reset.
TEST_P(boost_fiber, packaged_tasks_run_once_until_they_are_reset) {
  run([] {
    packaged_task task{[](int a, int b) {
      if (b == 0) throw std::invalid_argument{"b"};
      return a / b;
    }};
    auto f = task.get_future();
    task(6, 3);
    EXPECT_EQ(f.get(), 2);
    EXPECT_THROW(task(1, 1), future_error);
    task.reset();
    f = task.get_future();
    auto other = std::move(task);
    EXPECT_FALSE(task.valid());  // NOLINT(bugprone-use-after-move): what is tested
    spawn([&] { other(1, 0); }).join();
    EXPECT_THROW(f.get(), std::invalid_argument);
  });
}

// test_async_post.cpp: arguments by value, by reference and by move.
TEST_P(boost_fiber, async_passes_its_arguments) {
  run([] {
    int changed = 0;
    auto f = async([](int& to, std::unique_ptr<int> from) { return to = *from; }, std::ref(changed),
                   std::make_unique<int>(5));
    EXPECT_EQ(f.get(), 5);
    EXPECT_EQ(changed, 5);
    auto nothing = async([] {});
    nothing.get();
    EXPECT_THROW(async([]() -> int { throw std::runtime_error{"no"}; }).get(), std::runtime_error);
  });
}

// test_fss_post.cpp: each fiber has its own, made at the first use and destroyed at the end.
TEST_P(boost_fiber, local_values_are_each_fibers_own) {
  run([] {
    static std::atomic<int> alive{0};
    alive = 0;
    struct counted {
      int value = 0;
      counted() { ++alive; }
      counted(const counted&) = delete;
      ~counted() { --alive; }
    };
    static fiber_local<std::shared_ptr<counted>> mine{[] { return std::make_shared<counted>(); }};
    crew all;
    for (int i = 0; i < 5; ++i)
      all.go([i] {
        EXPECT_EQ((*mine)->value, 0);
        (*mine)->value = i;
        this_fiber::yield();
        this_fiber::sleep_for(20us);
        EXPECT_EQ((*mine)->value, i);
      });
    all.join();
    EXPECT_EQ(alive, 0);
    EXPECT_FALSE(mine.has_value()) << "this fiber has not used it";
  });
}

// test_fss_post.cpp, do_test_tss_cleanup_not_called_for_null_pointer: what was not used is not destroyed.
TEST_P(boost_fiber, local_values_that_were_not_used_are_not_made) {
  run([] {
    static std::atomic<int> made{0};
    made = 0;
    static fiber_local<int> lazy{[] { return ++made; }};
    spawn([] { this_fiber::yield(); }).join();
    EXPECT_EQ(made, 0);
    spawn([] { EXPECT_EQ(*lazy, *lazy); }).join();
    EXPECT_EQ(made, 1);
  });
}

// test_fiber_post.cpp, test_id and test_join: ids differ while fibers live; a handle is joined once.
TEST_P(boost_fiber, ids_tell_fibers_apart) {
  run([] {
    channel<int> hold;
    auto a = spawn([&] {
      hold.recv();
      return this_fiber::get_id();
    });
    auto b = spawn([&] {
      hold.recv();
      return this_fiber::get_id();
    });
    const fiber_id id_a = a.get_id(), id_b = b.get_id();
    EXPECT_NE(id_a, id_b);
    EXPECT_NE(id_a, this_fiber::get_id());
    EXPECT_EQ(join_handle<void>{}.get_id(), fiber_id{});
    hold.close();
    EXPECT_EQ(a.join(), id_a);
    EXPECT_EQ(b.join(), id_b);
    EXPECT_FALSE(a.joinable());
    EXPECT_THROW(a.join(), usage_error);
  });
}

// test_fiber_post.cpp, test_replace, test_move: a handle moves, its fiber does not notice.
TEST_P(boost_fiber, handles_move) {
  run([] {
    bool ran = false;
    auto first = spawn([&] { ran = true; });
    join_handle<void> second = std::move(first);
    EXPECT_FALSE(first.joinable());  // NOLINT(bugprone-use-after-move): what is tested
    EXPECT_TRUE(second.joinable());
    second.join();
    EXPECT_TRUE(ran);
  });
}

// test_fiber_post.cpp, test_detach: a detached fiber goes on by itself.
TEST_P(boost_fiber, detached_fibers_go_on) {
  run([] {
    latch reached{2};
    {
      auto a = spawn([&] {
        this_fiber::sleep_for(20us);
        reached.count_down();
      });
      a.detach();
      EXPECT_FALSE(a.joinable());
      EXPECT_THROW(a.detach(), usage_error);
    }
    spawn([&] { reached.count_down(); }).detach();
    reached.wait();
  });
}

// test_fiber_post.cpp, test_yield: fibers of one worker take turns.
TEST(boost_fiber_on_one_worker, fibers_take_turns_when_they_yield) {
  runtime rt{{.workers = 1, .spare_workers = 0}};
  rt.run([] {
    std::string order;
    crew all;
    for (const char name : {'a', 'b'})
      all.go([&order, name] {
        for (int i = 0; i < 5; ++i) {
          order += name;
          this_fiber::yield();
        }
      });
    all.join();
    EXPECT_EQ(std::count(order.begin(), order.end(), 'a'), 5);
    EXPECT_EQ(order.find("aa"), std::string::npos) << order;
    EXPECT_EQ(order.find("bb"), std::string::npos) << order;
  });
}

// test_fiber_post.cpp, test_sleep_for, test_sleep_until: not shorter than asked for.
TEST_P(boost_fiber, sleeps_are_not_too_short) {
  run([] {
    using clock = std::chrono::steady_clock;
    const auto start = clock::now();
    this_fiber::sleep_for(300us);
    EXPECT_GE(clock::now() - start, 300us);
    const auto due = std::chrono::system_clock::now() + 300us;
    this_fiber::sleep_until(due);
    EXPECT_GE(std::chrono::system_clock::now(), due);
    this_fiber::sleep_for(-1s);
    this_fiber::sleep_until(clock::now() - 1h);
  });
}

// test_fiber_launch.cpp: functions, function objects, members, arguments that are only moved.
namespace launched {
int doubled(int n) { return 2 * n; }
struct adder {
  int base;
  int add(int n) const { return base + n; }
  int operator()(int n) const { return add(n); }
};
}  // namespace launched
TEST_P(boost_fiber, all_that_can_be_called_is_launched) {
  run([] {
    EXPECT_EQ(spawn(launched::doubled, 4).join(), 8);
    EXPECT_EQ(spawn(launched::adder{3}, 4).join(), 7);
    const launched::adder object{5};
    EXPECT_EQ(spawn(&launched::adder::add, &object, 4).join(), 9);
    EXPECT_EQ(spawn([own = std::make_unique<int>(6)](std::unique_ptr<int> given) { return *own + *given; },
                    std::make_unique<int>(1))
                  .join(),
              7);
    EXPECT_EQ(spawn(fiber_options{.name = "named", .stack_size = 65536}, [] { return std::string{this_fiber::name()}; })
                  .join(),
              "named");
  });
}

// test_fiber_launch.cpp, test_fiber_exception: what leaves a fiber reaches who joins it, and nobody else.
TEST_P(boost_fiber, exceptions_reach_the_joiner) {
  run([] {
    auto bad = spawn([]() -> int { throw std::logic_error{"bad"}; });
    auto good = spawn([] { return 1; });
    EXPECT_EQ(good.join(), 1);
    EXPECT_THROW(bad.join(), std::logic_error);
  });
}

// examples/work_stealing.cpp: a tree of fibers, each of which may run anywhere.
int leaves(int depth) {
  if (depth == 0) return 1;
  auto left = spawn(leaves, depth - 1), right = spawn(leaves, depth - 1);
  return left.join() + right.join();
}
TEST_P(boost_fiber, fibers_of_a_tree_are_shared_among_workers) {
  run([] { EXPECT_EQ(leaves(9), 512); });
}

// examples/work_sharing.cpp: one fiber a letter, each of which goes on wherever a worker is free.
TEST_P(boost_fiber, fibers_go_on_on_whichever_worker_is_free) {
  run([] {
    const std::string letters = "abcdefghijklmnopqrstuvwxyz";
    mutex m;
    std::multiset<char> seen;
    {
      crew all;
      for (const char c : letters)
        all.go([&, c] {
          for (int i = 0; i < 10; ++i) {
            this_fiber::yield();
            std::lock_guard guard{m};
            seen.insert(c);
          }
        });
    }
    EXPECT_EQ(seen.size(), 260u);
    for (const char c : letters) EXPECT_EQ(seen.count(c), 10u);
  });
}

// examples/wait_stuff.cpp, wait_first_value: the first of several results, by a select on futures.
TEST_P(boost_fiber, the_first_result_wins) {
  run([] {
    channel<int> hold;
    auto slow = async([&] { return hold.recv().value_or(0); });
    auto fast = async([] { return 3; });
    int got = 0;
    select(on_ready(slow, never), on_ready(fast, [&] { got = fast.get(); }));
    EXPECT_EQ(got, 3);
    static_cast<void>(hold.send(4));
    EXPECT_EQ(slow.get(), 4);
  });
}

// examples/wait_stuff.cpp, wait_first_success: failures are passed over until a result comes.
TEST_P(boost_fiber, the_first_success_wins) {
  run([] {
    std::vector<join_handle<int>> tries;
    tries.push_back(spawn([]() -> int { throw std::runtime_error{"first"}; }));
    tries.push_back(spawn([] {
      this_fiber::sleep_for(200us);
      return 2;
    }));
    tries.push_back(spawn([]() -> int { throw std::runtime_error{"third"}; }));
    int got = 0, failures = 0;
    while (got == 0) {
      std::vector<decltype(on_ready(tries[0]))> cases;
      for (const auto& h : tries) cases.push_back(on_ready(h));
      const auto at = static_cast<std::ptrdiff_t>(select(cases));
      try {
        got = tries[static_cast<std::size_t>(at)].join();
      } catch (const std::runtime_error&) {
        ++failures;
      }
      tries.erase(tries.begin() + at);
    }
    EXPECT_EQ(got, 2);
    EXPECT_LE(failures, 2);
    for (auto& h : tries) EXPECT_THROW(h.join(), std::runtime_error);
  });
}

}  // namespace
}  // namespace ramie::ported
