#include <ramie/fiber/in_scope.hpp>

#include <ramie/fiber/testing.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace ramie {
namespace {

using namespace fiber_tests;

class bodies : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, bodies, few_and_many());

struct broken : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class F>
struct at_exit {
  F f;
  ~at_exit() { f(); }
};

/// Waits for ever, and notes how that ended.
struct sleeper {
  std::atomic<int> begun{0}, cut_off{0};
  void operator()() {
    ++begun;
    try {
      this_fiber::sleep_for(1h);
    } catch (const cancelled&) {
      ++cut_off;
      throw;
    }
  }
};

TEST_P(bodies, give_their_result_when_their_children_have_ended) {
  in_runtime([] {
    std::atomic<int> ran{0};
    const int sum = in_scope([&](body_scope& s) {
      auto a = s.spawn([] { return 1; });
      auto b = s.spawn(fiber_options{.name = "b"}, [] { return 2; });
      for (int i = 0; i < 10; ++i) s.spawn([&] { this_fiber::yield(), ++ran; });
      return a.get() + b.get();
    });
    EXPECT_EQ(sum, 3);
    EXPECT_EQ(ran, 10);
    EXPECT_EQ(*in_scope([](scope&) { return std::make_unique<int>(4); }), 4);
    in_scope([](auto&) {});
  });
}

TEST_P(bodies, may_add_children_with_arguments) {
  in_runtime([] {
    std::string text = "text";
    std::atomic<int> sum{0};
    in_scope([&](auto& s) {
      s.spawn([&](std::unique_ptr<int> n, const std::string& t) { sum += *n + static_cast<int>(t.size()); },
              std::make_unique<int>(3), text);
      EXPECT_EQ(s.spawn([](int a, int b) { return a * b; }, 6, 7).get(), 42);
    });
    EXPECT_EQ(sum, 7);
  });
}

TEST_P(bodies, end_when_a_child_fails) {
  in_runtime([] {
    for (const bool as_fiber : {false, true}) {
      sleeper body, sibling;
      auto cause = this_fiber::stop_cause::none;
      const auto call = [&] {
        in_scope([&](body_scope& s) {
          s.spawn(fiber_options{}, [&] { sibling(); });
          const auto fails = [&] {
            await([&] { return body.begun == 1 && sibling.begun == 1; });
            throw broken{"child"};
          };
          if (as_fiber) s.spawn(fiber_options{}, fails);
          else s.spawn(fails);
          try {
            body();
          } catch (const cancelled&) {
            cause = this_fiber::why_stopped();
            throw;
          }
        });
      };
      EXPECT_EQ(message_of<broken>(call), "child");
      EXPECT_EQ(body.cut_off, 1);
      EXPECT_EQ(sibling.cut_off, 1);
      EXPECT_EQ(cause, this_fiber::stop_cause::scope);
      EXPECT_FALSE(this_fiber::stop_requested());
      this_fiber::yield();
    }
  });
}

TEST_P(bodies, end_by_their_next_wait_or_child_after_a_failure) {
  in_runtime([] {
    for (const bool waits : {false, true}) {
      std::atomic<bool> failed{false};
      int added = 0;
      EXPECT_THROW(in_scope([&](body_scope& s) {
                     s.spawn(fiber_options{}, [&] {
                       const at_exit note{[&] { failed = true; }};
                       throw broken{"child"};
                     });
                     await([&] { return failed && this_fiber::stop_requested(); });  // a moment behind the scope
                     EXPECT_TRUE(s.is_cancelled());
                     if (waits) this_fiber::sleep_for(1us);
                     else s.spawn([] {});
                     ++added;
                   }),
                   broken);
      EXPECT_EQ(added, 0);
    }
  });
}

TEST_P(bodies, that_throw_end_their_children) {
  in_runtime([] {
    sleeper child;
    EXPECT_EQ(message_of<broken>([&] {
                in_scope([&](body_scope& s) {
                  s.spawn(fiber_options{}, [&] { child(); });
                  await([&] { return child.begun == 1; });
                  throw broken{"body"};
                });
              }),
              "body");
    EXPECT_EQ(child.cut_off, 1);
  });
}

