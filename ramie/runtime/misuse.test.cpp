// Mistakes of users, and refusals of the system: each has its own clear error.
// A program of its own: it refuses threads by its own pthread_create.
#include <ramie/fiber/blocking.hpp>
#include <ramie/fiber/fork_join.hpp>
#include <ramie/fiber/scope.hpp>
#include <ramie/fiber/testing.hpp>
#include <ramie/stack/pool.hpp>
#include <ramie/stack/testing.hpp>

#include <dlfcn.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {
/// How many more threads may be made before the next is refused; negative: all.
std::atomic<int> threads_left{-1};
}  // namespace

// The sanitizer's, where it is part of the program.
extern "C" [[gnu::weak]] int __interceptor_pthread_create(  // NOLINT(bugprone-reserved-identifier)
    pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument);

// In front of the C library's: limits do not bind a privileged user, so the refusal is made here.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                              void* argument) {
  using function = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto next = __interceptor_pthread_create != nullptr
                               ? &__interceptor_pthread_create
                               : reinterpret_cast<function>(::dlsym(RTLD_NEXT, "pthread_create"));
  if (threads_left >= 0 && threads_left-- <= 0) {
    threads_left = 0;
    return EAGAIN;
  }
  return next(thread, attributes, start, argument);
}

namespace ramie {
namespace {

using namespace fiber_tests;

class threads_refused_after {
 public:
  explicit threads_refused_after(int n) { threads_left = n; }
  threads_refused_after(const threads_refused_after&) = delete;
  threads_refused_after& operator=(const threads_refused_after&) = delete;
  ~threads_refused_after() { threads_left = -1; }
};

class misuse : public with_workers {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, detail::testing::death_test_style());
    counted::reset();
  }
  void TearDown() override { EXPECT_EQ(counted::alive, 0); }
};
INSTANTIATE_TEST_SUITE_P(workers, misuse, few_and_many());

// Options out of range.

TEST(bad_options, are_named_with_their_value_and_range) {
  const auto refused = [](runtime_options o) { return message_of<invalid_argument>([&] { runtime rt{o}; }); };
  constexpr int low = std::numeric_limits<int>::min();
  constexpr int high = std::numeric_limits<int>::max();
  for (const int n : {-1, 1025, low, high}) {
    const std::string what = refused({.workers = n});
    EXPECT_TRUE(contains(what, "runtime_options::workers") && contains(what, std::to_string(n)) &&
                contains(what, "1024"))
        << what;
  }
  for (const std::size_t n :
       {std::size_t{1}, std::size_t{16 * 1024 - 1}, (std::size_t{1} << 30) + 1, ~std::size_t{0}}) {
    const std::string what = refused({.workers = 1, .stack_size = n});
    EXPECT_TRUE(contains(what, "stack_size") && contains(what, std::to_string(n)) && contains(what, "16384")) << what;
  }
  for (const int n : {-1, 257, low, high}) {
    const std::string what = refused({.workers = 1, .spare_workers = n});
    EXPECT_TRUE(contains(what, "spare_workers") && contains(what, std::to_string(n))) << what;
  }
  for (const int n : {0, -1, 4097, low, high}) {
    const std::string what = refused({.workers = 1, .blocking_threads = n});
    EXPECT_TRUE(contains(what, "blocking_threads") && contains(what, std::to_string(n))) << what;
  }
  for (const auto t : {0ms, -1ms, std::chrono::milliseconds::max()}) {
    const std::string what = refused({.workers = 1, .stall_after = t});
    EXPECT_TRUE(contains(what, "stall_after") && contains(what, std::to_string(t.count()))) << what;
  }
}

TEST_P(misuse, a_stack_size_out_of_range_is_refused_at_spawn) {
  in_runtime([] {
    for (const std::size_t n :
         {std::size_t{1}, std::size_t{16 * 1024 - 1}, (std::size_t{1} << 30) + 1, ~std::size_t{0}}) {
      const std::string what = message_of<invalid_argument>([&] {
        auto h = spawn(fiber_options{.name = "x", .stack_size = n}, [c = counted{1}] { ADD_FAILURE() << "was run"; });
      });
      EXPECT_TRUE(contains(what, "fiber_options::stack_size") && contains(what, std::to_string(n)) &&
                  contains(what, "1073741824"))
          << what;
    }
  });
}

