// Clean-up: waits where no exception could travel to whoever asked the fiber to stop. They last, whatever the cause,
// and so do those of the children that they start; what was opened inside counts all the same. A table: every kind of
// wait, in every kind of clean-up, for every cause.
#include <ramie/ramie.hpp>

#include <gtest/gtest.h>

#include "clean_up_waits.hpp"
#include "on_workers.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

namespace ramie {
namespace {

using namespace std::chrono_literals;
using all_waits::at_end;
using all_waits::supplier;
using all_waits::wait_kind;
using all_waits::wait_kinds;

/// Whether the fiber is stopped before its clean-up begins, or while that waits.
bool stopped_before = true;
std::atomic<bool> may_be_stopped{false};
struct own_end {};

void wait_to_be_stopped() {
  if (!stopped_before) throw own_end{};
  may_be_stopped = true;
  this_fiber::sleep_for(1h);
}
void wait_and_go_on() {
  try {
    wait_to_be_stopped();
  } catch (const cancelled&) {
  } catch (const own_end&) {
  }
}

/// A clean-up: one wait of each kind, and a mark for each that lasted.
struct clean_up {
  supplier& from;
  std::atomic<int>& lasted;
  bool at_an_ordinary_end = false;  // what asks there is told of what its caller is asked

  void operator()() const {
    may_be_stopped = true;
    for (const wait_kind& k : wait_kinds) {
      k.wait(from);
      ++lasted;
      this_fiber::throw_if_stopped();
      if (at_an_ordinary_end) continue;
      EXPECT_FALSE(this_fiber::stop_requested()) << k.name;
      EXPECT_EQ(this_fiber::why_stopped(), this_fiber::stop_cause::none) << k.name;
      EXPECT_EQ(this_fiber::deadline(), std::nullopt) << k.name;
    }
  }
};
constexpr int each = static_cast<int>(wait_kinds.size());

struct place {
  const char* name;
  int times;        // how often the clean-up is called
  bool of_a_fiber;  // it has to be the whole function of a fiber
  void (*run)(clean_up);
};

struct calls_when_destroyed {
  std::function<void()> f;
  ~calls_when_destroyed() {
    if (f) f();
  }
};

const std::array places{
    place{"unwinding", 1, false,
          [](clean_up c) {
            const at_end end{c};
            wait_to_be_stopped();
          }},
    place{"unwinding_after_an_inner_exception", 1, false,
          [](clean_up c) {
            const at_end end{[c] {
              try {
                throw std::runtime_error{"inner"};
              } catch (const std::runtime_error&) {
                c();
              }
            }};
            wait_to_be_stopped();
          }},
    place{"unwinding_twice", 2, false,
          [](clean_up c) {
            const at_end end{[c] {
              try {
                const at_end inner{c};
                throw std::runtime_error{"inner"};
              } catch (const std::runtime_error&) {
              }
              c();
            }};
            wait_to_be_stopped();
          }},
    place{"child_that_is_a_fiber", 2, false,
          [](clean_up c) {
            const at_end end{[c] {
              scope s;
              s.spawn(fiber_options{}, c);
              c();
              s.join();
            }};
            wait_to_be_stopped();
          }},
    place{"grandchild", 1, false,
          [](clean_up c) {
            const at_end end{[c] {
              scope s;
              s.spawn(fiber_options{}, [c] {
                scope inner;
                inner.spawn(fiber_options{}, c);
                inner.join();
              });
              s.join();
            }};
            wait_to_be_stopped();
          }},
    place{"scope_without_join", 2, false,
          [](clean_up c) {
            const at_end end{[c] {
              scope s;
              s.spawn(fiber_options{}, c);
              s.spawn(fiber_options{.name = "other"}, c);
            }};
            wait_to_be_stopped();
          }},
    place{"children_that_are_fork_jobs", 2, false,
          [](clean_up c) {
            const at_end end{[c] {
              scope s;
              s.spawn(c);
              s.spawn(c);
              s.join();
            }};
            wait_to_be_stopped();
          }},
    place{"limited_scope", 3, false,
          [](clean_up c) {
            const at_end end{[c] {
              limited_scope s{2};
              for (int i = 0; i < 3; ++i) s.spawn(c);
              s.join();
            }};
            wait_to_be_stopped();
          }},
    place{"halves", 2, false,
          [](clean_up c) {
            const at_end end{[c] { fork_join(c, c); }};
            wait_to_be_stopped();
          }},
    place{"halves_of_halves", 4, false,
          [](clean_up c) {
            const at_end end{[c] {
              const auto both = [c] { fork_join(c, c); };
              fork_join(both, both);
            }};
            wait_to_be_stopped();
          }},
    place{"halves_below_others", 3, false,
          [](clean_up c) {
            const auto ends_with_halves = [c] {
              const at_end end{[c] { fork_join(c, c); }};
              wait_to_be_stopped();
            };
            const at_end end{c};
            fork_join(ends_with_halves, [] { this_fiber::sleep_for(1h); });
          }},
    place{"parallel_for", 4, false,
          [](clean_up c) {
            const at_end end{[c] { parallel_for(0, 4, [c](int) { c(); }); }};
            wait_to_be_stopped();
          }},
    place{"fiber_local", 1, true,
          [](clean_up c) {
            static fiber_local<calls_when_destroyed> local;
            local->f = c;
            wait_to_be_stopped();
          }},
    place{"child_in_a_fiber_local", 1, true,
          [](clean_up c) {
            static fiber_local<calls_when_destroyed> local;
            local->f = [c] {
              scope s;
              s.spawn(fiber_options{}, c);
              s.join();
            };
            wait_to_be_stopped();
          }},
    place{"closure_of_a_child_that_ran", 1, false,
          [](clean_up c) {
            scope s;
            s.spawn(fiber_options{}, [own = at_end{c}] { wait_to_be_stopped(); });
            s.join();
          }},
    place{"closure_of_a_child_that_was_dropped", 2, false,
          [](clean_up c) {
            wait_and_go_on();
            scope s;
            s.cancel();
            s.spawn([own = at_end{c}] {});
            s.spawn(fiber_options{}, [own = at_end{c}] {});
            s.join();
          }},
    place{"closure_of_a_child_that_could_not_start", 1, false,
          [](clean_up c) {
            wait_and_go_on();
            scope s;
            EXPECT_THROW(s.spawn(fiber_options{.stack_size = 1}, [own = at_end{c}] {}), invalid_argument);
          }},
    place{"result_of_a_child", 1, false,
          [](clean_up c) {
            scope s;
            s.spawn(fiber_options{}, [c] { return at_end{c}; });
            wait_and_go_on();
          }},
    place{"result_of_a_half", 1, false,
          [](clean_up c) {
            wait_and_go_on();
            event begun;
            try {
              fork_join(
                  [&] {
                    shield([&] { begun.wait(); });
                    throw own_end{};
                  },
                  [&] {
                    begun.set();
                    return at_end{c};
                  });
            } catch (const own_end&) {
            }
          }},
    place{"result_of_a_detached_fiber", 1, false,
          [](clean_up c) {
            spawn([c] { return at_end{c}; }).detach();
            while (!may_be_stopped) this_fiber::yield();  // it has begun
            wait_to_be_stopped();
          }},
    place{"destructor_at_an_ordinary_end", 1, false,
          [](clean_up c) {
            c.at_an_ordinary_end = true;
            const at_end end{c};
            wait_and_go_on();
          }},
    place{"noexcept_function", 1, false,
          [](clean_up c) {
            c.at_an_ordinary_end = true;
            const auto ends = [&]() noexcept { c(); };
            wait_and_go_on();
            ends();
          }},
    place{"noexcept_function_in_a_deadline", 1, false,
          [](clean_up c) {
            c.at_an_ordinary_end = true;
            wait_and_go_on();
            const at_end end{[c] { with_timeout(1h, c); }};
          }},
    place{"deleter", 1, false,
          [](clean_up c) {
            c.at_an_ordinary_end = true;
            const std::shared_ptr<void> end{nullptr, [c](void*) { c(); }};
            wait_and_go_on();
          }},
    place{"completion_of_a_barrier", 1, false,
          [](clean_up c) {
            wait_and_go_on();
            barrier b{1, c};
            b.arrive_and_wait();
          }},
    place{"result_that_nobody_asked_for", 1, false,
          [](clean_up c) {
            auto ended = std::make_shared<std::atomic<bool>>(false);
            auto h = spawn([c, ended] {
              *ended = true;
              return at_end{c};
            });
            while (!*ended) this_fiber::yield();
            wait_and_go_on();
          }},
};

void wait_until_it_may_be_stopped() {
  while (!may_be_stopped) this_fiber::sleep_for(50us);
}

/// Calls f as a fiber's code, and stops that: each returns when f has ended.
struct cause {
  const char* name;
  bool of_a_fiber;  // f may be the whole function of a fiber
  void (*run)(const runtime_options& options, const std::function<void()>& f);
};
const std::array causes{
    cause{"request", true,
          [](const runtime_options& o, const std::function<void()>& f) {
            runtime{o}.run([&] {
              auto h = spawn([&] { f(); });
              wait_until_it_may_be_stopped();
              h.request_stop();
              try {
                h.join();
              } catch (const child_cancelled&) {
              } catch (const own_end&) {
              }
            });
          }},
    cause{"deadline", false,
          [](const runtime_options& o, const std::function<void()>& f) {
            runtime{o}.run([&] {
              try {
                with_timeout(1ms, [&] { f(); });
              } catch (const timeout_error&) {
              } catch (const own_end&) {
              }
            });
          }},
    cause{"failed_scope", false,
          [](const runtime_options& o, const std::function<void()>& f) {
            runtime{o}.run([&] {
              scope s;
              s.spawn(fiber_options{}, [&] {
                try {
                  f();
                } catch (const own_end&) {
                }
              });
              s.spawn(fiber_options{}, [] {
                wait_until_it_may_be_stopped();
                throw std::runtime_error{"sibling"};
              });
              EXPECT_THROW(s.join(), std::runtime_error);
            });
          }},
    cause{"end_of_the_runtime", true,
          [](const runtime_options& o, const std::function<void()>& f) {
            runtime rt{o};
            auto h = rt.spawn([&] { f(); });
            wait_until_it_may_be_stopped();
            rt.shutdown();
            try {
              h.join();
            } catch (const child_cancelled&) {
            } catch (const own_end&) {
            }
          }},
};

using clean_ups = on_workers;
INSTANTIATE_TEST_SUITE_P(workers, clean_ups, on_workers::all(), &on_workers::name);

TEST_P(clean_ups, last_wherever_they_are_and_whatever_stops_their_fiber) {
  supplier from;
  for (const bool before : {true, false}) {
    stopped_before = before;
    for (const cause& why : causes) {
      for (const place& where : places) {
        if (where.of_a_fiber && !why.of_a_fiber) continue;
        SCOPED_TRACE(std::string{why.name} + ", " + where.name + (before ? "" : ", while it waits"));
        may_be_stopped = false;
        std::atomic<int> lasted{0};
        why.run(options(), [&] { where.run(clean_up{from, lasted}); });
        EXPECT_EQ(lasted, where.times * each);
      }
    }
  }
}

/// Calls f in a destructor, while an exception passes.
template <class F>
void while_unwinding(F f) {
  try {
    const at_end end{std::move(f)};
    throw std::runtime_error{"passes"};
  } catch (const std::runtime_error&) {
  }
}

TEST_P(clean_ups, heed_deadlines_that_were_opened_inside) {
  run([] {
    int late = 0;
    const auto limited = [&] {
      try {
        with_timeout(500us, [] { this_fiber::sleep_for(1h); });
      } catch (const timeout_error&) {
        ++late;
      }
    };
    while_unwinding(limited);
    while_unwinding([&] { while_unwinding(limited); });
    // In a child, and around one.
    while_unwinding([&] {
      scope s;
      s.spawn(fiber_options{}, limited);
      s.join();
    });
    while_unwinding([&] {
      try {
        with_timeout(500us, [&] {
          scope s;
          s.spawn(fiber_options{}, [] { this_fiber::sleep_for(1h); });
          s.join();
        });
      } catch (const timeout_error&) {
        ++late;
      }
    });
    EXPECT_EQ(late, 4);
    while_unwinding([&] {
      try {
        with_timeout(500us, [&] {
          const auto sleep = [] { this_fiber::sleep_for(1h); };
          fork_join(sleep, sleep);
        });
      } catch (const timeout_error&) {
        ++late;
      }
    });
    EXPECT_EQ(late, 5);
    // It says so, and hides what is further out.
    with_timeout(1h, [] {
      const auto outer = this_fiber::deadline();
      while_unwinding([&] {
        EXPECT_EQ(this_fiber::deadline(), std::nullopt);
        with_timeout(2h, [&] { EXPECT_GT(this_fiber::deadline(), outer); });
        with_timeout(1min, [&] {
          while_unwinding([] { EXPECT_EQ(this_fiber::deadline(), std::nullopt); });
          EXPECT_LT(this_fiber::deadline(), outer);
        });
      });
      EXPECT_EQ(this_fiber::deadline(), outer);
    });
  });
}

/// A function of its own: handlers that become a part of the fiber's function hide the destructor
/// (context/no_throw.hpp).
RAMIE_NOINLINE void wait_within_limits(int& late, int& failed) {
  // Twice, since what was open before the first one does not count for the second.
  for (int i = 0; i < 2; ++i) {
    try {
      with_timeout(500us, [] { this_fiber::sleep_for(1h); });
    } catch (const timeout_error&) {
      ++late;
    }
  }
  with_timeout(1h, [&] {
    try {
      with_timeout(500us, [] { with_timeout(1h, [] { this_fiber::sleep_for(1h); }); });
    } catch (const timeout_error&) {
      ++late;
    }
  });
  try {
    shield([] {
      in_scope([](body_scope& s) {
        s.spawn(fiber_options{}, [] { throw std::logic_error{"fails"}; });
        this_fiber::sleep_for(1h);
      });
    });
  } catch (const std::logic_error&) {
    ++failed;
  }
}

TEST_P(clean_ups, at_an_ordinary_end_heed_what_was_opened_inside) {
  stopped_before = true;
  may_be_stopped = false;
  run([] {
    int late = 0;
    int failed = 0;
    auto h = spawn([&] {
      const at_end end{[&] { wait_within_limits(late, failed); }};
      wait_and_go_on();
    });
    while (!may_be_stopped) this_fiber::yield();
    h.request_stop();
    h.join();
    EXPECT_EQ(late, 3);
    EXPECT_EQ(failed, 1);
  });
}

TEST(clean_up_of_a_thread, heeds_deadlines_that_were_opened_inside) {
  int late = 0;
  while_unwinding([&] {
    try {
      with_timeout(500us, [] { this_fiber::sleep_for(1h); });
    } catch (const timeout_error&) {
      ++late;
    }
  });
  EXPECT_EQ(late, 1);
  EXPECT_THROW(with_timeout(0s,
                            [] {
                              while_unwinding([] { this_fiber::sleep_for(1ms); });
                              throw std::logic_error{"lasted"};
                            }),
               std::logic_error);
}

TEST_P(clean_ups, let_their_scopes_fail) {
  run([] {
    std::atomic<int> ended{0};
    while_unwinding([&] {
      scope s;
      s.spawn(fiber_options{}, [&] {
        const at_end end{[&] { ++ended; }};
        this_fiber::sleep_for(1h);
      });
      s.spawn(fiber_options{}, [] {
        this_fiber::sleep_for(500us);
        throw std::logic_error{"fails"};
      });
      EXPECT_THROW(s.join(), std::logic_error);
    });
    EXPECT_EQ(ended, 1);
    // By an exception that leaves their block, too.
    while_unwinding([&] {
      try {
        scope s;
        s.spawn(fiber_options{}, [&] {
          const at_end end{[&] { ++ended; }};
          this_fiber::sleep_for(1h);
        });
        this_fiber::sleep_for(200us);
        throw std::logic_error{"leaves"};
      } catch (const std::logic_error&) {
      }
    });
    EXPECT_EQ(ended, 2);
  });
}

TEST_P(clean_ups, keep_the_children_of_a_scope_that_ends_normally) {
  run([] {
    std::atomic<int> saved{0};
    while_unwinding([&] {
      scope parts;
      for (int i = 0; i < 40; ++i)
        parts.spawn([&, i] {
          if (i % 4 == 0) this_fiber::sleep_for(100us);
          ++saved;
        });
    });
    EXPECT_EQ(saved, 40);
  });
}

}  // namespace
}  // namespace ramie
