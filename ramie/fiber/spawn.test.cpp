#include <ramie/fiber/spawn.hpp>

#include <ramie/fiber/testing.hpp>
#include <ramie/stack/pool.hpp>

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <type_traits>

namespace ramie {
namespace {

using namespace fiber_tests;

class spawning : public with_workers {
 protected:
  void SetUp() override { counted::reset(); }
  void TearDown() override { EXPECT_EQ(counted::alive, 0); }
};
INSTANTIATE_TEST_SUITE_P(workers, spawning, few_and_many());

// Results.

struct alignas(64) cache_line {
  std::array<char, 64> bytes{};
};

TEST_P(spawning, gives_back_results_of_all_kinds) {
  in_runtime([] {
    EXPECT_EQ(spawn([] { return 42; }).join(), 42);
    EXPECT_EQ(spawn([] { return std::string(1000, 'x'); }).join(), std::string(1000, 'x'));
    EXPECT_EQ(*spawn([] { return std::make_unique<int>(7); }).join(), 7);
    bool ran = false;
    spawn([&] { ran = true; }).join();
    EXPECT_TRUE(ran);
    static_assert(std::is_void_v<decltype(spawn([] {}).join())>);
    int target = 1;
    spawn([&] { return std::ref(target); }).join().get() = 5;
    EXPECT_EQ(target, 5);
  });
}

TEST_P(spawning, gives_back_a_result_that_is_aligned_to_64_bytes) {
  in_runtime([] {
    for (int i = 0; i < 20; ++i) {
      auto handle = spawn([] {
        cache_line line;
        line.bytes.fill('a');
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&line) % 64, 0u);
        return line;
      });
      const cache_line line = handle.join();
      for (const char c : line.bytes) EXPECT_EQ(c, 'a');
    }
  });
}

TEST_P(spawning, keeps_a_closure_aligned_to_64_bytes) {
  in_runtime([] {
    for (int i = 0; i < 20; ++i) {
      const auto misaligned =
          spawn([line = cache_line{}] { return reinterpret_cast<std::uintptr_t>(&line) % 64; }).join();
      EXPECT_EQ(misaligned, 0u);
    }
  });
}

struct large {
  std::array<std::uint8_t, 70'000> bytes{};  // more than the 16 bits that the caches of small blocks count with
};

TEST_P(spawning, takes_closures_and_results_larger_than_64_kib) {
  runtime_options o = options();
  o.stack_size = 1024 * 1024;
  runtime rt{o};
  rt.run([] {
    large in;
    std::iota(in.bytes.begin(), in.bytes.end(), std::uint8_t{0});
    auto handle = spawn([in] {
      large out;
      for (std::size_t i = 0; i < in.bytes.size(); ++i) out.bytes[i] = static_cast<std::uint8_t>(in.bytes[i] + 1);
      return out;
    });
    const large out = handle.join();
    for (std::size_t i = 0; i < in.bytes.size(); ++i)
      ASSERT_EQ(out.bytes[i], static_cast<std::uint8_t>(in.bytes[i] + 1)) << i;
  });
}

/// Its nth move throws; copies do not.
struct moves_badly {
  int* moves_left;
  counted life{};
  explicit moves_badly(int* n) : moves_left{n} {}
  moves_badly(const moves_badly&) = default;
  moves_badly(moves_badly&& other) : moves_left{other.moves_left}, life{std::move(other.life)} {
    if (--*moves_left == 0) throw std::runtime_error{"a move"};
  }
};

TEST_P(spawning, a_result_whose_move_throws_is_a_failure_and_leaks_nothing) {
  in_runtime([] {
    int thrown = 0;
    for (int nth = 1; nth < 6; ++nth) {
      int left = nth;
      auto handle = spawn([&left] { return moves_badly{&left}; });
      try {
        static_cast<void>(handle.join());
      } catch (const std::runtime_error& e) {
        EXPECT_STREQ(e.what(), "a move");
        ++thrown;
      }
      EXPECT_FALSE(handle.joinable());
      EXPECT_EQ(counted::alive, 0);
    }
    EXPECT_GT(thrown, 0);
  });
}