// The wrong place or time.

TEST(spawn_on_a_plain_thread, is_refused) {
  counted::reset();
  const std::string what = message_of<usage_error>([] { auto h = spawn([c = counted{1}] {}); });
  EXPECT_TRUE(contains(what, "spawn") && contains(what, "runtime")) << what;
  EXPECT_THROW(static_cast<void>(spawn(fiber_options{.name = "x"}, [](std::stop_token) {})), usage_error);
  EXPECT_EQ(counted::alive, 0);
}

TEST_P(misuse, spawn_after_shutdown) {
  runtime_options o = options();
  o.name = "closed one";
  runtime rt{o};
  rt.shutdown();
  for (int i = 0; i < 3; ++i) {
    const std::string what = message_of<usage_error>([&] { auto h = rt.spawn([c = counted{1}] {}); });
    EXPECT_TRUE(contains(what, "closed one")) << what;
    EXPECT_THROW(static_cast<void>(rt.run([] {})), usage_error);
  }
  runtime other{options()};
  EXPECT_THROW(other.run([&] { static_cast<void>(rt.spawn([] {})); }), usage_error);
}

TEST_P(misuse, spawn_from_a_fiber_that_outlasts_the_beginning_of_the_shutdown) {
  runtime rt{options()};
  event began;
  auto handle = rt.spawn([&] {
    began.set();
    await([] { return this_fiber::stop_requested(); });
    EXPECT_THROW(static_cast<void>(spawn([c = counted{1}] {})), cancelled);
    EXPECT_THROW(static_cast<void>(rt.spawn([c = counted{1}] {})), cancelled);
  });
  began.wait();
  rt.shutdown();
  EXPECT_NO_THROW(handle.join());
}

TEST_P(misuse, shutdown_from_an_own_fiber) {
  runtime_options o = options();
  o.name = "mine";
  runtime rt{o};
  const std::string what = message_of<usage_error>([&] { rt.run([&] { rt.shutdown(); }); });
  EXPECT_TRUE(contains(what, "mine")) << what;
  EXPECT_THROW(rt.run([&] { fork_join([&] { rt.shutdown(); }, [] {}); }), usage_error);
  EXPECT_EQ(rt.run([] { return 1; }), 1) << "goes on";
}

TEST_P(misuse, shutdown_from_an_own_fiber_while_another_shutdown_is_under_way) {
  runtime rt{options()};
  event began;
  auto handle = rt.spawn([&] {
    began.set();
    await([] { return this_fiber::stop_requested(); });
    // Whatever the progress of the other one.
    for (int i = 0; i < 100; ++i) EXPECT_THROW(rt.shutdown(), usage_error);
  });
  began.wait();
  rt.shutdown();
  EXPECT_NO_THROW(handle.join());
}

// Handles.

// Not inlined: the compiler would see that there is nothing to join, and warn.
template <class R>
RAMIE_NOINLINE void refused(join_handle<R>& handle) {
  EXPECT_TRUE(contains(message_of<usage_error>([&] { handle.join(); }), "join"));
  EXPECT_THROW(static_cast<void>(handle.join_for(1ms)), usage_error);
  EXPECT_THROW(static_cast<void>(handle.join_until(std::chrono::steady_clock::now())), usage_error);
  EXPECT_TRUE(contains(message_of<usage_error>([&] { handle.detach(); }), "detach"));
  EXPECT_TRUE(contains(message_of<usage_error>([&] { handle.request_stop(); }), "request_stop"));
  EXPECT_FALSE(handle.joinable());
  EXPECT_EQ(handle.get_id(), fiber_id{});
}

TEST_P(misuse, joining_what_is_not_joinable) {
  in_runtime([] {
    join_handle<int> never;
    refused(never);
    auto joined = spawn([] {});
    joined.join();
    refused(joined);
    auto failed = spawn([] { throw 1; });
    EXPECT_THROW(failed.join(), int);
    refused(failed);
    auto detached = spawn([] {});
    detached.detach();
    refused(detached);
    auto moved = spawn([] {});
    auto target = std::move(moved);
    refused(moved);
    target.join();
  });
}

