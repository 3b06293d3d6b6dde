// What a child inherits, by the way it was started: the table of docs/guides/structured.md, row by row. Whether a child
// is a call, a fork job taken by another worker, or a fiber of its own must make no difference.
#include <ramie/ramie.hpp>

#include <ramie/fiber/testing.hpp>

#include <functional>
#include <optional>
#include <string>

namespace ramie {
namespace {

using namespace fiber_tests;

using body = std::function<void()>;
enum class ties { strand, own };  // shares its starter's state and limits, or has its own

struct way {
  const char* name;
  ties tied;
  void (*start)(const body& b);  // returns when `b` has ended; rethrows its exception
};

void begun_and_joined(scope& s, const body& b) {
  std::atomic<bool> begun{false};
  s.spawn([&] {
    begun = true;
    b();
  });
  await([&] { return begun.load() || s.is_cancelled(); });
  s.join();
}

const way ways[] = {
    {"first_of_fork_join", ties::strand, [](const body& b) { fork_join([&] { b(); }, [] {}); }},
    {"second_of_fork_join", ties::strand, [](const body& b) { fork_join([] {}, [&] { b(); }); }},
    {"promoted_fork_job", ties::strand,
     [](const body& b) {
       std::atomic<bool> begun{false};
       fork_join([&] { await([&] { return begun.load(); }); },
                 [&] {
                   begun = true;
                   b();
                 });
     }},
    {"parallel_for", ties::strand, [](const body& b) { parallel_for(0, 1, [&](int) { b(); }); }},
    {"child_at_join", ties::strand,
     [](const body& b) {
       scope s;
       s.spawn(b);
       s.join();
     }},
    {"child_before_join", ties::strand,
     [](const body& b) {
       scope s;
       begun_and_joined(s, b);
     }},
    {"child_after_a_wait", ties::strand,
     [](const body& b) {
       scope s;
       this_fiber::yield();
       s.spawn(b);
       s.join();
     }},
    {"child_after_a_wait_before_join", ties::strand,
     [](const body& b) {
       scope s;
       this_fiber::yield();
       begun_and_joined(s, b);
     }},
    {"child_of_a_child", ties::strand,
     [](const body& b) {
       scope s;
       s.spawn([&] { s.spawn(b); });
       s.join();
     }},
    {"child_of_a_child_after_waits", ties::strand,
     [](const body& b) {
       scope s;
       this_fiber::yield();
       s.spawn([&] {
         this_fiber::yield();
         s.spawn([&] { s.spawn(b); });
       });
       s.join();
     }},
    {"child_within_a_fork", ties::strand,
     [](const body& b) {
       scope s;
       fork_join([&] { s.spawn(b); }, [] {});
       s.join();
     }},
    {"child_with_options", ties::strand,
     [](const body& b) {
       scope s;
       s.spawn(fiber_options{.stack_size = 512 * 1024}, b);
       s.join();
     }},
    {"child_with_a_result", ties::strand,
     [](const body& b) {
       scope s;
       this_fiber::yield();
       auto r = s.spawn([&] {
         b();
         return 1;
       });
       s.join();
       EXPECT_EQ(r.get(), 1);
     }},
    {"child_without_a_join", ties::strand,
     [](const body& b) {
       std::exception_ptr failure;
       {
         scope s;
         this_fiber::yield();
         s.spawn([&] {
           try {
             b();
           } catch (...) {
             failure = std::current_exception();
           }
         });
       }
       if (failure != nullptr) std::rethrow_exception(failure);
     }},
    {"spawn", ties::own, [](const body& b) { spawn([&] { b(); }).join(); }},
};

class children : public ::testing::TestWithParam<std::tuple<int, way>> {
 protected:
  void SetUp() override { counted::reset(); }
  void TearDown() override { EXPECT_EQ(counted::alive, 0); }
  template <class F>
  void in_runtime(F f) {
    runtime rt{{.workers = std::get<0>(GetParam())}};
    rt.run([&] { f(); });
  }
  [[nodiscard]] static bool are_strands() { return std::get<1>(GetParam()).tied == ties::strand; }
  static void start(const body& b) { std::get<1>(GetParam()).start(b); }
};
INSTANTIATE_TEST_SUITE_P(ways, children, ::testing::Combine(few_and_many(), ::testing::ValuesIn(ways)),
                         [](const auto& i) {
                           return std::string{std::get<1>(i.param).name} + "_on_" +
                                  std::to_string(std::get<0>(i.param));
                         });

/// Waits until it is cancelled, and counts that.
body waits_for_ever(channel<int>& never, std::atomic<int>& begun, std::atomic<int>& stopped) {
  return [&, c = counted{1}] {
    ++begun;
    try {
      never.recv();
    } catch (const cancelled&) {
      ++stopped;
      throw;
    }
  };
}

TEST_P(children, end_with_the_deadline_around_them) {
  in_runtime([] {
    channel<int> never;
    std::atomic<int> begun{0}, stopped{0};
    EXPECT_THROW(with_timeout(10ms, [&] { start(waits_for_ever(never, begun, stopped)); }), timeout_error);
    EXPECT_EQ(stopped, begun);
    const auto deadline = std::chrono::steady_clock::now() + 1h;
    std::optional<std::chrono::steady_clock::time_point> seen;
    with_deadline(deadline, [&] { start([&] { seen = this_fiber::deadline(); }); });
    EXPECT_EQ(seen.has_value(), are_strands());
    EXPECT_EQ(seen.value_or(deadline), deadline);
  });
}

TEST_P(children, see_the_values_that_are_bound_around_them) {
  static const scoped_value<int> bound;
  in_runtime([] {
    bound.with(1, [] {
      bound.with(2, [] {
        start([] {
          EXPECT_EQ(bound.get(), 2);
          bound.with(3, [] {
            start([] { EXPECT_EQ(bound.get(), 3); });
            this_fiber::yield();
            EXPECT_EQ(bound.get(), 3);
          });
          EXPECT_EQ(bound.get(), 2);
        });
        EXPECT_EQ(bound.get(), 2);
      });
      start([] { EXPECT_EQ(bound.get(), 1); });
    });
    start([] { EXPECT_EQ(bound.find(), nullptr); });
  });
}

TEST_P(children, end_when_their_owner_is_asked_to_stop) {
  in_runtime([] {
    channel<int> never;
    std::atomic<int> begun{0}, stopped{0};
    auto owner = spawn([&] { start(waits_for_ever(never, begun, stopped)); });
    await([&] { return begun == 1; });
    owner.request_stop();
    EXPECT_THROW(owner.join(), child_cancelled);
    EXPECT_EQ(stopped, 1);
  });
}

TEST_P(children, end_when_the_handle_of_their_owner_goes) {
  in_runtime([] {
    channel<int> never;
    std::atomic<int> begun{0}, stopped{0};
    {
      auto owner = spawn([&] { start(waits_for_ever(never, begun, stopped)); });
      await([&] { return begun == 1; });
    }
    EXPECT_EQ(stopped, 1);
  });
}

TEST_P(children, end_when_a_scope_around_them_fails) {
  in_runtime([] {
    channel<int> never;
    std::atomic<int> begun{0}, stopped{0};
    scope outer;
    outer.spawn([&] { start(waits_for_ever(never, begun, stopped)); });
    this_fiber::yield();
    outer.spawn([&] {
      await([&] { return begun == 1; });
      throw 7;
    });
    EXPECT_THROW(outer.join(), int);
    EXPECT_EQ(stopped, 1);
  });
}

TEST_P(children, end_with_the_runtime) {
  channel<int> never;
  std::atomic<int> begun{0}, stopped{0};
  in_runtime([&] {
    spawn([&] { start(waits_for_ever(never, begun, stopped)); }).detach();
    await([&] { return begun == 1; });
  });
  EXPECT_EQ(stopped, 1);
}

TEST_P(children, are_protected_by_the_shield_around_them) {
  in_runtime([] {
    channel<int> gate;
    std::atomic<int> begun{0}, passed{0};
    auto owner = spawn([&] {
      shield([&] {
        start([&] {
          ++begun;
          passed += gate.recv().value_or(0);
        });
      });
      channel<int>{}.recv();  // the shield is over
    });
    await([&] { return begun == 1; });
    owner.request_stop();
    this_fiber::sleep_for(1ms);
    static_cast<void>(gate.send(1));
    EXPECT_THROW(owner.join(), child_cancelled);
    EXPECT_EQ(passed, 1);
  });
}

TEST_P(children, are_protected_by_the_shield_around_them_while_the_runtime_ends) {
  channel<int> never;
  std::atomic<int> begun{0}, passed{0}, refused{0};
  in_runtime([&] {
    spawn([&] {
      ++begun;
      try {
        never.recv();
      } catch (const cancelled&) {
        shield([&] {
          try {
            start([&] {
              this_fiber::sleep_for(1ms);
              ++passed;
            });
          } catch (const child_cancelled&) {
            ++refused;  // a new fiber does not start any more, a strand does
          }
        });
      }
    }).detach();
    await([&] { return never.statistics().waiting_receivers == 1; });  // it learns of the end when all workers do
  });
  EXPECT_EQ(passed, are_strands() ? 1 : 0);
  EXPECT_EQ(refused, are_strands() ? 0 : 1);
}

TEST_P(children, share_fiber_locals_identity_and_name_or_have_their_own) {
  static fiber_local<int> mark{[] { return 0; }};
  in_runtime([] {
    auto owner = spawn(fiber_options{.name = "owner"}, [] {
      *mark = 5;
      const fiber_id me = this_fiber::get_id();
      int seen = -1;
      bool same_id = false;
      std::string name;
      start([&] {
        seen = *mark;
        same_id = this_fiber::get_id() == me;
        name = this_fiber::name();
        *mark = 6;
      });
      EXPECT_EQ(seen, are_strands() ? 5 : 0);
      EXPECT_EQ(same_id, are_strands());
      EXPECT_EQ(name, are_strands() ? "owner" : "");
      EXPECT_EQ(*mark, are_strands() ? 6 : 5);
    });
    owner.join();
  });
}

TEST_P(children, pass_on_what_they_throw) {
  in_runtime([] { EXPECT_THROW(start([] { throw 3; }), int); });
}

// A shield keeps out what is outside of it, and not what a scope inside it does to its children.
TEST_P(children, scopes_inside_a_shield_are_cancelled) {
  in_runtime([] {
    std::atomic<int> begun{0}, ended{0};
    std::atomic<bool> stopping{false};
    auto owner = spawn([&] {
      shield([&] {
        scope s;
        for (int i = 0; i < 4; ++i)
          s.spawn(fiber_options{.name = "child"}, [&] {
            ++begun;
            try {
              this_fiber::sleep_for(1h);
            } catch (const cancelled&) {
              ++ended;
              throw;
            }
          });
        fiber_tests::await([&] { return stopping.load(); });
        for (int i = 0; i < 10; ++i) this_fiber::yield();
        EXPECT_EQ(ended, 0) << "the owner's shield is around them, too";
        s.cancel();
        s.join();
      });
    });
    fiber_tests::await([&] { return begun == 4; });
    owner.request_stop();
    stopping = true;
    EXPECT_NO_THROW(owner.join());
    EXPECT_EQ(ended, 4);
  });
}

}  // namespace
}  // namespace ramie