TEST_P(spawning, a_closure_whose_copy_or_move_throws_is_not_spawned_and_leaks_nothing) {
  in_runtime([] {
    int ran = 0;
    int thrown = 0;
    for (int nth = 1; nth < 6; ++nth) {
      int left = nth;
      try {
        spawn([&ran](const moves_badly&) { ++ran; }, moves_badly{&left}).join();
      } catch (const std::runtime_error&) {
        ++thrown;
      }
      EXPECT_EQ(counted::alive, 0);
    }
    EXPECT_GT(ran, 0);
    EXPECT_GT(thrown, 0);
    EXPECT_EQ(ran + thrown, 5);
  });
}

struct throws_when_copied {
  throws_when_copied() = default;
  throws_when_copied(const throws_when_copied&) { throw std::runtime_error{"a copy"}; }
  void operator()() const { ADD_FAILURE() << "was run"; }
};

TEST_P(spawning, what_copying_the_closure_throws_leaves_spawn) {
  in_runtime([] {
    const throws_when_copied f;
    EXPECT_EQ(message_of<std::runtime_error>([&] { auto h = spawn(f); }), "a copy");
    EXPECT_EQ(message_of<std::runtime_error>([&] { auto h = spawn([](const throws_when_copied&) {}, f); }), "a copy");
  });
}

// Closures.

TEST_P(spawning, the_closure_is_gone_when_join_returns) {
  in_runtime([] {
    spawn([c = counted{1}] {}).join();
    EXPECT_EQ(counted::alive, 0);
    EXPECT_EQ(spawn([c = counted{2}] { return c.value; }).join(), 2);
    EXPECT_EQ(counted::alive, 0);
    EXPECT_THROW(spawn([c = counted{3}] { throw c.value; }).join(), int);
    EXPECT_EQ(counted::alive, 0);
  });
}

TEST_P(spawning, the_closure_may_be_mutable_and_is_called_as_an_rvalue) {
  struct once {
    int operator()() && { return 1; }
    int operator()() & { return 2; }
  };
  in_runtime([] {
    EXPECT_EQ(spawn(once{}).join(), 1);
    EXPECT_EQ(spawn([n = 1]() mutable { return ++n; }).join(), 2);
  });
}

TEST_P(spawning, a_closure_may_suspend_in_its_destructor) {
  struct late {
    std::shared_ptr<int> left = std::make_shared<int>(0);
    late() = default;
    late(late&&) = default;
    ~late() {
      if (left == nullptr) return;
      this_fiber::yield();
      *left = 1;
    }
  };
  in_runtime([] {
    late it;
    const auto left = it.left;
    spawn([it = std::move(it)] {}).join();
    EXPECT_EQ(*left, 1);
  });
}

// Arguments, as std::thread takes them.

int plus_one(int n) { return n + 1; }

struct adder {
  int base = 10;
  int add(int n) const { return base + n; }
  int grow(int n) { return base += n; }
};

TEST_P(spawning, calls_whatever_std_invoke_calls) {
  in_runtime([] {
    adder a;
    EXPECT_EQ(spawn(plus_one, 1).join(), 2);
    EXPECT_EQ(spawn(&plus_one, 1).join(), 2);
    EXPECT_EQ(spawn(&adder::add, a, 1).join(), 11);
    EXPECT_EQ(spawn(&adder::grow, &a, 5).join(), 15);
    EXPECT_EQ(a.base, 15);
    EXPECT_EQ(spawn(&adder::grow, std::ref(a), 5).join(), 20);
    EXPECT_EQ(a.base, 20);
    EXPECT_EQ(spawn(std::function<int(int)>{plus_one}, 4).join(), 5);
    EXPECT_EQ(spawn(std::bind_front(plus_one, 7)).join(), 8);
  });
}