TEST_P(misuse, a_fiber_that_joins_itself) {
  in_runtime([] {
    for (int way = 0; way < 3; ++way) {
      join_handle<std::string> handle;
      event made;
      handle = spawn(fiber_options{.name = "narcissus"}, [&] {
        made.wait();
        std::string what;
        const auto try_it = [&] {
          what = message_of<usage_error>([&] {
            if (way == 2) static_cast<void>(handle.join_for(1h));
            else handle.join();
          });
        };
        if (way == 1) {
          event other_side;
          fork_join([&] { other_side.wait(); },
                    [&] {
                      try_it();  // it is the same fiber there
                      other_side.set();
                    });
        } else {
          try_it();
        }
        return what;
      });
      made.set();
      const std::string what = handle.join();
      EXPECT_TRUE(contains(what, "narcissus") && contains(what, "itself")) << what;
    }
  });
}

TEST_P(misuse, two_that_join_the_same_fiber) {
  in_runtime([] {
    event go, waiting;
    auto shared = spawn([&] {
      go.wait();
      return 4;
    });
    auto first = spawn([&] {
      waiting.set();
      for (;;) {
        try {
          return shared.join();
        } catch (const usage_error&) {
          this_fiber::yield();  // a try of the other's was first
        }
      }
    });
    waiting.wait();
    // It is unknown when the first one waits; until then a try like this one ends by itself.
    bool refused = false;
    while (!refused) {
      try {
        static_cast<void>(shared.join_for(0s));
        this_fiber::yield();
      } catch (const usage_error& e) {
        refused = contains(e.what(), "joining");
        EXPECT_TRUE(refused) << e.what();
      }
      if (first.join_for(0s).has_value()) break;
    }
    go.set();
    EXPECT_TRUE(!first.joinable() || first.join() == 4);
  });
}

// Deaths. What a fiber's name and the exception say is on standard error.

TEST_P(misuse, an_exception_that_leaves_a_detached_fiber_ends_the_process) {
  EXPECT_DEATH(in_runtime([] {
                 spawn(fiber_options{.name = "lonely one"}, [] {
                   this_fiber::yield();
                   throw std::runtime_error{"bad weather"};
                 }).detach();
                 event{}.wait();
               }),
               "lonely one.*bad weather");
  EXPECT_DEATH(in_runtime([] {
                 spawn([] { throw 1; }).detach();
                 event{}.wait();
               }),
               "not a std::exception");
}

TEST_P(misuse, detaching_a_fiber_that_failed_already_ends_the_process) {
  EXPECT_DEATH(in_runtime([] {
                 event began;
                 auto handle = spawn(fiber_options{.name = "late one"}, [&] {
                   began.set();
                   throw std::runtime_error{"bad weather"};
                 });
                 began.wait();
                 for (int i = 0; i < 100; ++i) this_fiber::yield();
                 handle.detach();
                 event{}.wait();
               }),
               "late one.*bad weather");
}

TEST_P(misuse, but_a_detached_fiber_may_end_by_cancellation) {
  runtime rt{options()};
  captured_stderr output;
  for (int i = 0; i < 10; ++i) rt.spawn([] { this_fiber::sleep_for(1h); }).detach();
  event began;
  rt.spawn([&] {
      began.set();
      throw cancelled{};
    }).detach();
  began.wait();
  rt.shutdown();
  EXPECT_FALSE(contains(output.text(), "ended by"));  // it may tell that the end takes long
}

TEST_P(misuse, a_failure_that_nobody_joins_for_is_reported) {
  captured_stderr output;
  in_runtime([] {
    {
      auto h = spawn(fiber_options{.name = "dropped"}, [] { throw std::runtime_error{"unseen"}; });
    }
    auto replaced = spawn(fiber_options{.name = "replaced"}, [] { throw 1; });
    replaced = {};
    {
      auto h = spawn([] { this_fiber::sleep_for(1h); });
      h.request_stop();
    }
    {
      auto h = spawn([] { return 1; });
    }
  });
  const std::string text = output.text();
  EXPECT_TRUE(contains(text, "\"dropped\"") && contains(text, "unseen")) << text;
  EXPECT_TRUE(contains(text, "\"replaced\"") && contains(text, "not a std::exception")) << text;
  EXPECT_EQ(occurrences(text, "\n"), 2) << text;
}

TEST_P(misuse, destroying_the_own_handle) {
  EXPECT_DEATH(in_runtime([] {
                 auto handle = std::make_unique<join_handle<void>>();
                 event made;
                 *handle = spawn([&] {
                   made.wait();
                   handle.reset();
                 });
                 made.set();
                 event{}.wait();
               }),
               "destroyed its own join handle");
}

