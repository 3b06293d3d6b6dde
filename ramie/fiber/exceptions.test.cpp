// Exceptions in flight while their fiber is suspended, and resumes elsewhere.
#include <ramie/fiber/fork_join.hpp>
#include <ramie/fiber/scope.hpp>
#include <ramie/fiber/testing.hpp>
#include <ramie/machine/test_options.hpp>

#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace ramie {
namespace {

using namespace fiber_tests;

/// With the number of workers, and whether each resume is on another one.
class exceptions_in_flight : public ::testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  static runtime_options options() {
    runtime_options o;
    o.workers = std::get<0>(GetParam());
    return o;
  }
  /// Enough fibers for their exceptions to interfere.
  template <class F>
  static void in_many_fibers(int n, F f) {
    runtime rt{options()};
    std::vector<join_handle<void>> handles;
    for (int i = 0; i < n; ++i) handles.push_back(rt.spawn([f, i] { f(i); }));
    for (auto& h : handles) h.join();
  }

 private:
  detail::with_test_options migrating_{{.migrate_always = std::get<1>(GetParam())}};
};
INSTANTIATE_TEST_SUITE_P(workers, exceptions_in_flight,
                         ::testing::Values(std::tuple{1, false}, std::tuple{2, false}, std::tuple{8, false},
                                           std::tuple{2, true}));

void suspend(int how) {
  switch (how % 3) {
    case 0: this_fiber::yield(); break;
    case 1: this_fiber::sleep_for(std::chrono::microseconds{how % 20}); break;
    default: spawn([] { this_fiber::yield(); }).join();
  }
}

std::string current_message() {
  const std::exception_ptr now = std::current_exception();
  if (now == nullptr) return "";
  try {
    std::rethrow_exception(now);
  } catch (const std::exception& e) {
    return e.what();
  }
}

TEST_P(exceptions_in_flight, survive_a_suspension_in_the_handler) {
  in_many_fibers(20, [](int i) {
    const std::string mine = "exception of " + std::to_string(i);
    for (int k = 0; k < scaled(60); ++k) {
      EXPECT_EQ(std::current_exception(), nullptr);
      try {
        throw std::runtime_error{mine};
      } catch (const std::runtime_error& e) {
        EXPECT_EQ(e.what(), mine);
        suspend(i + k);
        EXPECT_EQ(e.what(), mine);
        EXPECT_EQ(current_message(), mine);
        EXPECT_EQ(std::uncaught_exceptions(), 0);
      }
      EXPECT_EQ(std::current_exception(), nullptr);
      suspend(i + k + 1);
      EXPECT_EQ(std::current_exception(), nullptr) << "somebody else's";
    }
  });
}

TEST_P(exceptions_in_flight, may_be_rethrown_after_it) {
  in_many_fibers(20, [](int i) {
    const std::string mine = "exception of " + std::to_string(i);
    for (int k = 0; k < scaled(60); ++k) {
      try {
        try {
          throw std::runtime_error{mine};
        } catch (...) {
          suspend(i + k);
          throw;
        }
      } catch (const std::exception& e) {
        EXPECT_EQ(e.what(), mine);
      }
      EXPECT_EQ(std::uncaught_exceptions(), 0);
    }
  });
}

void nest(int depth, int i) {
  const std::string mine = std::to_string(i) + "/" + std::to_string(depth);
  try {
    throw std::runtime_error{mine};
  } catch (const std::exception& e) {
    suspend(i + depth);
    EXPECT_EQ(current_message(), mine);
    if (depth > 0) nest(depth - 1, i);
    suspend(i - depth + 100);
    EXPECT_EQ(e.what(), mine);
    EXPECT_EQ(current_message(), mine);
  }
}

TEST_P(exceptions_in_flight, nest) {
  in_many_fibers(20, [](int i) {
    for (int k = 0; k < scaled(10); ++k) nest(8, i + k);
    EXPECT_EQ(std::current_exception(), nullptr);
  });
}

/// Suspends while an exception passes.
struct suspends_at_exit {
  int how;
  int* seen;
  ~suspends_at_exit() {
    const int before = std::uncaught_exceptions();
    suspend(how);
    EXPECT_EQ(std::uncaught_exceptions(), before);
    *seen += before;
  }
};

TEST_P(exceptions_in_flight, survive_a_suspension_while_they_unwind) {
  in_many_fibers(20, [](int i) {
    for (int k = 0; k < scaled(60); ++k) {
      int seen = 0;
      try {
        const suspends_at_exit outer{i + k, &seen};
        const suspends_at_exit inner{i + k + 1, &seen};
        throw std::runtime_error{std::to_string(i)};
      } catch (const std::exception& e) {
        EXPECT_EQ(e.what(), std::to_string(i));
        EXPECT_EQ(std::uncaught_exceptions(), 0);
      }
      EXPECT_EQ(seen, 2);
      {
        const suspends_at_exit calm{i + k, &seen};
      }
      EXPECT_EQ(seen, 2) << "no exception of another fiber is counted here";
    }
  });
}

