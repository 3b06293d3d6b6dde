#include <ramie/context/no_throw.hpp>

#include <ramie/base/config.hpp>
#include <ramie/base/error.hpp>

#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

namespace ramie::detail {
namespace {

struct found {
  bool fenced = false;
  const char* fence = nullptr;
};
found seen;

/// What would throw. It does, if it is called by the test for that.
bool throws = false;
RAMIE_NOINLINE void wait() {
  seen.fence = nearest_no_throw_frame(1);
  seen.fenced = seen.fence != nullptr;
  if (throws) throw cancelled{};
}

RAMIE_NOINLINE void nothing() { asm volatile(""); }

struct waits_at_end {
  ~waits_at_end() { wait(); }
};
/// Not as a part of its caller: clean-up and handlers in f would then be found there.
struct calls_at_end {
  void (*f)();
  RAMIE_NOINLINE ~calls_at_end() { f(); }
};
struct cleans_up {
  ~cleans_up() { nothing(); }
};
struct may_fail_at_end {
  ~may_fail_at_end() noexcept(false) { wait(); }
};
RAMIE_NOINLINE void noexcept_function() noexcept { wait(); }
RAMIE_NOINLINE void plain_function() {
  const cleans_up c;
  wait();
  nothing();
}

/// Lists no call without a handler, and does not clean up.
RAMIE_NOINLINE int with_handlers_for_others() {
  try {
    plain_function();
    return 1;
  } catch (const std::runtime_error&) {
    return 2;
  }
}

/// Whose code is short, and stands before that of the end of noexcept_with_handler.
RAMIE_NOINLINE void noexcept_with_handler() noexcept {
  try {
    wait();
  } catch (...) {
    asm volatile("");
  }
  nothing();
  try {
    wait();
  } catch (...) {
    nothing();
  }
  static_cast<void>(std::make_unique<int>(1));
}

/// As the library's code for fibers does.
RAMIE_NOINLINE void root(void (*f)()) noexcept {
  try {
    f();
  } catch (...) {
    nothing();
  }
}

struct situation {
  const char* name;
  bool fenced;  // what should be found
  void (*run)();
};
const situation situations[] = {
    {"nothing", false, [] { wait(); }},
    {"clean_up_in_between", false, [] { plain_function(); }},
    {"destructor", true,
     [] {
       const waits_at_end w;
       nothing();
     }},
    {"destructor_that_calls", true,
     [] {
       const calls_at_end w{&plain_function};
       nothing();
     }},
    {"destructor_with_clean_up", true,
     [] {
       const calls_at_end w{[] {
         const cleans_up c;
         wait();
         nothing();
       }};
       nothing();
     }},
    {"destructor_that_may_throw", false,
     [] {
       const may_fail_at_end w;
       nothing();
     }},
    {"noexcept_function", true, [] { noexcept_function(); }},
    {"unique_ptr", true,
     [] {
       const auto p = std::make_unique<waits_at_end>();
       nothing();
     }},
    {"shared_ptr", true,
     [] {
       const std::shared_ptr<waits_at_end> p{new waits_at_end};
       nothing();
     }},
    {"std_function_in_a_destructor", true,
     [] {
       struct holds {
         std::function<void()> f;
         RAMIE_NOINLINE ~holds() { f(); }
       };
       const holds h{[] { wait(); }};
       nothing();
     }},
    {"handler_for_it", false,
     [] {
       const calls_at_end w{[] {
         try {
           plain_function();
         } catch (const cancelled&) {
           nothing();
         }
       }};
       nothing();
     }},
    {"handler_for_its_base", false,
     [] {
       const calls_at_end w{[] {
         try {
           plain_function();
         } catch (const std::exception&) {
           nothing();
         }
       }};
       nothing();
     }},
    {"handler_for_everything", false,
     [] {
       const calls_at_end w{[] {
         try {
           plain_function();
         } catch (...) {
           nothing();
         }
       }};
       nothing();
     }},
    {"handlers_in_a_noexcept_function", false, [] { noexcept_with_handler(); }},
    {"handler_for_others", true,
     [] {
       const calls_at_end w{[] {
         try {
           plain_function();
         } catch (const std::runtime_error&) {
           nothing();
         } catch (const std::string&) {
           nothing();
         }
       }};
       nothing();
     }},
    {"handler_that_passes_it_on", true,
     [] {
       const calls_at_end w{[] {
         try {
           plain_function();
         } catch (const passes_on&) {
           throw;
         } catch (const cancelled&) {
           nothing();
           throw;
         }
       }};
       nothing();
     }},
    {"handler_that_passes_everything_on", true,
     [] {
       const calls_at_end w{[] {
         try {
           plain_function();
         } catch (const passes_on&) {
           throw;
         } catch (...) {
           nothing();
           throw;
         }
       }};
       nothing();
     }},
    {"handler_that_passes_it_on_to_one", false,
     [] {
       try {
         try {
           plain_function();
         } catch (const passes_on&) {
           throw;
         } catch (const std::runtime_error&) {
           nothing();
           throw;
         }
       } catch (const cancelled&) {
         nothing();
       }
     }},
    {"handlers_for_others_around_all", false, [] { with_handlers_for_others(); }},
    {"no_handler_but_the_outermost", false,
     [] {
       try {
         plain_function();
       } catch (const std::runtime_error&) {
         nothing();
       }
     }},
    {"beyond_a_handler", false,
     [] {
       const calls_at_end w{[] { root(&plain_function); }};
       nothing();
     }},
};

TEST(no_throw_frame, is_found_by_the_tables) {
  for (const situation& s : situations) {
    SCOPED_TRACE(s.name);
    throws = false;
    seen = {};
    root(s.run);
    EXPECT_EQ(seen.fenced, s.fenced);
  }
}

TEST(no_throw_frame, is_none_where_an_exception_travels_on) {
  for (const situation& s : situations) {
    if (s.fenced) continue;
    SCOPED_TRACE(s.name);
    throws = true;
    root(s.run);
    throws = false;
  }
}

const void* inner = nullptr;
RAMIE_NOINLINE void note_a_place_and_wait() {
  inner = __builtin_frame_address(0);
  wait();
  nothing();
}

TEST(no_throw_frame, lies_between_what_it_calls_and_its_caller) {
  throws = false;
  const void* const outer = __builtin_frame_address(0);
  root([] {
    const calls_at_end w{&note_a_place_and_wait};
    nothing();
  });
  ASSERT_NE(seen.fence, nullptr);
  EXPECT_TRUE(std::less<const void*>{}(inner, seen.fence));
  EXPECT_TRUE(std::less<const void*>{}(seen.fence, outer));
}

}  // namespace
}  // namespace ramie::detail