TEST_P(misuse, destroying_the_runtime_from_an_own_fiber) {
  EXPECT_DEATH(
      {
        auto rt = std::make_unique<runtime>(options());
        rt->spawn([&] { rt.reset(); }).detach();
        event{}.wait();
      },
      "cannot be shut down from one of its own fibers");
}

RAMIE_NOINLINE int recurse(int depth) {
  volatile char frame[512];
  frame[0] = static_cast<char>(depth);
  return depth == 0 ? 0 : recurse(depth - 1) + frame[0];
}
constexpr int without_end = 1'000'000'000;

bool ended_by_the_overflow(int status) {
  if (WIFSIGNALED(status)) return WTERMSIG(status) == SIGSEGV;
  return sanitized && WIFEXITED(status) && WEXITSTATUS(status) != 0;
}

TEST_P(misuse, a_stack_overflow_names_the_fiber) {
  EXPECT_EXIT(in_runtime([] { spawn(fiber_options{.name = "too deep"}, recurse, without_end).join(); }),
              ended_by_the_overflow, "too deep");
  EXPECT_EXIT(
      in_runtime([] { spawn(fiber_options{.name = "own one", .stack_size = 64 * 1024}, recurse, without_end).join(); }),
      ended_by_the_overflow, "own one");
  // Forks have the name of their fiber.
  EXPECT_EXIT(in_runtime([] {
                spawn(fiber_options{.name = "forked"}, [] {
                  event right;
                  fork_join([&] { right.wait(); }, [] { recurse(without_end); });
                }).join();
              }),
              ended_by_the_overflow, "forked");
}

// The system refuses. Pools keep stacks, so what the first case of a process is refused may be there for the next
// one.

TEST_P(misuse, threads_refused_at_the_start) {
  for (int n = 0; n <= GetParam(); ++n) {  // the last is the monitor's
    const threads_refused_after limit{n};
    try {
      runtime rt{options()};
      ADD_FAILURE() << n;
    } catch (const resource_error& e) {
      EXPECT_EQ(e.code(), EAGAIN);
      EXPECT_TRUE(contains(e.what(), "thread") && contains(e.what(), "RLIMIT_NPROC") && contains(e.what(), "pids.max"))
          << e.what();
    }
  }
  EXPECT_EQ(in_runtime([] { return 1; }), 1);
}

TEST_P(misuse, threads_refused_for_blocking_calls) {
  runtime rt{options()};
  rt.run([&rt] {
    {
      const threads_refused_after limit{0};
      try {
        blocking([c = counted{1}] { ADD_FAILURE() << "was run"; });
        ADD_FAILURE();
      } catch (const resource_error& e) {
        EXPECT_EQ(e.code(), EAGAIN);
        EXPECT_TRUE(contains(e.what(), "blocking") && contains(e.what(), "RLIMIT_NPROC")) << e.what();
      }
    }
    // With one helper there, calls queue for it. It would end if it had nothing to do for long.
    std::atomic<bool> has_helper{false};
    std::atomic<bool> all_spawned{false};
    auto first = spawn([&] {
      return blocking([&] {
        has_helper = true;
        while (!all_spawned) std::this_thread::yield();
        return 1;
      });
    });
    await([&] { return has_helper.load(); });
    const threads_refused_after limit{0};
    std::vector<join_handle<int>> handles;
    for (int i = 0; i < 20; ++i) handles.push_back(spawn([i] { return blocking([i] { return i; }); }));
    await([&] { return rt.statistics().blocking_waiting == 20; });
    all_spawned = true;
    EXPECT_EQ(first.join(), 1);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(handles[static_cast<std::size_t>(i)].join(), i);
  });
}

TEST_P(misuse, threads_refused_for_spares_only_leave_stalled_what_is_stalled) {
  runtime_options o = options();
  o.stall_after = 1ms;
  runtime rt{o};
  const threads_refused_after limit{0};
  std::vector<join_handle<void>> hogs;
  for (int i = 0; i < 2 * GetParam(); ++i)
    hogs.push_back(rt.spawn([] {
      const auto until = std::chrono::steady_clock::now() + 10ms;
      while (std::chrono::steady_clock::now() < until) std::atomic_signal_fence(std::memory_order_seq_cst);
    }));
  for (auto& h : hogs) h.join();
}

