#include <ramie/runtime/runtime.hpp>

#include <ramie/fiber/fork_join.hpp>
#include <ramie/fiber/scope.hpp>
#include <ramie/fiber/testing.hpp>

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace ramie {
namespace {

using namespace fiber_tests;

/// Sets an environment variable, and restores it at the end.
class environment {
 public:
  environment(const char* name, const char* value) : name_{name} {
    if (const char* now = ::getenv(name)) before_ = now;
    if (value == nullptr) ::unsetenv(name);
    else ::setenv(name, value, 1);
  }
  environment(const environment&) = delete;
  environment& operator=(const environment&) = delete;
  ~environment() {
    if (before_) ::setenv(name_, before_->c_str(), 1);
    else ::unsetenv(name_);
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

class runtimes : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, runtimes, few_and_many());

// Options.

TEST_P(runtimes, have_the_workers_they_were_told) {
  runtime rt{options()};
  EXPECT_EQ(rt.workers(), GetParam());
  EXPECT_EQ(rt.options().workers, GetParam());
  EXPECT_EQ(rt.options().name, "ramie");
  // All of them run fibers: these wait for each other without suspending.
  std::atomic<int> here{0};
  std::vector<join_handle<std::thread::id>> handles;
  for (int i = 0; i < GetParam(); ++i)
    handles.push_back(rt.spawn([&] {
      ++here;
      while (here < GetParam()) std::this_thread::yield();
      return std::this_thread::get_id();
    }));
  std::set<std::thread::id> threads;
  for (auto& h : handles) threads.insert(h.join());
  EXPECT_EQ(threads.size(), static_cast<std::size_t>(GetParam()));
}

TEST_P(runtimes, name_their_threads) {
  runtime_options o = options();
  o.name = "quite a long name";
  runtime rt{o};
  rt.run([] {
    char name[16] = {};
    ASSERT_EQ(::pthread_getname_np(::pthread_self(), name, sizeof name), 0);
    EXPECT_EQ(std::string{name}.substr(0, 11), "quite a lo/");
  });
  EXPECT_EQ(rt.options().name, "quite a long name");
}

TEST(runtime_defaults, as_many_workers_as_the_affinity_mask_allows) {
  const environment none{"RAMIE_WORKERS", nullptr};
  cpu_set_t all;
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  const int cpus = CPU_COUNT(&all);
  {
    runtime rt;
    EXPECT_GE(rt.workers(), 1);
    EXPECT_LE(rt.workers(), cpus) << "a quota may allow less";
    EXPECT_EQ(rt.options().stack_size, 256u * 1024);
  }
  // On a thread of its own, since the mask is a thread's.
  std::thread{[&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      if (!CPU_ISSET(i, &all)) continue;
      CPU_SET(i, &one);
      break;
    }
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    runtime rt;
    EXPECT_EQ(rt.workers(), 1);
    EXPECT_EQ(rt.run([] { return 1; }), 1);
  }}.join();
}

TEST(runtime_defaults, come_from_the_environment) {
  const environment workers{"RAMIE_WORKERS", "3"};
  const environment placement{"RAMIE_PLACEMENT", "work_stealing"};
  for (const auto& [text, size] :
       {std::pair{"65536", 65536u}, {"64K", 65536u}, {"128k", 131072u}, {"1M", 1048576u}, {"2m", 2097152u}}) {
    const environment stack{"RAMIE_STACK_SIZE", text};
    runtime rt;
    EXPECT_EQ(rt.workers(), 3);
    EXPECT_EQ(rt.options().stack_size, size) << text;
  }
  const environment stack{"RAMIE_STACK_SIZE", "64K"};
  runtime rt{{.workers = 2, .stack_size = 512 * 1024}};
  EXPECT_EQ(rt.workers(), 2) << "what is given goes first";
  EXPECT_EQ(rt.options().stack_size, 512u * 1024);
}

TEST(runtime_defaults, an_empty_variable_is_none) {
  const environment workers{"RAMIE_WORKERS", ""};
  const environment placement{"RAMIE_PLACEMENT", ""};
  const environment stack{"RAMIE_STACK_SIZE", ""};
  runtime rt;
  EXPECT_GE(rt.workers(), 1);
  EXPECT_EQ(rt.options().stack_size, 256u * 1024);
}

// The message names the variable, its value and the range.
TEST(runtime_defaults, absurd_variables_are_refused) {
  for (const char* text : {"0", "-1", "1025", "4x", "x", " 4", "4 ", "+4", "1e3", "3.5", "0x10", "99999999999999999999",
                           "-99999999999999999999"}) {
    const environment variable{"RAMIE_WORKERS", text};
    const std::string what = message_of<invalid_argument>([] { runtime rt; });
    EXPECT_TRUE(contains(what, "RAMIE_WORKERS") && contains(what, text) && contains(what, "1024")) << what;
    EXPECT_NO_THROW((runtime{{.workers = 1}})) << "not looked at";
  }
  for (const char* text : {"0", "1", "16383", "8K", "1025M", "-64K", "64KB", "64G", "K", "9999999999999M", "big"}) {
    const environment variable{"RAMIE_STACK_SIZE", text};
    const std::string what = message_of<invalid_argument>([] { runtime rt{{.workers = 1}}; });
    EXPECT_TRUE(contains(what, "RAMIE_STACK_SIZE") && contains(what, "16384") && contains(what, "1073741824")) << what;
  }
  const environment variable{"RAMIE_PLACEMENT", "anywhere"};
  const std::string what = message_of<invalid_argument>([] { runtime rt{{.workers = 1}}; });
  EXPECT_TRUE(contains(what, "RAMIE_PLACEMENT") && contains(what, "anywhere") && contains(what, "work_stealing"))
      << what;
}

TEST_P(runtimes, stack_size_is_for_all_fibers) {
  runtime_options o = options();
  o.stack_size = 8 << 20;
  runtime rt{o};
  struct deep {
    static int go(int n) {
      volatile char frame[1024];
      frame[0] = 1;
      return n == 0 ? 0 : go(n - 1) + frame[0];
    }
  };
  const int depth = sanitized ? 1000 : 5000;
  EXPECT_EQ(rt.run([=] { return deep::go(depth); }), depth);
  EXPECT_EQ(rt.run([=] { return spawn(deep::go, depth).join() + deep::go(depth); }), 2 * depth);
}

// ramie::run.

TEST(run, gives_the_int_of_main) {
  EXPECT_EQ(run([] { return 7; }), 7);
  EXPECT_EQ(run([] {}), 0);
  EXPECT_EQ(run([] { return std::string{"no int"}; }), 0);
  EXPECT_EQ(run([] { return 'A'; }), 65);
  EXPECT_EQ(run({.workers = 2, .name = "mine"}, [] { return 3; }), 3);
  EXPECT_THROW(run([]() -> int { throw std::runtime_error{"x"}; }), std::runtime_error);
  EXPECT_THROW(run({.workers = -1}, [] {}), invalid_argument);
}

TEST(run, cancels_who_is_left_behind) {
  bool told = false;
  join_handle<void> left;
  EXPECT_EQ(run([&] {
              event started;
              left = spawn([&] {
                started.set();
                try {
                  this_fiber::sleep_for(1h);
                } catch (const cancelled&) {
                  told = true;
                  throw;
                }
              });
              started.wait();
              return 5;
            }),
            5);
  EXPECT_TRUE(told);
  EXPECT_THROW(left.join(), cancelled);
}

TEST_P(runtimes, run_from_within) {
  runtime rt{options()};
  EXPECT_EQ(rt.run([&] { return rt.run([&] { return rt.run([] { return 9; }); }); }), 9);
  // And a runtime inside a fiber of another.
  EXPECT_EQ(rt.run([] { return run({.workers = 2}, [] { return run({.workers = 1}, [] { return 8; }); }); }), 8);
}

// Several.

TEST_P(runtimes, one_after_the_other) {
  const int cycles = RAMIE_TSAN != 0 ? 20 : 200;
  for (int i = 0; i < cycles; ++i) {
    std::atomic<int> n{0};
    runtime rt{options()};
    if (i % 4 == 0) continue;  // never used
    EXPECT_EQ(rt.run([i] { return i; }), i);
    if (i % 4 == 1) continue;
    for (int k = 0; k < 10; ++k)
      rt.spawn([&] {
          ++n;
          this_fiber::yield();
        }).detach();
    if (i % 4 == 2) rt.shutdown();
  }
}

TEST_P(runtimes, several_at_once_used_from_each_other_s_fibers) {
  std::vector<std::unique_ptr<runtime>> all;
  for (int i = 0; i < 4; ++i) all.push_back(std::make_unique<runtime>(options()));
  struct tour {
    static int go(std::vector<std::unique_ptr<runtime>>& all, int hops) {
      if (hops == 0) return 0;
      this_fiber::yield();
      return all[static_cast<std::size_t>(hops) % 4]->spawn(go, std::ref(all), hops - 1).join() + 1;
    }
  };
  std::vector<join_handle<int>> tours;
  for (int i = 0; i < scaled(200); ++i)
    tours.push_back(all[static_cast<std::size_t>(i) % 4]->spawn(tour::go, std::ref(all), 20));
  for (auto& t : tours) EXPECT_EQ(t.join(), 20);
  // They end in any order.
  all[2].reset();
  EXPECT_EQ(all[1]->run([] { return 1; }), 1);
  all[0].reset();
  EXPECT_EQ(all[3]->run([&] { return all[1]->run([] { return 2; }); }), 2);
}

TEST_P(runtimes, start_and_stop_in_several_threads_at_once) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([] {
      for (int k = 0; k < (RAMIE_TSAN != 0 ? 3 : 20); ++k)
        EXPECT_EQ(run(options(), [k] { return spawn([k] { return k; }).join(); }), k);
    });
  for (auto& t : threads) t.join();
}

// Plain threads.

TEST_P(runtimes, hammered_by_threads) {
  runtime rt{options()};
  std::atomic<int> ran{0};
  std::vector<std::thread> threads;
  const int rounds = scaled(2000);
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      for (int k = 0; k < rounds; ++k) {
        switch ((i + k) % 4) {
          case 0: EXPECT_EQ(rt.spawn([&, k] { return ++ran, k; }).join(), k); break;
          case 1:
            EXPECT_EQ(rt.run([&, k] {
              auto child = spawn([&, k] { return k; });
              this_fiber::yield();
              ++ran;
              return child.join();
            }),
                      k);
            break;
          case 2: {
            event done;
            rt.spawn([&] {
                ++ran;
                this_fiber::yield();
                done.set();
              }).detach();
            done.wait();
            break;
          }
          default: {
            auto h = rt.spawn([&] {
              ++ran;
              auto [a, b] = fork_join([] { return 1; }, [] { return 2; });
              return a + b;
            });
            while (true) {
              if (auto r = h.join_for(1us)) {
                EXPECT_EQ(*r, 3);
                break;
              }
            }
          }
        }
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(ran, 8 * rounds);
}

TEST_P(runtimes, threads_and_fibers_wake_each_other_in_turns) {
  runtime rt{options()};
  for (int i = 0; i < scaled(1000); ++i) {
    event ping, pong;
    auto fiber = rt.spawn([&] {
      ping.wait();
      pong.set();
    });
    ping.set();
    pong.wait();
    fiber.join();
  }
}

}  // namespace
}  // namespace ramie
