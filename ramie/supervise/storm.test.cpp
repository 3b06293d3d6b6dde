// Storms: a tree of a thousand actors whose members are killed, or made to fail, at random, while others use them.
#include <ramie/supervise/supervisor.hpp>

#include <ramie/actor/testing.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace ramie {
namespace {

using namespace actor_tests;

struct crash {};
struct note_down {
  std::uint64_t number;
};

/// What outlasts its restarts, as a database would: which numbers were noted down.
struct ledger {
  std::vector<std::atomic<std::uint8_t>> noted;
  explicit ledger(std::size_t n) : noted(n) {}
};

/// A number counts as acknowledged when the reply is there.
class clerk : public actor<clerk> {
 public:
  explicit clerk(ledger& book) : book_{book} { ++alive; }
  ~clerk() { --alive; }
  bool on(note_down n) {
    if (n.number % 16 == 0) this_fiber::yield();
    book_.noted[n.number].fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  void on(crash) {
    ++crashes;
    throw std::runtime_error{"crash"};
  }

  static inline std::atomic<int> alive{0};
  static inline std::atomic<int> crashes{0};

 private:
  ledger& book_;
};

const actor_ref<clerk>& clerk_at(const std::vector<actor_ref<clerk>>& all, std::uint_fast32_t drawn) {
  return all[drawn % all.size()];
}

class storms : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, storms, few_and_many());

TEST_P(storms, lose_nothing_that_was_acknowledged) {
  const std::uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  constexpr int supervisors = 20;
  const int each = fiber_tests::sanitized ? 5 : 50;
  const int users = 8;
  // A crash is told in nanoseconds and costs the restart of fifty clerks. Under placements that leave the storm a
  // worker of its own nothing slows it down, and millions of crashes would pile up in the mailboxes.
  const int crashes_ahead_most = 50;
  const auto per_user = static_cast<std::uint64_t>(scaled(1000));
  ledger book{users * per_user};
  std::atomic<std::uint64_t> acknowledged{0};
  std::atomic<std::uint64_t> refused{0};
  std::vector<std::uint8_t> acks(users * per_user);
  clerk::alive = 0;
  clerk::crashes = 0;
  in_runtime([&] {
    supervisor top{{.strategy = restart::one_for_one, .max_restarts = 1'000'000, .within = 1h}};
    std::vector<supervisor_ref> middle;
    std::vector<actor_ref<clerk>> clerks;
    for (int s = 0; s < supervisors; ++s) {
      const restart strategy = s % 3 == 0   ? restart::one_for_one
                               : s % 3 == 1 ? restart::one_for_all
                                            : restart::rest_for_one;
      // Every fifth gives up soon, so that the top has something to do.
      middle.push_back(
          top.spawn_supervisor({.strategy = strategy, .max_restarts = s % 5 == 0 ? 3 : 1'000'000, .within = 1h}));
      for (int i = 0; i < each; ++i) clerks.push_back(middle.back().spawn_actor<clerk>(std::ref(book)));
    }
    std::atomic<bool> over{false};
    auto storm = spawn([&] {
      std::mt19937 random{seed};
      int told = 0;
      while (!over.load()) {
        if (told - clerk::crashes.load() >= crashes_ahead_most) {
          this_fiber::yield();
          continue;
        }
        // One in thirty: a restart of fifty clerks takes its time, and users are to get through now and then.
        for (auto calm = random() % 30; calm != 0; --calm) this_fiber::yield();
        if (clerk_at(clerks, random()).tell(crash{}) == tell_status::ok) ++told;
        if (random() % 4 == 0) clerk_at(clerks, random()).kill();
        if (random() % 50 == 0) middle[random() % middle.size()].kill();
        this_fiber::yield();
      }
    });
    std::vector<join_handle<void>> all;
    for (int u = 0; u < users; ++u)
      all.push_back(spawn([&, u] {
        std::mt19937 random{seed + 1 + static_cast<std::uint32_t>(u)};
        for (std::uint64_t i = 0; i < per_user; ++i) {
          const std::uint64_t number = static_cast<std::uint64_t>(u) * per_user + i;
          try {
            if (clerk_at(clerks, random()).ask(note_down{number})) {
              acks[number] = 1;
              ++acknowledged;
            }
          } catch (const actor_down&) {
            ++refused;
            this_fiber::yield();  // the supervisor may have to run on this very worker
          }
        }
      }));
    for (auto& h : all) h.join();
    over = true;
    storm.join();
    EXPECT_TRUE(top.alive());
    for (auto& m : middle) EXPECT_TRUE(m.alive());
    // All come back.
    for (auto& c : clerks) EXPECT_TRUE(ask_patiently(c, note_down{1}));
  });
  EXPECT_EQ(clerk::alive.load(), 0);
  EXPECT_EQ(acknowledged.load() + refused.load(), users * per_user);
  EXPECT_GT(acknowledged.load(), 0u);
  for (std::uint64_t n = 0; n < acks.size(); ++n) {
    if (acks[n] != 0) {
      ASSERT_GE(book.noted[n].load(), 1) << "acknowledged, and lost: " << n;
    }
    if (n != 1) {
      ASSERT_LE(book.noted[n].load(), 1) << "handled twice: " << n;
    }
  }
}

TEST_P(storms, keep_what_was_told_over_restarts) {
  // A tell is lost only if it is the one that the actor failed on.
  class counter : public actor<counter> {
   public:
    explicit counter(std::atomic<int>& n) : n_{n} {}
    void on(int) { n_.fetch_add(1, std::memory_order_relaxed); }
    void on(crash) { throw std::runtime_error{"crash"}; }

   private:
    std::atomic<int>& n_;
  };
  std::atomic<int> n{0};
  const int rounds = scaled(3000);
  in_runtime([&] {
    supervisor sup{{.max_restarts = 1'000'000, .within = 1h}};
    auto c = sup.spawn_actor<counter>(std::ref(n));
    std::vector<join_handle<void>> senders;
    for (int s = 0; s < 3; ++s)
      senders.push_back(spawn([&, s] {
        for (int i = 0; i < rounds; ++i) {
          EXPECT_EQ(c.tell(1), tell_status::ok);
          if (i % 10 == s) c.tell(crash{});
          if (i % 64 == 0) this_fiber::yield();
        }
      }));
    for (auto& s : senders) s.join();
    await([&] { return n.load() == 3 * rounds; });
  });
  EXPECT_EQ(n.load(), 3 * rounds);
}

TEST_P(storms, of_ends_let_nobody_wait_for_ever) {
  // Every way to end, at random moments, against every way to wait.
  class target : public actor<target> {
   public:
    int on(int i) {
      if (i % 7 == 0) this_fiber::yield();
      if (i % 31 == 30) throw std::runtime_error{"31"};
      if (i % 37 == 36) stop();
      return i;
    }
  };
  const std::uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  in_runtime([&] {
    for (int round = 0; round < scaled(100); ++round) {
      auto t = spawn_actor<target>(actor_options{.mailbox_capacity = round % 2 == 0 ? 0u : 4u});
      std::vector<join_handle<void>> all;
      for (std::uint32_t u = 0; u < 6; ++u)
        all.push_back(spawn([t, s = seed + u + static_cast<std::uint32_t>(round) * 6] {
          std::mt19937 random{s};
          try {
            for (;;) {
              const int n = static_cast<int>(random() % 1000);
              if (n % 3 == 0 && t.tell(n) == tell_status::down) return;
              if (n % 3 == 1) t.ask(n);
              if (n % 3 == 2) t.ask_async(n).get();
            }
          } catch (const actor_down&) {
          }
        }));
      auto joiner = spawn([t] { t.join(); });
      if (round % 3 == 0) t.kill();
      if (round % 3 == 1) t.stop();
      for (auto& h : all) h.join();
      joiner.join();
    }
  });
}

TEST_P(storms, end_with_the_runtime_in_the_middle) {
  for (int round = 0; round < scaled(20); ++round) {
    runtime rt{options()};
    std::vector<join_handle<void>> users;
    auto sup = rt.run(
        [] { return std::make_unique<supervisor>(supervisor_options{.max_restarts = 1'000'000, .within = 1h}); });
    ledger book{64};
    std::vector<actor_ref<clerk>> clerks;
    for (int i = 0; i < 20; ++i) clerks.push_back(sup->spawn_actor<clerk>(std::ref(book)));
    for (std::uint32_t u = 0; u < 4; ++u)
      users.push_back(rt.spawn([&clerks, u] {
        std::mt19937 random{u};
        for (;;) {
          try {
            clerk_at(clerks, random()).ask(note_down{random() % 64});
          } catch (const actor_down&) {
            this_fiber::yield();
          }
          if (random() % 8 == 0) clerk_at(clerks, random()).tell(crash{});
          if (random() % 8 == 0) clerk_at(clerks, random()).kill();
          this_fiber::yield();
          this_fiber::throw_if_stopped();
        }
      }));
    std::this_thread::sleep_for(std::chrono::microseconds{round * 100});
    rt.shutdown();
    for (auto& u : users) EXPECT_THROW(u.join(), cancelled);
    for (auto& c : clerks) EXPECT_EQ(c.tell(crash{}), tell_status::down);
    EXPECT_EQ(clerk::alive.load(), 0);
  }
}

}  // namespace
}  // namespace ramie