TEST_P(spawning, arguments_are_copied_at_the_call) {
  in_runtime([] {
    std::string text = "before";
    event go;
    auto handle = spawn(
        [&go](const std::string& s) {
          go.wait();
          return s;
        },
        text);
    text = "after";
    go.set();
    EXPECT_EQ(handle.join(), "before");
    char letters[] = "array";
    static_assert(std::is_same_v<decltype(spawn([](auto p) { return p; }, letters).join()), char*>, "arrays decay");
    EXPECT_EQ(*spawn([](std::unique_ptr<int> p) { return p; }, std::make_unique<int>(9)).join(), 9);
    int changed = 0;
    spawn([](int& n) { n = 3; }, std::ref(changed)).join();
    EXPECT_EQ(changed, 3);
  });
}

TEST_P(spawning, an_lvalue_is_copied_once_and_an_rvalue_never) {
  in_runtime([] {
    const counted c{5};
    const int value = spawn([](const counted& it) { return it.value; }, c).join();
    EXPECT_EQ(value, 5);
    EXPECT_EQ(counted::copies, 1);
    spawn([](const counted&) {}, counted{6}).join();
    EXPECT_EQ(counted::copies, 1);
    // And they come as rvalues.
    spawn([](counted&&) {}, c).join();
    EXPECT_EQ(counted::copies, 2);
  });
}

TEST_P(spawning, a_stop_token_is_the_first_argument_if_the_function_takes_one) {
  in_runtime([] {
    EXPECT_TRUE(spawn([](std::stop_token token) { return token.stop_possible() && !token.stop_requested(); }).join());
    EXPECT_EQ(spawn([](const std::stop_token& token, int a,
                       std::unique_ptr<int> b) { return token.stop_possible() ? a + *b : 0; },
                    1, std::make_unique<int>(2))
                  .join(),
              3);
    EXPECT_TRUE(spawn(fiber_options{.name = "x"}, [](std::stop_token token) { return token.stop_possible(); }).join());
    // With a stop_token of the caller's own, too.
    std::stop_source own;
    EXPECT_TRUE(
        spawn([](std::stop_token mine, std::stop_token yours) { return mine != yours; }, own.get_token()).join());
  });
}

TEST_P(spawning, the_stop_token_tells_when_the_fiber_is_asked_to_stop) {
  in_runtime([] {
    std::atomic<bool> called{false};
    event ready;
    auto handle = spawn([&](std::stop_token token) {
      const std::stop_callback callback{token, [&] { called = true; }};
      ready.set();
      await([&] { return token.stop_requested(); });
      return this_fiber::stop_requested();
    });
    ready.wait();
    EXPECT_FALSE(called);
    handle.request_stop();
    EXPECT_TRUE(called) << "callbacks run within request_stop";
    EXPECT_TRUE(handle.join());
  });
}

// Options.

TEST_P(spawning, a_fiber_has_the_name_it_was_given) {
  in_runtime([] {
    std::string name = "a name longer than any small string that is kept in place";
    auto handle = spawn(fiber_options{.name = name}, [] {
      const std::string_view before = this_fiber::name();
      this_fiber::sleep_for(1us);
      EXPECT_EQ(before.data(), this_fiber::name().data()) << "valid as long as the fiber";
      return std::string{this_fiber::name()};
    });
    const std::string kept = std::exchange(name, "");
    EXPECT_EQ(handle.join(), kept);
    EXPECT_EQ(spawn([] { return std::string{this_fiber::name()}; }).join(), "");
    EXPECT_EQ(this_fiber::name(), "main") << "that is what runtime::run calls it";
  });
}

RAMIE_NOINLINE std::size_t use_stack(std::size_t bytes) {
  volatile char frame[1024];
  frame[0] = 1;
  frame[sizeof frame - 1] = 1;
  const std::size_t below = bytes <= sizeof frame ? 0 : use_stack(bytes - sizeof frame);
  return below + static_cast<std::size_t>(frame[0]) + static_cast<std::size_t>(frame[sizeof frame - 1]);
}

