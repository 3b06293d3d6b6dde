// Incarnations of actors that end, fail and restart just when others link to them, monitor them, ask, or wait for room.
#include "../otp_model.hpp"
#include "programs.hpp"

#include <ramie/ramie.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace ramie::interleave {
namespace {

using namespace std::chrono_literals;

supervisor_options many_restarts() {
  return {.max_restarts = 100, .within = 1h, .report = [](const child_report&) {}};
}

struct fail_now {};
struct ping {};
struct say_heard {};
struct link_to {
  any_actor whom;
};
struct watch_it {
  any_actor whom;
};

class plain : public actor<plain> {
 public:
  void on(fail_now) { throw 1; }
  void on(const link_to& l) { link(l.whom); }
  int on(ping) { return 1; }
};

class listener : public actor<listener> {
 public:
  void on(const link_to& l) { link(l.whom); }
  void on(const watch_it& w) { monitor(w.whom, monitoring::incarnation); }
  void on(const down& d) {
    check(d.reason.kind() != exit_kind::alive, "told of the end of one that lives");
    ++heard_;
  }
  void on(const exit_signal& s) {
    check(s.reason.kind() != exit_kind::alive, "told of the end of one that lives");
    ++heard_;
  }
  int on(say_heard) { return heard_; }

 private:
  int heard_ = 0;
};

template <class F>
void until(F done) {
  while (!done()) this_fiber::yield();
}

/// Two linked actors end at the same time: each tells the other, and one that still lives hears of it once.
void both_ends_of_a_link_end() {
  auto a = spawn_actor<listener>();
  auto b = spawn_actor<listener>();
  a.tell(link_to{b});
  check(a.ask(say_heard{}) == 0, "told too early");
  fork_join([&] { a.kill(); }, [&] { b.kill(); });
  check(a.join().kind() == exit_kind::killed && b.join().kind() == exit_kind::killed, "a strange end");
}
/// One removes its monitor while the other ends: one of them drops the note.
void a_watch_is_taken_back() {
  auto target = spawn_actor<plain>();
  auto w = spawn_actor<listener>();
  w.tell(watch_it{target});
  check(w.ask(say_heard{}) == 0, "told too early");
  fork_join([&] { target.kill(); }, [&] { w.kill(); });
  target.join();
  w.join();
}
TEST(ties, end_once) {
  expect_sound("both ends of a link", {.seeds = 1500}, in_runtime(both_ends_of_a_link_end));
  expect_sound("watcher and watched", {.seeds = 1500}, in_runtime(a_watch_is_taken_back));
}
TEST(ties, that_both_sides_end_are_found) {
  expect_found(plant::tie_told_twice, "tie told twice", {.seeds = 20'000}, in_runtime(a_watch_is_taken_back));
}

/// It ends while another begins to monitor it: that one is told once, in any order.
void monitor_one_that_ends() {
  auto target = spawn_actor<plain>();
  auto w = spawn_actor<listener>();
  fork_join([&] { target.stop(); }, [&] { w.tell(watch_it{target}); });
  target.join();
  until([&] { return w.ask(say_heard{}) == 1; });
  w.stop();
  w.join();
}
TEST(ties, to_one_that_ends_tell) {
  expect_sound("monitor one that ends", {.seeds = 1500}, in_runtime(monitor_one_that_ends));
}
TEST(ties, added_behind_the_end_are_found) {
  expect_found(plant::gone_too_late, "gone too late", {.seeds = 20'000, .steps_most = 50'000},
               in_runtime(monitor_one_that_ends));
}

/// What is told of an end finds it ended, and out of its groups: by a link, and as the answer to what it failed on.
class heir : public actor<heir> {
 public:
  explicit heir(group<ping>& g) : group_{g} {}
  void on(const link_to& l) { link(l.whom); }
  void on(const exit_signal& s) {
    check(!s.who.alive() && s.reason.kind() == exit_kind::failed, "told by a link of one that lives");
    check(!group_.contains(s.who), "told by a link while it is in its group");
    stop();
  }
  int on(say_heard) { return 0; }

 private:
  group<ping>& group_;
};
/// Its end takes a while, and so does the mail that it leaves: time for others to look too early.
class slow_to_end : public actor<slow_to_end> {
 public:
  ~slow_to_end() {
    for (int i = 0; i < 3; ++i) this_fiber::yield();
  }
  void on(fail_now) { throw 1; }
  void on(ping) {}
};
struct slow_letter {
  bool counts = true;
  slow_letter() = default;
  slow_letter(slow_letter&& other) noexcept : counts{std::exchange(other.counts, false)} {}
  slow_letter& operator=(slow_letter&&) = delete;
  ~slow_letter() {
    if (counts) this_fiber::yield();
  }
};
class with_slow_mail : public actor<with_slow_mail> {
 public:
  void on(fail_now) { throw 1; }
  void on(ping) {}
  void on(const slow_letter&) {}
};
template <class A>
void hear_of_one_that_fails() {
  group<ping> g;
  auto a = spawn_actor<A>();
  g.join(a);
  auto h = spawn_actor<heir>(std::ref(g));
  h.tell(link_to{a});
  h.ask(say_heard{});
  auto failing = a.ask_async(fail_now{});
  if constexpr (std::is_same_v<A, with_slow_mail>) a.tell(slow_letter{});
  try {
    failing.get();
    check(false, "it answered");
  } catch (const actor_down& down) {
    check(down.reason().kind() == exit_kind::failed, "a strange end");
    check(!a.alive() && !g.contains(a), "the asker was told too early");
  }
  h.join();
}
TEST(ends, are_heard_of_when_they_have_come) {
  expect_sound("hear of one that fails", {.seeds = 1000}, in_runtime(hear_of_one_that_fails<slow_to_end>));
  expect_sound("hear of one with mail", {.seeds = 1000}, in_runtime(hear_of_one_that_fails<with_slow_mail>));
}
TEST(ends, that_leave_groups_late_are_found) {
  expect_found(plant::groups_left_late, "groups left late", {.seeds = 20'000},
               in_runtime(hear_of_one_that_fails<with_slow_mail>));
}
TEST(ends, told_of_early_are_found) {
  expect_found(plant::asker_told_early, "asker told early", {.seeds = 20'000},
               in_runtime(hear_of_one_that_fails<slow_to_end>));
}

/// The last to leave a group frees it: a member that ends, or the group's owner.
void a_group_ends_beside_its_member() {
  auto g = std::make_unique<group<ping>>();
  auto a = spawn_actor<slow_to_end>();
  g->join(a);
  a.stop();
  fork_join([&] { a.join(); }, [&] { g.reset(); });
}
TEST(groups, may_end_beside_their_members) {
  expect_sound("a group ends beside its member", {.seeds = 1500}, in_runtime(a_group_ends_beside_its_member));
}

/// A link kills the incarnation that made it, not the next.
class linked_once : public actor<linked_once> {
 public:
  explicit linked_once(std::shared_ptr<int> made) : number_{++*made} {}
  void on(const link_to& l) {
    if (number_ == 1) link(l.whom);
  }
  void on(fail_now) { throw 1; }
  void on(const exit_signal&) { check(number_ == 1, "the next incarnation is told"); }
  int on(ping) { return number_; }

 private:
  int number_;
};
void a_linked_child_is_restarted() {
  supervisor sup{many_restarts()};
  auto child =
      sup.spawn_actor<linked_once>(child_options{.actor = {.asks_wait_for_restart = true}}, std::make_shared<int>(0));
  auto partner = spawn_actor<listener>();
  child.tell(link_to{partner});
  check(child.ask(ping{}) == 1, "it was restarted");
  fork_join([&] { child.tell(fail_now{}); }, [&] { partner.kill(); });
  partner.join();
  until([&] { return child.ask(ping{}) == 2; });
  check(sup.restarts() == 1, "it was restarted not once");
}
TEST(incarnations, are_told_what_is_theirs) {
  expect_sound("a linked child is restarted", {.seeds = 1500}, in_runtime(a_linked_child_is_restarted));
}
TEST(incarnations, told_what_was_for_another_are_found) {
  expect_found(plant::notes_outlive_incarnations, "notes outlive incarnations", {.seeds = 20'000},
               in_runtime(a_linked_child_is_restarted));
}

/// Requests and tells compete for a mailbox of capacity one, while the actor fails.
void press_into_one_that_restarts() {
  supervisor sup{many_restarts()};
  auto child = sup.spawn_actor<plain>(child_options{.actor = {.mailbox_capacity = 1}});
  const auto ask = [child] {
    try {
      child.ask(ping{});
    } catch (const actor_down&) {
    }
  };
  // One is admitted when the failed message is taken out, one by the restart; the others depend on those two.
  std::vector<join_handle<void>> askers;
  for (int i = 0; i < 4; ++i) askers.push_back(spawn(ask));
  child.tell(fail_now{});
  for (auto& a : askers) a.join();
  for (int i = 0; i < 2; ++i) ask();
  until([&] { return child.mail_count() == 0; });
}
TEST(incarnations, let_senders_in) {
  expect_sound("senders and restarts", {.seeds = 1500}, in_runtime(press_into_one_that_restarts));
}
TEST(incarnations, that_count_what_they_refused_are_found) {
  expect_found(plant::refused_still_counted, "refused requests still count", {.seeds = 20'000, .steps_most = 50'000},
               in_runtime(press_into_one_that_restarts));
}
TEST(incarnations, that_leave_room_to_nobody_are_found) {
  expect_found(plant::room_left_to_nobody, "room left to nobody", {.seeds = 20'000, .steps_most = 50'000},
               in_runtime(press_into_one_that_restarts));
}

/// A supervisor ends while its child fails: nothing survives.
class counted : public actor<counted> {
 public:
  explicit counted(std::shared_ptr<detail::atomic<int>> alive) : alive_{std::move(alive)} { alive_->fetch_add(1); }
  ~counted() { alive_->fetch_sub(1); }
  void on(fail_now) { throw 1; }

 private:
  std::shared_ptr<detail::atomic<int>> alive_;
};
void a_supervisor_ends_beside_a_restart() {
  auto alive = std::make_shared<detail::atomic<int>>(0);
  any_actor child;
  {
    supervisor top{many_restarts()};
    auto inner = top.spawn_supervisor(many_restarts());
    auto c = inner.spawn_actor<counted>(alive);
    child = c;
    c.tell(fail_now{});
    if (pick(2) == 0) inner.kill();
    if (pick(2) == 0) this_fiber::yield();
  }
  check(alive->load() == 0, "a child outlives its supervisor");
  check(!child.alive(), "a child has not ended");
}
TEST(supervisors, end_with_all_below) {
  expect_sound("a supervisor ends beside a restart", {.seeds = 1500}, in_runtime(a_supervisor_ends_beside_a_restart));
}

/// Its children are about to begin a turn, or in one. A second passes at any point, so no bound of time may stand in
/// for the end of a child.
void a_supervisor_ends_beside_its_children() {
  std::vector<any_actor> children;
  {
    supervisor sup{many_restarts()};
    for (int i = 0; i < 2; ++i) {
      auto child = sup.spawn_actor<plain>();
      if (pick(2) == 0) child.tell(fail_now{});
      children.push_back(child);
    }
    if (pick(2) == 0) this_fiber::yield();
  }
  for (const any_actor& child : children) check(!child.alive(), "a child has not ended");
}
TEST(supervisors, wait_for_their_children_however_long_they_take) {
  expect_sound("a supervisor ends beside its children", {.seeds = 3000},
               in_runtime(a_supervisor_ends_beside_its_children));
}

/// Its end takes a while.
class pooled : public actor<pooled> {
 public:
  explicit pooled(std::shared_ptr<detail::atomic<int>> alive) : alive_{std::move(alive)} { alive_->fetch_add(1); }
  ~pooled() {
    for (int i = pick(8); i != 0; --i) this_fiber::yield();
    alive_->fetch_sub(1);
  }
  void on(fail_now) { throw 1; }

 private:
  std::shared_ptr<detail::atomic<int>> alive_;
};
/// A pool ends while a child fails or leaves and another is being made: a thread that has seen its end finds nothing of
/// it.
void a_pool_ends_beside_its_children() {
  auto alive = std::make_shared<detail::atomic<int>>(0);
  std::optional<actor_pool<pooled>> pool{pool_options{.lifetime = static_cast<child_lifetime>(pick(3)),
                                                      .max_restarts = 100,
                                                      .within = 1h,
                                                      .report = [](const child_report&) {}}};
  const auto first = pool->spawn(alive);
  any_actor second;
  auto maker = spawn([&second, alive, ref = pool_ref<pooled>{*pool}] {
    try {
      second = ref.spawn(alive);
    } catch (const actor_down&) {
    }
  });
  if (pick(2) == 0) first.tell(fail_now{});
  else if (pick(2) == 0) first.stop();
  if (pick(2) == 0) this_fiber::yield();
  if (pick(4) == 0) pool->stop_child(first);
  pool.reset();
  check(!first.alive(), "a child has not ended");
  maker.join();
  check(!second || !second.alive(), "a child that came late has not ended");
  check(alive->load() == 0, "a child outlives its pool");
}
TEST(pools, end_with_all_children) {
  expect_sound("a pool ends beside its children", {.seeds = 3000}, in_runtime(a_pool_ends_beside_its_children));
}
TEST(pools, whose_children_leave_too_early_are_found) {
  expect_found(plant::pool_left_early, "a child leaves its pool early", {.seeds = 20'000, .steps_most = 50'000},
               in_runtime(a_pool_ends_beside_its_children));
}
TEST(pools, whose_children_are_listed_too_early_are_found) {
  expect_found(plant::pool_listed_early, "a child is listed early", {.seeds = 20'000, .steps_most = 50'000},
               in_runtime(a_pool_ends_beside_its_children));
}

// ---- the end of a runtime
// --------------------------------------------------------------------------------------------

/// What a fiber actor is told of the end is that nothing more comes; it never meets `cancelled` in `receive`.
void a_runtime_ends_beside_receivers() {
  detail::atomic<int> begun{0};
  detail::atomic<int> ended{0};
  {
    runtime rt{workers(2)};
    rt.run([&] {
      for (int i = 0; i < 3; ++i)
        spawn_actor<int>([&](mailbox<int>& box) {
          begun.fetch_add(1, std::memory_order_relaxed);
          while (box.receive()) {
          }
          check(box.stopped(), "nothing comes, but it has not been stopped");
          ended.fetch_add(1, std::memory_order_relaxed);
        });
      if (pick(2) == 0) this_fiber::yield();
    });
  }
  check(begun.load(std::memory_order_relaxed) == ended.load(std::memory_order_relaxed),
        "a fiber actor did not end well");
}
TEST(fiber_actors, end_with_their_runtime) {
  expect_sound("a runtime ends beside receivers", {.seeds = 3000}, a_runtime_ends_beside_receivers);
}

// ---- the model -----------------------------------------------------------------------------------------------------

/// A few steps of a random program against the reference (tests/otp_model.hpp).
template <int steps, int... among>
void follow_the_model() {
  otp_model::program program{[](std::uint32_t n) { return pick(n); },
                             [](const std::string& wrong) { check(false, wrong.c_str()); }, 300, among...};
  program.run(steps);
}
constexpr exploration long_runs{.seeds = 20'000, .steps_most = 400'000};

TEST(models, agree) {
  expect_sound("the model", {.seeds = 500, .steps_most = 400'000}, in_runtime(follow_the_model<5>));
}
TEST(models, find_ties_that_outlive_incarnations) {
  expect_found(plant::ties_outlive_incarnations, "ties outlive incarnations", long_runs,
               in_runtime(follow_the_model<5>));
}
TEST(models, find_notes_that_outlive_incarnations) {
  expect_found(plant::notes_outlive_incarnations, "notes outlive incarnations", long_runs,
               in_runtime(follow_the_model<12, 3>));
}
TEST(models, find_links_that_spread_normal_ends) {
  expect_found(plant::links_spread_normal_ends, "links spread normal ends", long_runs, in_runtime(follow_the_model<5>));
}
TEST(models, find_mail_that_is_lost) {
  expect_found(plant::mail_lost_at_restart, "mail lost at a restart", long_runs, in_runtime(follow_the_model<5>));
}
TEST(models, find_links_with_a_direction) {
  expect_found(plant::links_have_a_direction, "links have a direction", long_runs, in_runtime(follow_the_model<5, 3>));
}

}  // namespace
}  // namespace ramie::interleave