TEST_P(misuse, a_stack_that_cannot_be_had_is_a_failure_of_the_fiber) {
  runtime rt{options()};
  rt.run([] {
    const fiber_options huge{.name = "huge", .stack_size = std::size_t{1} << 29};
    // The joiner's worker has a stack to continue on: only the large one is refused.
    std::vector<join_handle<void>> others;
    for (int i = 0; i < 10 * GetParam(); ++i) others.push_back(spawn([] { this_fiber::sleep_for(1ms); }));
    for (auto& h : others) h.join();
    {
      const detail::testing::failing_calls failing{0, ~std::size_t{0}};
      try {
        static bool pool_was_empty = true;
        const bool expected = std::exchange(pool_was_empty, false);
        spawn(huge, [expected, c = counted{1}] { EXPECT_FALSE(expected) << "was run"; }).join();
        EXPECT_FALSE(expected);
      } catch (const resource_error& e) {
        EXPECT_EQ(e.code(), ENOMEM);
        EXPECT_TRUE(contains(e.what(), "stack")) << e.what();
      }
    }
    EXPECT_EQ(spawn(huge, [] { return 1; }).join(), 1);
  });
}

TEST_P(misuse, no_address_space_at_the_start) {
  runtime_options o = options();
  o.stack_size = std::size_t{1} << 28;  // a class that was not used yet
  {
    const detail::testing::failing_calls failing{0, ~std::size_t{0}};
    try {
      static bool pool_was_empty = true;
      const bool expected = std::exchange(pool_was_empty, false);
      runtime rt{o};
      EXPECT_FALSE(expected);
    } catch (const resource_error& e) {
      EXPECT_EQ(e.code(), ENOMEM);
    }
  }
  EXPECT_EQ(run(o, [] { return 1; }), 1);
}

TEST_P(misuse, out_of_stacks_is_an_error_at_the_wait_that_needs_one_and_the_rest_goes_on) {
  runtime_options o = options();
  o.stack_size = std::size_t{1} << 26;  // few a slab
  o.spare_workers = 0;
  runtime rt{o};
  event go;
  std::atomic<int> refused{0}, parked{0}, ended{0};
  std::vector<join_handle<void>> handles;
  {
    const detail::testing::failing_calls failing{0, ~std::size_t{0}};
    for (int i = 0; i < 200; ++i)
      handles.push_back(rt.spawn([&] {
        try {
          ++parked;
          go.wait();
        } catch (const resource_error& e) {
          EXPECT_TRUE(contains(e.what(), "stack")) << e.what();
          ++refused;
        }
        ++ended;
      }));
    await([&] { return parked == 200 || refused > 0; });
    await([&] { return refused > 0; });
  }
  go.set();
  for (auto& h : handles) h.join();
  EXPECT_EQ(ended, 200);
  EXPECT_GT(refused, 0);
}

// A detached fiber's result may still have to wait when it is destroyed.
TEST_P(misuse, a_detached_fiber_may_return_a_handle) {
  runtime rt{options()};
  event ended;
  rt.run([&] {
    spawn([&] {
      return spawn([&] {
        try {
          this_fiber::sleep_for(1h);
        } catch (const cancelled&) {
          ended.set();
          throw;
        }
      });
    }).detach();
    ended.wait();
  });
}

// Recognised by its moves: a child that is spawned from elsewhere is moved into its fiber.
TEST_P(misuse, a_scope_s_child_whose_move_throws) {
  struct moves_badly {
    int* left;
    explicit moves_badly(int* n) : left{n} {}
    moves_badly(const moves_badly&) = default;
    moves_badly(moves_badly&& other) : left{other.left} {
      if (--*left == 0) throw std::runtime_error{"a move"};
    }
    void operator()() const {}
  };
  in_runtime([] {
    for (int nth = 1; nth < 8; ++nth) {
      int left = nth;
      try {
        scope s;
        const moves_badly child{&left};
        fork_join([&] { s.spawn(child); }, [] {});
        s.join();
      } catch (const std::runtime_error& e) {
        EXPECT_STREQ(e.what(), "a move");
      }
    }
  });
}

}  // namespace
}  // namespace ramie