TEST_P(spawning, a_fiber_has_the_stack_it_asked_for) {
  in_runtime([] {
    std::vector<join_handle<std::size_t>> handles;
    for (const std::size_t size : {std::size_t{16} << 20, std::size_t{4} << 20, std::size_t{1} << 20})
      handles.push_back(spawn(fiber_options{.name = "deep", .stack_size = size},
                              [size] { return use_stack(size / (sanitized ? 8 : 2)); }));
    for (auto& h : handles) EXPECT_GT(h.join(), 0u);
    // The smallest size, many at once, and suspended: each has its own stack.
    event go;
    std::vector<join_handle<int>> small;
    for (int i = 0; i < 50; ++i)
      small.push_back(spawn(fiber_options{.stack_size = detail::stack_size_min * (sanitized ? 4 : 1)}, [&go, i] {
        go.wait();
        return i;
      }));
    go.set();
    for (int i = 0; i < 50; ++i) EXPECT_EQ(small[static_cast<std::size_t>(i)].join(), i);
  });
}

TEST_P(spawning, own_stacks_and_the_runtime_s_go_together) {
  in_runtime([] {
    std::atomic<int> ended{0};
    std::vector<join_handle<void>> handles;
    for (int i = 0; i < scaled(3000); ++i) {
      const fiber_options o{.stack_size = i % 3 == 0 ? 0 : std::size_t{64 * 1024} << (i % 3)};
      handles.push_back(spawn(o, [&ended, i] {
        if (i % 2 == 0) this_fiber::yield();
        if (i % 7 == 0) spawn(fiber_options{.stack_size = 512 * 1024}, [] { this_fiber::yield(); }).join();
        ++ended;
      }));
    }
    for (auto& h : handles) h.join();
    EXPECT_EQ(ended, static_cast<int>(handles.size()));
  });
}

// Many.

long fib(int n) {
  if (n < 2) return n;
  auto a = spawn(fib, n - 1);
  const long b = fib(n - 2);
  return a.join() + b;
}

TEST_P(spawning, fibers_spawn_fibers) {
  EXPECT_EQ(in_runtime([] { return fib(RAMIE_TSAN != 0 ? 12 : 20); }), RAMIE_TSAN != 0 ? 144 : 6765);
}

int chain(int depth) { return depth == 0 ? 0 : spawn(chain, depth - 1).join() + 1; }

TEST_P(spawning, a_chain_of_joiners) {
  const int depth = RAMIE_TSAN != 0 ? 1000 : 5000;
  EXPECT_EQ(in_runtime([=] { return chain(depth); }), depth);
}

TEST_P(spawning, all_of_many_run_once) {
  const int n = scaled(100'000);
  in_runtime([=] {
    std::atomic<long> sum{0};
    std::vector<join_handle<int>> handles;
    for (int i = 0; i < n; ++i)
      handles.push_back(spawn([&sum, i] {
        sum += i;
        return i;
      }));
    for (int i = 0; i < n; ++i) ASSERT_EQ(handles[static_cast<std::size_t>(i)].join(), i);
    EXPECT_EQ(sum, static_cast<long>(n) * (n - 1) / 2);
  });
}

TEST_P(spawning, from_plain_threads_and_back) {
  runtime rt{options()};
  EXPECT_EQ(rt.spawn([] { return 1; }).join(), 1);
  EXPECT_EQ(
      rt.spawn(
            fiber_options{.name = "n"}, [](int n) { return std::string{this_fiber::name()} + std::to_string(n); }, 2)
          .join(),
      "n2");
  EXPECT_EQ(rt.run([](int a, int b) { return a + b; }, 1, 2), 3);
  EXPECT_THROW(rt.run([] { throw std::logic_error{"x"}; }), std::logic_error);
  EXPECT_TRUE(rt.run([](std::stop_token token) { return token.stop_possible(); }));
  EXPECT_EQ(*rt.run([] { return std::make_unique<int>(3); }), 3);
}

}  // namespace
}  // namespace ramie
