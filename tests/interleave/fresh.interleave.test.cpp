// What is made in the very run that uses it: descriptors of stacks, classes of stacks. Elsewhere the programs find
// those of earlier runs, since they are never freed; here each run has a process of its own.
#include "programs.hpp"

#include <ramie/ramie.hpp>
#include <ramie/stack/pool.hpp>

#include <gtest/gtest.h>

#include <array>
#include <mutex>
#include <vector>

namespace ramie::interleave {
namespace {

constexpr exploration alone{.seeds = 200, .each_alone = true};

/// A worker begins on a stack that was made with it. So that what follows gets stacks that workers make, its first ones
/// are taken by fibers that wait.
class sitters {
 public:
  explicit sitters(runtime& rt) {
    for (auto& one : all_) one = rt.spawn([this] { over_.wait(); });
  }
  sitters(const sitters&) = delete;
  sitters& operator=(const sitters&) = delete;
  ~sitters() {
    over_.set();
    for (auto& one : all_) one.join();
  }

 private:
  event over_;
  std::array<join_handle<void>, 2> all_;
};

void stop_on_a_fresh_stack() {
  runtime rt{workers(2)};
  const sitters others{rt};
  channel<int> never;
  for (int i = 0; i < 3; ++i) {
    auto fiber = rt.spawn([&] { never.recv(); });
    // Again and again: with membarrier a request orders whatever was made before it.
    for (int asked = 0; asked < 8; ++asked) fiber.request_stop();
    bool was_cancelled = false;
    try {
      fiber.join();
    } catch (const cancelled&) {
      was_cancelled = true;
    }
    check(was_cancelled, "it was not cancelled");
  }
}
TEST(a_fresh_stack, may_be_stopped_on) { expect_sound("stop on a fresh stack", alone, stop_on_a_fresh_stack); }

struct go {};
class waits_for_ever : public actor<waits_for_ever> {
 public:
  void on(go) { never_.recv(); }

 private:
  channel<int> never_;
};

void kill_on_a_fresh_stack() {
  runtime rt{workers(2)};
  const sitters others{rt};
  for (int i = 0; i < 3; ++i) {
    auto ref = rt.run([] { return spawn_actor<waits_for_ever>(); });
    ref.tell(go{});
    for (int asked = 0; asked < 8; ++asked) ref.kill();
    check(ref.join().kind() == exit_kind::killed, "a strange end");
  }
}
TEST(a_fresh_stack, may_be_killed_on) { expect_sound("kill on a fresh stack", alone, kill_on_a_fresh_stack); }

/// The waiter looks at the stack of the holder of the mutex.
void contend_on_fresh_stacks() {
  mutex lock;
  int inside = 0;
  runtime rt{workers(2)};
  const sitters others{rt};
  std::vector<join_handle<void>> fibers;
  fibers.reserve(3);
  for (int i = 0; i < 3; ++i)
    fibers.push_back(rt.spawn([&] {
      const std::lock_guard guard{lock};
      ++inside;
      if (pick(2) == 0) detail::os_sleep(1000 * pick(30));
    }));
  {
    simulated_thread outside{[&] {
      const std::lock_guard guard{lock};
      ++inside;
    }};
  }
  for (auto& f : fibers) f.join();
  check(inside == 4, "two were inside at once");
}
TEST(a_fresh_stack, of_a_holder_is_seen_by_waiters) {
  expect_sound("contend on fresh stacks", alone, contend_on_fresh_stacks);
}

/// Two threads need stacks of a size that nobody has used.
void make_a_class() {
  // What the process learns of the system only once, in statics of functions, whose order the simulator does not see.
  static_cast<void>(detail::stack_class_of(64 * 1024, detail::guard_kind::automatic));
  const auto take_one = [] {
    detail::stack_class& all = detail::stack_class_of(128 * 1024, detail::guard_kind::automatic);
    detail::release_stack(detail::acquire_stack(all));
  };
  simulated_thread one{take_one};
  simulated_thread two{take_one};
}
TEST(a_class_of_stacks, may_be_made_by_two_at_once) { expect_sound("a class of stacks", alone, make_a_class); }

}  // namespace
}  // namespace ramie::interleave
