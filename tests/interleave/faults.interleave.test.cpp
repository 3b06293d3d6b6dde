// Every call that may be refused is refused once: the n-th allocation, the n-th thread, the n-th call for memory of
// stacks, the n-th futex wait, for every n that the program below reaches. Each time there must be an error from a call
// that can report one, or none: never a hang (the simulator sees it), a crash, or a leak.
#include "engine.hpp"
#include "simulator.hpp"

#include <ramie/ramie.hpp>
#include <ramie/stack/testing.hpp>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <new>
#include <optional>
#include <string>
#include <vector>

namespace {

enum class refuse { nothing, memory, threads, stacks, waits };

/// What children and their parent share.
struct shared_counts {
  std::uint64_t reached;  // calls of the kind that is refused
  int clean;              // runs without an error
  int errors;             // ... with one
};
shared_counts& counts() {
  static auto* const shared = static_cast<shared_counts*>(
      ::mmap(nullptr, sizeof(shared_counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  return *shared;
}

refuse kind = refuse::nothing;
std::uint64_t refused_call = 0;
std::int64_t blocks = 0;  // allocated and not freed

// Their counts are the test's own: simulated threads take turns.
RAMIE_UNWATCHED bool refuses(refuse what) noexcept {
  return ramie::interleave::active != nullptr && kind == what && counts().reached++ == refused_call;
}

RAMIE_UNWATCHED void* allocate(std::size_t size, std::size_t alignment) {
  if (refuses(refuse::memory)) throw std::bad_alloc{};
  void* p =
      alignment == 0 ? std::malloc(size) : std::aligned_alloc(alignment, (size + alignment - 1) & ~(alignment - 1));
  if (p == nullptr) throw std::bad_alloc{};
  ++blocks;
  return p;
}
RAMIE_UNWATCHED void release(void* p) noexcept {
  if (p != nullptr) --blocks;
  std::free(p);
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size, 0); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* p) noexcept { release(p); }
void operator delete(void* p, std::size_t) noexcept { release(p); }
void operator delete(void* p, std::align_val_t) noexcept { release(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { release(p); }

namespace ramie::interleave {
namespace {

using namespace std::chrono_literals;

/// Counts itself.
struct witness {
  static inline detail::atomic<int> alive{0};
  witness() noexcept { alive.fetch_add(1, std::memory_order_relaxed); }
  witness(const witness&) noexcept { alive.fetch_add(1, std::memory_order_relaxed); }
  witness& operator=(const witness&) = default;
  ~witness() { alive.fetch_sub(1, std::memory_order_relaxed); }
};

struct note {
  std::string text;
  witness kept;
};
struct question {};
class listener : public actor<listener> {
 public:
  void on(const note& n) { texts_.push_back(n.text); }
  std::size_t on(question) const { return texts_.size(); }

 private:
  std::vector<std::string> texts_;
};

/// Closes the channel however the block is left.
struct closing {
  channel<std::vector<int>>& c;
  ~closing() { c.close(); }
};

/// A little of everything that asks for memory, stacks or threads.
void use_everything() {
  runtime rt{{.workers = 2, .stack_size = 32 * 1024, .name = "faults", .spare_workers = 1, .report_deadlocks = false}};
  auto outside = rt.spawn([w = witness{}] { return std::string(40, 'x'); });
  rt.run([] {
    channel<std::vector<int>> c{1};
    auto sender = spawn(fiber_options{.name = "a sender with a long name"}, [&c, w = witness{}] {
      const closing at_the_end{c};
      for (int i = 0; i < 3; ++i) static_cast<void>(c.send(std::vector<int>(20, i)));
    });
    std::size_t got = 0;
    try {
      fork_join(
          [&] {
            while (auto v = c.recv()) got += v->size();
          },
          [] {
            scope s;
            s.spawn([] { this_fiber::sleep_for(5us); });
            s.spawn([] { this_fiber::yield(); });
            s.join();
          });
    } catch (...) {
      c.close();
      throw;
    }
    sender.join();
    check(got == 60, "elements were lost, and no error said so");
    auto big = spawn(fiber_options{.stack_size = 128 * 1024}, [] { return blocking([] { return 3; }); });
    check(big.join() == 3, "a wrong result");
    fiber_local<std::string> local;
    *local = "of this fiber, and too long to be kept in place";
    const auto ref = spawn_actor<listener>();
    check(ref.tell(note{std::string(30, 'n'), {}}) == tell_status::ok, "the actor is dead, and no error said so");
    check(ref.ask(question{}) == 1, "mail was lost, and no error said so");
    ref.stop();
    ref.join();
    {
      supervisor sup;
      const auto child = sup.spawn_actor<listener>();
      auto later = child.ask_async(question{});
      check(later.get() == 0, "mail was lost, and no error said so");
    }
    channel<int> other;
    auto chooser = spawn([&] {
      std::size_t fired = 0;
      for (int i = 0; i < 2; ++i) fired = select(on_recv(other, [](std::optional<int>) {}), on_timeout(1h, [] {}));
      return fired;
    });
    static_cast<void>(other.send(1));
    other.close();
    check(chooser.join() == 0, "a wrong case");
    promise<std::string> p;
    auto promised = p.get_future();
    auto keeper = spawn([p = std::move(p)]() mutable { p.set_value(std::string(50, 'p')); });
    check(promised.get().size() == 50, "a wrong value");
    keeper.join();
    std::vector<int> marks(100);
    parallel_for(0, 100, [&](int i) { ++marks[static_cast<std::size_t>(i)]; });
    for (const int m : marks) check(m == 1, "parallel_for left something out, and no error said so");
    try {
      with_timeout(5us, [] { this_fiber::sleep_for(1h); });
    } catch (const timeout_error&) {
    }
  });
  outside.join();
}

/// The errors that may be reported. Any other propagates and ends the run as a crash.
void use_and_report() {
  witness::alive.store(0, std::memory_order_relaxed);
  counts().reached = 0;
  std::optional<detail::testing::failing_calls> failing;
  if (kind == refuse::stacks) failing.emplace(refused_call, refused_call);
  try {
    use_everything();
    ++counts().clean;
  } catch (const std::bad_alloc&) {
    ++counts().errors;
  } catch (const resource_error& e) {
    ++counts().errors;
    check(std::string{e.what()}.find("ramie: ") == 0, "an error without a text");
  } catch (const actor_down&) {
    ++counts().errors;  // a handler was refused memory
  } catch (const broken_promise&) {
    ++counts().errors;  // so was the keeper of a promise
  }
  check(witness::alive.load(std::memory_order_relaxed) == 0, "something was never destroyed");
  if (failing) counts().reached = failing->made();
  failing.reset();
  // After the refusal everything works.
  const refuse was = std::exchange(kind, refuse::nothing);
  use_everything();
  kind = was;
  check(witness::alive.load(std::memory_order_relaxed) == 0, "something was never destroyed");
}

void refuse_each(const char* what, refuse which, std::uint64_t first_seed = 1) {
  counts().clean = counts().errors = 0;
  std::uint64_t n = std::getenv("RAMIE_FIRST") != nullptr ? std::strtoull(std::getenv("RAMIE_FIRST"), nullptr, 10) : 0;
  for (;; ++n) {
    kind = which;
    refused_call = n;
    const finding f =
        explore({.seeds = 1, .first_seed = first_seed + n % 11, .steps_most = 2'000'000, .warm_up = false},
                [&] { use_and_report(); });
    kind = refuse::nothing;
    ASSERT_FALSE(f.failed) << what << " number " << n << ", seed " << f.seed << ": " << f.what << "\n" << f.trace;
    if (counts().reached <= n) break;
    ASSERT_LT(n, 5000u);
  }
  std::printf("%s: %llu refusals, %d reported, %d did no harm\n", what, static_cast<unsigned long long>(n),
              counts().errors, counts().clean - 1);
  EXPECT_GT(n, 0u);
  if (which == refuse::waits) EXPECT_EQ(counts().errors, 0);  // none is noticed
  else EXPECT_GT(counts().errors, 0);
}

TEST(faults, each_allocation_refused) { refuse_each("allocations", refuse::memory); }

TEST(faults, each_thread_refused) {
  refuse_threads = [] { return refuses(refuse::threads); };
  refuse_each("threads", refuse::threads);
  refuse_threads = nullptr;
}

TEST(faults, each_wait_ended_by_a_signal) {
  end_waits = [] { return refuses(refuse::waits); };
  // A run has few of them, and which ones depends on its schedule.
  for (std::uint64_t seed = 1; seed <= 200; seed += 10) refuse_each("waits", refuse::waits, seed);
  end_waits = nullptr;
}

/// Each in a new process, because the pools keep what they have.
TEST(faults, each_call_for_stacks_refused) { refuse_each("calls for stacks", refuse::stacks); }

}  // namespace
}  // namespace ramie::interleave