TEST_P(bodies, that_wait_in_a_half_end_too) {
  in_runtime([] {
    sleeper left, right;
    EXPECT_THROW(in_scope([&](body_scope& s) {
                   s.spawn(fiber_options{}, [&] {
                     await([&] { return left.begun == 1 && right.begun == 1; });
                     throw broken{"child"};
                   });
                   fork_join([&] { left(); }, [&] { right(); });
                 }),
                 broken);
    EXPECT_EQ(left.cut_off + right.cut_off, 2);
  });
}

TEST_P(bodies, may_shield_themselves) {
  in_runtime([] {
    bool lasted = false;
    EXPECT_THROW(in_scope([&](body_scope& s) {
                   s.spawn(fiber_options{}, [] { throw broken{"child"}; });
                   shield([&] {
                     await([&] { return s.is_cancelled(); });
                     this_fiber::sleep_for(1ms);
                     EXPECT_FALSE(this_fiber::stop_requested());
                     lasted = true;
                   });
                   this_fiber::sleep_for(1h);
                 }),
                 broken);
    EXPECT_TRUE(lasted);
  });
}

TEST_P(bodies, in_a_shield_end_when_a_child_of_theirs_fails) {
  in_runtime([] {
    for (const bool by_name : {false, true}) {
      sleeper body;
      bool failed = false;
      auto h = spawn([&] {
        shield([&] {
          try {
            in_scope([&](body_scope& s) {
              s.spawn(fiber_options{}, [&] {
                await([&] { return body.begun == 1; });
                this_fiber::sleep_for(1ms);
                if (by_name) s.cancel();
                else throw broken{"child"};
              });
              body();
            });
          } catch (const broken&) {
            failed = true;
          }
        });
      });
      await([&] { return body.begun == 1; });
      h.request_stop();  // it is the child that ends it
      h.join();
      EXPECT_EQ(failed, !by_name);
      EXPECT_EQ(body.cut_off, 1);
    }
  });
}

TEST_P(bodies, that_are_tolerant_tell_of_a_stop_that_cut_their_children_off) {
  in_runtime([] {
    sleeper child;
    const auto call = [&] { in_scope(tolerant, [&](scope& s) { s.spawn(fiber_options{}, [&] { child(); }); }); };
    EXPECT_THROW(with_timeout(1ms, call), timeout_error);
    in_scope(tolerant, [&](body_scope& s) {  // but not of its own
      s.spawn(fiber_options{}, [&] { child(); });
      s.end_after(1ms);
    });
  });
}

TEST_P(bodies, are_not_ended_by_scopes_inside) {
  in_runtime([] {
    int caught = 0;
    in_scope([&](body_scope& outer) {
      outer.spawn(fiber_options{}, [] { this_fiber::sleep_for(1ms); });
      try {
        in_scope([](body_scope& inner) {
          inner.spawn(fiber_options{}, [] { throw broken{"inner"}; });
          this_fiber::sleep_for(1h);
        });
      } catch (const broken&) {
        ++caught;
      }
      this_fiber::sleep_for(1ms);
    });
    EXPECT_EQ(caught, 1);
  });
}

TEST_P(bodies, give_the_other_failures_to_those_who_ask) {
  in_runtime([] {
    captured_stderr output;
    for (const bool asks : {true, false}) {
      std::vector<std::exception_ptr> others;
      in_scope_options options;
      if (asks) options.others = &others;
      std::atomic<int> begun{0};
      const std::string first = message_of<broken>([&] {
        in_scope(options, [&](body_scope& s) {
          for (const char* name : {"one", "two", "three"})
            s.spawn(fiber_options{}, [&, name] {
              ++begun;
              try {
                if (*name != 'o') this_fiber::sleep_for(1h);
                await([&] { return begun == 3; });
              } catch (const cancelled&) {
              }
              throw broken{name};
            });
          this_fiber::sleep_for(1h);
        });
      });
      EXPECT_EQ(first, "one");
      EXPECT_EQ(others.size(), asks ? 2u : 0u);
    }
    EXPECT_EQ(occurrences(output.text(), "a child of a scope failed after another one"), 2);
  });
}

