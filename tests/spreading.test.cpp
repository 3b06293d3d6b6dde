// Where ready work runs if the spreading is set, not tried.
#include <ramie/actor/actor.hpp>
#include <ramie/channel/channel.hpp>
#include <ramie/fiber/spawn.hpp>
#include <ramie/fiber/this_fiber.hpp>
#include <ramie/machine/test_options.hpp>
#include <ramie/runtime/runtime.hpp>
#include <ramie/sched/policy.hpp>
#include <ramie/sched/scheduler.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace ramie {
namespace {

int this_worker() { return static_cast<int>(detail::worker::current()->number); }

using detail::spreading;

/// First come, first served.
class in_line : public scheduling_policy {
 public:
  void put(runnable r, int /*from*/) noexcept override {
    const std::lock_guard guard{lock_};
    waiting_.push_back(r);
  }
  runnable take(int /*worker*/) noexcept override {
    const std::lock_guard guard{lock_};
    if (waiting_.empty()) return {};
    const runnable first = waiting_.front();
    waiting_.pop_front();
    return first;
  }
  bool has_work(int /*worker*/) const noexcept override {
    const std::lock_guard guard{lock_};
    return !waiting_.empty();
  }

 private:
  mutable std::mutex lock_;
  std::deque<runnable> waiting_;
};

TEST(spreading, together_is_for_stealing_workers_alone) {
  const auto kept_together = [](const runtime_options& o, const detail::test_options& told) {
    const detail::with_test_options options{told};
    runtime rt{o};
    return rt.internals().keeps_together();
  };
  const detail::test_options together{.spreading = spreading::together};
  EXPECT_TRUE(kept_together({.workers = 2}, together));
  EXPECT_FALSE(kept_together({.workers = 2}, {.spreading = spreading::at_home}));
  EXPECT_FALSE(kept_together({.workers = 2}, {}));
  EXPECT_FALSE(kept_together({.workers = 1}, together));
  for (const placement p : {placement::stealing_no_affinity, placement::dedicated})
    EXPECT_FALSE(kept_together({.workers = 2, .placement = p}, together));
  EXPECT_FALSE(kept_together({.workers = 2}, {.migrate_always = true, .spreading = spreading::together}));
  EXPECT_FALSE(kept_together({.workers = 2, .policy = std::make_shared<in_line>()}, together));
}

/// A fiber that lives on worker 1, and answers each request with its worker.
struct at_home_on_1 {
  channel<int> questions{}, answers{};

  join_handle<void> start() {
    return spawn(fiber_options{.worker = 1}, [this] {
      // Born on worker 1, but not pinned to it.
      auto there = spawn([this] {
        while (questions.recv()) static_cast<void>(answers.send(this_worker()));
      });
      static_cast<void>(questions.send(0));
      static_cast<void>(answers.recv());
      there.join();
    });
  }
  /// Asks without giving up the worker for long, so that it never looks for other work.
  int ask() {
    std::optional<int> answer;
    auto asking = spawn([&] { static_cast<void>(questions.send(1)); });
    while (!(answer = answers.try_recv())) this_fiber::yield();
    asking.join();
    return *answer;
  }
};

TEST(spreading, those_at_home_with_a_blocked_worker_go_on_elsewhere) {
  const detail::with_test_options at_home{{.spreading = spreading::at_home}};
  runtime rt{{.workers = 2}};
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  rt.run([&] {
    at_home_on_1 other;
    auto home = other.start();
    other.ask();
    std::atomic<bool> blocks{false};
    auto blocker = spawn(fiber_options{.worker = 1}, [&] {
      blocks = true;
      char c = 0;
      EXPECT_EQ(::read(pipe[0], &c, 1), 1);
    });
    while (!blocks) this_fiber::yield();
    // Its home is idle until this thread writes, which is after the answers.
    for (int i = 0; i < 5; ++i) EXPECT_GE(other.ask(), 0);
    EXPECT_EQ(::write(pipe[1], "w", 1), 1);
    blocker.join();
    other.questions.close();
    home.join();
  });
  ::close(pipe[0]);
  ::close(pipe[1]);
}

struct token {
  int left;
};

class node : public actor<node> {
 public:
  explicit node(std::atomic<int>& ended) : ended_{ended} {}
  void on(actor_ref<node> next) { next_ = next; }
  void on(token t) {
    if (t.left == 0) ended_.fetch_add(1);
    else next_.tell(token{t.left - 1});
  }

 private:
  std::atomic<int>& ended_;
  actor_ref<node> next_;
};

TEST(spreading, rings_lose_no_message_any_way) {
  for (const spreading how : {spreading::at_home, spreading::by_waker, spreading::together}) {
    for (const int workers : {2, 8}) {
      const detail::with_test_options told{{.spreading = how}};
      runtime rt{{.workers = workers}};
      rt.run([] {
        std::atomic<int> ended{0};
        std::vector<actor_ref<node>> ring;
        for (int i = 0; i < 300; ++i) ring.push_back(spawn_actor<node>(ended));
        for (std::size_t i = 0; i < ring.size(); ++i) ring[i].tell(ring[(i + 7) % ring.size()]);
        for (std::size_t i = 0; i < ring.size(); ++i) ring[i].tell(token{200});
        while (ended != 300) this_fiber::yield();
        for (auto& n : ring) n.stop();
        for (auto& n : ring) n.join();
      });
    }
  }
}

}  // namespace
}  // namespace ramie