TEST_P(exceptions_in_flight, a_try_in_a_destructor_while_another_unwinds) {
  struct tries {
    int i;
    ~tries() {
      try {
        suspend(i);
        throw std::logic_error{"inner"};
      } catch (const std::logic_error& e) {
        suspend(i + 1);
        EXPECT_STREQ(e.what(), "inner");
        EXPECT_EQ(std::uncaught_exceptions(), 1);
      }
    }
  };
  in_many_fibers(20, [](int i) {
    for (int k = 0; k < scaled(60); ++k) {
      try {
        const tries t{i + k};
        throw std::runtime_error{"outer"};
      } catch (const std::runtime_error& e) {
        EXPECT_STREQ(e.what(), "outer");
      }
    }
  });
}

TEST_P(exceptions_in_flight, do_not_show_in_fibers_spawned_or_run_meanwhile) {
  in_many_fibers(10, [](int i) {
    for (int k = 0; k < scaled(60); ++k) {
      const auto clean = [] { EXPECT_TRUE(std::current_exception() == nullptr && std::uncaught_exceptions() == 0); };
      try {
        throw i;
      } catch (int) {
        auto child = spawn(clean);
        suspend(i + k);
        child.join();
      }
      struct spawns {
        int i;
        ~spawns() {
          spawn([] {
            EXPECT_EQ(std::uncaught_exceptions(), 0);
            suspend(2);
            EXPECT_EQ(std::uncaught_exceptions(), 0);
          }).join();
          scope s;
          s.spawn([] {});
          fork_join([] { this_fiber::yield(); }, [] {});
          s.join();
        }
      };
      try {
        const spawns s{i};
        throw i;
      } catch (int n) {
        EXPECT_EQ(n, i);
      }
    }
  });
}

TEST_P(exceptions_in_flight, forks_in_a_handler) {
  in_many_fibers(10, [](int i) {
    for (int k = 0; k < scaled(60); ++k) {
      try {
        throw std::runtime_error{std::to_string(i)};
      } catch (const std::exception& e) {
        fork_join([&] { suspend(i + k); },
                  [&] {
                    try {
                      throw std::logic_error{"in the fork"};
                    } catch (const std::logic_error& inner) {
                      suspend(i + k + 1);
                      EXPECT_STREQ(inner.what(), "in the fork");
                    }
                  });
        EXPECT_EQ(current_message(), std::to_string(i));
        EXPECT_EQ(e.what(), std::to_string(i));
      }
    }
  });
}

// Waits inside destructors must not throw a second exception, which would end the process.
TEST_P(exceptions_in_flight, waits_while_one_unwinds_are_not_cancelled) {
  runtime rt{options()};
  for (int i = 0; i < scaled(300); ++i) {
    struct waits {
      bool& passed;
      ~waits() {
        this_fiber::sleep_for(1us);
        this_fiber::sleep_until(std::chrono::steady_clock::now() + 1us);
        spawn([] { this_fiber::yield(); }).join();
        passed = true;
      }
    };
    bool passed = false;
    event started;
    auto handle = rt.spawn([&] {
      const waits w{passed};
      started.set();
      this_fiber::sleep_for(1h);
    });
    if (i % 2 == 0) started.wait();
    handle.request_stop();
    EXPECT_THROW(handle.join(), cancelled);
    EXPECT_TRUE(passed);
  }
}

TEST_P(exceptions_in_flight, as_pointers_from_fiber_to_fiber) {
  runtime rt{options()};
  rt.run([] {
    for (int i = 0; i < scaled(300); ++i) {
      auto first = spawn([i] {
        this_fiber::yield();
        throw std::runtime_error{std::to_string(i)};
      });
      auto second = spawn([&] {
        try {
          first.join();
        } catch (...) {
          this_fiber::yield();
          throw;
        }
      });
      EXPECT_EQ(message_of<std::runtime_error>([&] { second.join(); }), std::to_string(i));
    }
  });
}

TEST_P(exceptions_in_flight, of_any_type) {
  runtime rt{options()};
  struct not_std {
    std::unique_ptr<int> n = std::make_unique<int>(3);
    not_std() = default;
    not_std(const not_std& other) : n{std::make_unique<int>(*other.n)} {}
  };
  rt.run([] {
    EXPECT_THROW(spawn([] { throw 1; }).join(), int);
    EXPECT_THROW(spawn([] { throw "text"; }).join(), const char*);
    try {
      spawn([]() -> int { throw not_std{}; }).join();
    } catch (const not_std& e) {
      EXPECT_EQ(*e.n, 3);
    }
    try {
      spawn([] {
        try {
          throw std::runtime_error{"cause"};
        } catch (...) {
          this_fiber::yield();
          std::throw_with_nested(std::logic_error{"effect"});
        }
      }).join();
      ADD_FAILURE();
    } catch (const std::logic_error& e) {
      EXPECT_THROW(std::rethrow_if_nested(e), std::runtime_error);
    }
  });
}

}  // namespace
}  // namespace ramie