TEST_P(bodies, that_pass_a_child_s_failure_on_have_no_second_one) {
  in_runtime([] {
    captured_stderr output;
    EXPECT_THROW(in_scope([](body_scope& s) { s.spawn([]() -> int { throw broken{"child"}; }).get(); }), broken);
    EXPECT_EQ(output.text(), "");
  });
}

TEST_P(bodies, that_are_tolerant_go_on) {
  in_runtime([] {
    std::atomic<int> told{0}, served{0};
    std::atomic<bool> named{false};
    in_scope(tolerant([&](const std::exception_ptr& failure, std::string_view child) {
               this_fiber::yield();
               EXPECT_THROW(std::rethrow_exception(failure), broken);
               if (child == "second") named = true;
               ++told;
             }),
             [&](scope& s) {
               s.spawn([] { throw broken{"first"}; });
               s.spawn(fiber_options{.name = "second"}, [] { throw broken{"second"}; });
               s.spawn(fiber_options{}, [] { throw child_cancelled{}; });  // no failure
               await([&] { return told == 2; });
               this_fiber::sleep_for(1ms);
               s.spawn([&] { ++served; });
             });
    EXPECT_EQ(told, 2);
    EXPECT_EQ(served, 1);
    EXPECT_TRUE(named);
  });
}

TEST_P(bodies, that_are_tolerant_end_by_what_their_function_throws) {
  in_runtime([] {
    sleeper body;
    EXPECT_EQ(message_of<std::logic_error>([&] {
                in_scope(
                    tolerant([](const std::exception_ptr&, std::string_view) { throw std::logic_error{"too much"}; }),
                    [&](scope& s) {
                      s.spawn(fiber_options{}, [] { throw broken{"child"}; });
                      body();
                    });
              }),
              "too much");
    EXPECT_EQ(body.cut_off, 1);
    EXPECT_EQ(message_of<broken>([] { in_scope(tolerant, [](scope&) { throw broken{"body"}; }); }), "body");
  });
}

TEST_P(bodies, that_are_tolerant_tell_of_failures_now_and_then) {
  captured_stderr output;
  in_runtime([] {
    in_scope(tolerant, [](scope& s) {
      for (int i = 0; i < 100; ++i) s.spawn(fiber_options{.name = "guest"}, [] { throw broken{"has left"}; });
    });
  });
  const std::string text = output.text();
  EXPECT_TRUE(contains(text, "ramie: fiber \"guest\" failed: has left\n")) << text;
  EXPECT_LT(occurrences(text, "\n"), 50) << text;
}

TEST_P(bodies, may_limit_their_time) {
  in_runtime([] {
    sleeper body, child;
    in_scope([&](body_scope& s) {
      s.spawn(fiber_options{}, [&] { child(); });
      await([&] { return child.begun == 1; });
      s.end_after(1h);
      s.end_after(1ms);
      body();
    });
    EXPECT_EQ(body.cut_off, 1);
    EXPECT_EQ(child.cut_off, 1);
    in_scope([&](body_scope& s) {  // it has ended, its children have not
      s.spawn(fiber_options{}, [&] { child(); });
      s.end_after(1ms);
    });
    in_scope([](body_scope& s) { s.end_after(1h); });
    EXPECT_THROW(in_scope([&](body_scope& s) {
                   s.end_after(0s);
                   body();
                   return 1;
                 }),
                 child_cancelled);
    EXPECT_FALSE(this_fiber::stop_requested());
  });
}

TEST_P(bodies, that_join_stay_cancelled) {
  in_runtime([] {
    sleeper body, child;
    in_scope([&](body_scope& s) {
      s.spawn(fiber_options{}, [&] { child(); });
      s.end_after(1ms);
      s.join();
      EXPECT_TRUE(s.is_cancelled());
      body();
    });
    EXPECT_EQ(body.cut_off, 1);
    this_fiber::sleep_for(1us);  // that was all
  });
}

TEST_P(bodies, are_cut_short_by_a_child_that_cancels) {
  in_runtime([] {
    sleeper body, sibling;
    in_scope([&](body_scope& s) {
      s.spawn(fiber_options{}, [&] { sibling(); });
      s.spawn(fiber_options{}, [&] {
        await([&] { return body.begun == 1 && sibling.begun == 1; });
        s.cancel();
      });
      body();
    });
    EXPECT_EQ(body.cut_off + sibling.cut_off, 2);
  });
}

TEST_P(bodies, end_with_what_stops_their_caller) {
  in_runtime([] {
    sleeper body, child;
    const auto run_both = [&] {
      in_scope([&](body_scope& s) {
        s.spawn(fiber_options{}, [&] { child(); });
        body();
      });
    };
    EXPECT_THROW(with_timeout(1ms, run_both), timeout_error);
    auto caller = spawn(run_both);
    await([&] { return body.begun == 2; });
    caller.request_stop();
    EXPECT_THROW(caller.join(), child_cancelled);
    EXPECT_EQ(body.cut_off, 2);
    EXPECT_EQ(child.cut_off, child.begun);
    // Also a body that has cancelled its own scope.
    auto other = spawn([&] {
      in_scope([&](body_scope& s) {
        s.cancel();
        await([] { return detail::this_task()->flags.load() & detail::task::stop_flag; });
        body();
      });
      ADD_FAILURE() << "a stop was taken for the body's own";
    });
    other.request_stop();
    EXPECT_THROW(other.join(), child_cancelled);
  });
}

TEST_P(bodies, in_clean_up_end_when_a_child_of_theirs_fails) {
  in_runtime([] {
    bool ended = false;
    try {
      const at_exit last{[&] {
        EXPECT_THROW(in_scope([&](body_scope& s) {
                       s.spawn(fiber_options{}, [] { throw broken{"child"}; });
                       this_fiber::sleep_for(1h);
                     }),
                     broken);
        scope alone;  // its children, in place
        alone.spawn([] { this_fiber::sleep_for(1h); });
        alone.spawn(fiber_options{}, [] { throw broken{"sibling"}; });
        EXPECT_THROW(alone.join(), broken);
        ended = true;
      }};
      throw std::logic_error{"passes"};
    } catch (const std::logic_error&) {
    }
    EXPECT_TRUE(ended);
  });
}

TEST(bodies_on_a_plain_thread, run_their_children_one_after_the_other) {
  int ran = 0;
  EXPECT_EQ(in_scope([&](body_scope& s) {
              s.spawn([&] { ++ran; });
              EXPECT_EQ(ran, 1);
              return 5;
            }),
            5);
  captured_stderr output;
  EXPECT_EQ(message_of<broken>([&] {
              in_scope([&](body_scope& s) {
                s.spawn([] { throw broken{"child"}; });
                s.spawn([&] { ++ran; });
              });
            }),
            "child");
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(output.text(), "");
}

// A scope by itself.

TEST_P(bodies, without_in_scope_hear_of_a_failure_when_they_add_a_child) {
  in_runtime([] {
    captured_stderr output;
    std::atomic<int> refused{0};
    std::atomic<bool> begun{false};
    const auto serve = [&] {
      scope s;
      s.spawn(fiber_options{}, [&] {
        const at_exit note{[&] {
          try {
            s.spawn([] {});
          } catch (const cancelled&) {
            ++refused;
          }
        }};
        begun = true;
        await([&] { return s.is_cancelled(); });
      });
      await([&] { return begun.load(); });
      s.spawn(fiber_options{}, [] { throw broken{"child"}; });
      await([&] { return s.is_cancelled(); });
      s.spawn([] {});
      ADD_FAILURE() << "a child was dropped without a word";
    };
    EXPECT_EQ(message_of<broken>(serve), "child");
    EXPECT_EQ(refused, 1);
    EXPECT_EQ(output.text(), "");
  });
}

TEST_P(bodies, without_in_scope_may_cancel_and_go_on) {
  in_runtime([] {
    std::atomic<int> ran{0};
    scope s;
    for (int i = 0; i < 3; ++i) {
      s.cancel();
      s.spawn([&] { ran += 100; });  // dropped
      s.join();
      s.spawn([&] { ++ran; });
      s.join();
    }
    EXPECT_EQ(ran, 3);
  });
}

}  // namespace
}  // namespace ramie
