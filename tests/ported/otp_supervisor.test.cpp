// Behaviours after the tests of OTP's supervisor (lib/stdlib/test/supervisor_SUITE.erl), as programs for ramie; each
// names its origin. Where ramie means something else the case says so. Cases that do not apply:
//   sup_start_ignore_*                    a constructor makes an actor or throws; there is no `ignore`
//   sup_start_error_return, sup_start_map, sup_start_map_simple, sup_start_map_faulty_specs, child_specs,
//   child_specs_map, sup_flags            specifications are types that the compiler checks; see child_adm
//   sup_stop_infinity                     is the default here (sup_stop, below)
//   faulty_application_shutdown           there are no applications
//   sup_start_link_*, simple_global_supervisor, get_callback_module
//                                         no nodes, no global names, no call-back modules
//   code_change*, significant_upgrade_*   no code is replaced at run time
//   format_log_*                          reports are supervisor_options::report
#include <ramie/ramie.hpp>

#include <ramie/fiber/testing.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

namespace ramie {
namespace {

using namespace fiber_tests;

struct crash {};
struct leave {};
struct end_orderly {};
struct sleep_long {};
struct which {};

/// Each has a number of its own, by which one incarnation is told from the next.
std::atomic<int> made{0};
std::atomic<int> alive{0};
/// So many constructors throw from now on, of those who ask.
std::atomic<int> faults{0};

class child : public actor<child> {
 public:
  explicit child(bool may_fault = false) {
    if (may_fault && faults.load() > 0) {
      --faults;
      throw std::runtime_error{"cannot start"};
    }
    ++alive;
  }
  ~child() { --alive; }
  void on(crash) { throw std::runtime_error{"abnormal"}; }
  void on(leave) { stop(); }
  void on(end_orderly) { stop(exit_reason{exit_kind::shutdown}); }
  void on(sleep_long) { this_fiber::sleep_for(1h); }
  int on(which) { return number_; }

 private:
  const int number_ = ++made;
};

supervisor_options settings(restart strategy, int restarts = 2) {
  return {.strategy = strategy, .max_restarts = restarts, .within = 1h, .report = [](const child_report&) {}};
}
child_options named(const char* id, child_lifetime lifetime = child_lifetime::permanent) {
  return {.lifetime = lifetime, .id = id};
}
int number_of(const actor_ref<child>& c) {
  for (;;) {
    try {
      return c.ask(which{});
    } catch (const actor_down&) {
      this_fiber::yield();
    }
  }
}
/// Its number, once it is another one.
int next_after(const actor_ref<child>& c, int before) {
  int now = before;
  while ((now = number_of(c)) == before) this_fiber::yield();
  return now;
}

class otp_supervisors : public with_workers {
 protected:
  template <class F>
  void program(F f) {
    faults = 0;
    in_runtime(std::move(f));
    EXPECT_EQ(alive.load(), 0);
  }
};
INSTANTIATE_TEST_SUITE_P(workers, otp_supervisors, few_and_many());

// ---- how they start and stop ---------------------------------------------------------------------------------------

TEST_P(otp_supervisors, sup_start_normal) {
  program([] {
    supervisor_ref ref;
    {
      supervisor sup{settings(restart::one_for_one)};
      ref = sup;
      EXPECT_TRUE(ref.alive());
    }
    EXPECT_EQ(ref.join().kind(), exit_kind::shutdown);
  });
}

// sup_start_fail, sup_start_child_returns_error: what a start throws comes to the caller, and nothing is kept.
TEST_P(otp_supervisors, sup_start_fail) {
  program([] {
    EXPECT_THROW(supervisor(settings(restart::one_for_one, -1)), invalid_argument);
    supervisor sup{settings(restart::one_for_one)};
    faults = 1;
    EXPECT_THROW(sup.spawn_actor<child>(named("a"), true), std::runtime_error);
    EXPECT_EQ(sup.count_children().children, 0u);
    EXPECT_FALSE(sup.find_child("a"));
    auto a = sup.spawn_actor<child>(named("a"), true);
    EXPECT_EQ(sup.find_child("a"), a);
  });
}

// sup_start_restart_child_returns_error: a failed restart_child leaves the child stopped, and says why.
TEST_P(otp_supervisors, sup_start_restart_child_returns_error) {
  program([] {
    supervisor sup{settings(restart::one_for_one)};
    auto a = sup.spawn_actor<child>(named("a"), true);
    EXPECT_TRUE(sup.stop_child("a"));
    faults = 1;
    EXPECT_THROW(sup.restart_child("a"), std::runtime_error);
    EXPECT_EQ(sup.count_children().running, 0u);
    EXPECT_TRUE(sup.restart_child("a"));
    EXPECT_EQ(sup.count_children().running, 1u);
    EXPECT_EQ(sup.restarts(), 0u);  // that was no failure
  });
}

// sup_stop_infinity, sup_stop_timeout, sup_stop_brutal_kill, sup_stop_brutal_kill_dynamic: with a bound of time a
// handler may end by itself, and is killed then; without one its waits are cancelled at once. A child that was ended
// in time says `shutdown`; ramie says so as well of one whose wait had to be cancelled.
TEST_P(otp_supervisors, sup_stop) {
  program([] {
    for (const auto time : {0ms, 2ms}) {
      std::vector<actor_ref<child>> all;
      {
        supervisor sup{settings(restart::one_for_one)};
        actor_pool<child> pool{{.shutdown = time}};
        for (int i = 0; i < 3; ++i) all.push_back(sup.spawn_actor<child>(child_options{.shutdown = time}));
        for (int i = 0; i < 3; ++i) all.push_back(pool.spawn());
        all[1].tell(sleep_long{});
        all[4].tell(sleep_long{});
        await([&] { return all[1].mail_count() + all[4].mail_count() == 0; });
      }
      for (const auto& c : all) EXPECT_EQ(c.join().kind(), exit_kind::shutdown);
    }
  });
}

// ---- changes of what there is to supervise -------------------------------------------------------------------------

TEST_P(otp_supervisors, child_adm) {
  program([] {
    supervisor sup{settings(restart::one_for_one)};
    auto a = sup.spawn_actor<child>(named("a"));
    EXPECT_EQ(sup.children(), (std::vector<any_actor>{a}));
    EXPECT_THROW(sup.spawn_actor<child>(named("a")), invalid_argument);  // already_present, already_started
    EXPECT_FALSE(sup.restart_child("a"));                                // running
    EXPECT_TRUE(sup.stop_child("a"));
    EXPECT_TRUE(sup.stop_child("a"));  // again: ok
    EXPECT_THROW(sup.spawn_actor<child>(named("a")), invalid_argument);
    EXPECT_EQ(sup.child_infos()[0].state, child_state::stopped);
    EXPECT_TRUE(sup.restart_child("a"));
    EXPECT_TRUE(sup.stop_child("a"));
    EXPECT_TRUE(sup.delete_child("a"));
    EXPECT_FALSE(sup.restart_child("a"));  // not_found
    EXPECT_FALSE(sup.delete_child("a"));
    EXPECT_FALSE(sup.stop_child("a"));
    EXPECT_TRUE(sup.children().empty());
    sup.spawn_actor<child>(named("a"));
    EXPECT_TRUE(sup.delete_child("a"));  // OTP refuses to delete one that runs; ramie ends it
  });
}

TEST_P(otp_supervisors, child_adm_simple) {
  program([] {
    actor_pool<child> pool;
    EXPECT_TRUE(pool.children().empty());
    auto a = pool.spawn();
    auto b = pool.spawn();
    EXPECT_EQ(pool.children(), (std::vector<any_actor>{a, b}));
    EXPECT_TRUE(pool.stop_child(a));
    EXPECT_FALSE(pool.stop_child(a));
    EXPECT_EQ(pool.children(), (std::vector<any_actor>{b}));
    EXPECT_EQ(pool.count_children().children, 1u);
  });
}

// extra_return: a restart is one whatever the start returned beside the process; here: start by a function.
TEST_P(otp_supervisors, extra_return) {
  class owner : public actor<owner> {
   public:
    explicit owner(std::unique_ptr<int> n) : n_{std::move(n)} {}
    int on(which) { return *n_; }
    void on(crash) { throw std::runtime_error{"abnormal"}; }

   private:
    std::unique_ptr<int> n_;
  };
  program([] {
    supervisor sup{settings(restart::one_for_one)};
    auto a = sup.spawn_actor_by<owner>(named("a"), [] { return owner{std::make_unique<int>(++made)}; });
    const int before = a.ask(which{});
    EXPECT_TRUE(sup.stop_child("a"));
    EXPECT_TRUE(sup.restart_child("a"));
    EXPECT_EQ(a.ask(which{}), before + 1);
    a.tell(crash{});
    await([&] { return sup.restarts() == 1; });
    EXPECT_TRUE(sup.find_child("a"));
  });
}

// ---- lifetimes -----------------------------------------------------------------------------------------------------

// {permanent,transient,temporary}_{normal,shutdown,abnormal}. OTP keeps the specification of a transient child that has
// ended normally; here it is gone.
TEST_P(otp_supervisors, lifetimes_and_reasons) {
  program([] {
    for (const bool simple : {false, true}) {
      for (const auto lifetime : {child_lifetime::permanent, child_lifetime::transient, child_lifetime::temporary}) {
        for (const int how : {0, 1, 2}) {
          supervisor sup{settings(restart::one_for_one)};
          auto pool = sup.spawn_pool<child>({.lifetime = lifetime, .report = [](const child_report&) {}});
          auto c = simple ? pool.spawn() : sup.spawn_actor<child>(child_options{.lifetime = lifetime});
          const int before = number_of(c);
          if (how == 0) c.tell(leave{});
          if (how == 1) c.tell(end_orderly{});
          if (how == 2) c.tell(crash{});
          const bool again =
              lifetime == child_lifetime::permanent || (lifetime == child_lifetime::transient && how == 2);
          if (again) {
            EXPECT_GT(next_after(c, before), before);
          } else {
            const exit_kind kinds[] = {exit_kind::stopped, exit_kind::shutdown, exit_kind::failed};
            EXPECT_EQ(c.join().kind(), kinds[how]);
          }
          const auto count = [&] {
            return simple ? pool.count_children().children : sup.count_children().children - 1;
          };
          EXPECT_EQ(count(), again ? 1u : 0u);
        }
      }
    }
  });
}

// temporary_bystander: a temporary child goes when others are restarted with it, and does not come back.
TEST_P(otp_supervisors, temporary_bystander) {
  program([] {
    for (const restart strategy : {restart::one_for_all, restart::rest_for_one}) {
      supervisor sup{settings(strategy)};
      auto a = sup.spawn_actor<child>(named("a"));
      auto b = sup.spawn_actor<child>(named("b", child_lifetime::temporary));
      const int before = number_of(a);
      a.tell(crash{});
      EXPECT_EQ(b.join().kind(), exit_kind::shutdown);
      next_after(a, before);
      EXPECT_EQ(sup.children(), (std::vector<any_actor>{a}));
    }
  });
}

// ---- strategies ----------------------------------------------------------------------------------------------------

/// Which of three children are others after the one in the middle failed?
std::vector<bool> restarted(restart strategy) {
  supervisor sup{settings(strategy)};
  std::vector<actor_ref<child>> all;
  std::vector<int> before;
  for (int i = 0; i < 3; ++i) {
    all.push_back(sup.spawn_actor<child>());
    before.push_back(number_of(all.back()));
  }
  all[1].tell(crash{});
  const int first = next_after(all[1], before[1]);
  std::vector<bool> other;
  for (std::size_t i = 0; i < 3; ++i) other.push_back(number_of(all[i]) != before[i]);
  EXPECT_GT(first, before[2]);
  EXPECT_EQ(sup.restarts(), 1u);
  EXPECT_EQ(sup.children().size(), 3u);
  return other;
}

TEST_P(otp_supervisors, one_for_one_and_one_for_all_and_rest_for_one) {
  program([] {
    EXPECT_EQ(restarted(restart::one_for_one), (std::vector<bool>{false, true, false}));
    EXPECT_EQ(restarted(restart::one_for_all), (std::vector<bool>{true, true, true}));
    EXPECT_EQ(restarted(restart::rest_for_one), (std::vector<bool>{false, true, true}));
  });
}

// one_for_one_escalation, one_for_all_escalation, rest_for_one_escalation, simple_one_for_one_escalation,
// multiple_restarts: what fails once more than is allowed takes all down.
TEST_P(otp_supervisors, escalation) {
  program([] {
    for (const restart strategy : {restart::one_for_one, restart::one_for_all, restart::rest_for_one}) {
      supervisor sup{settings(strategy, 4)};
      auto a = sup.spawn_actor<child>();
      auto b = sup.spawn_actor<child>();
      for (int i = 0; i < 4; ++i) {
        const int before = number_of(a);
        a.tell(crash{});
        next_after(a, before);
        EXPECT_EQ(sup.restarts(), static_cast<std::uint64_t>(i) + 1);
      }
      a.tell(crash{});
      EXPECT_EQ(sup.join().kind(), exit_kind::gave_up);
      EXPECT_FALSE(a.alive());
      EXPECT_FALSE(b.alive());
    }
    actor_pool<child> pool{
        {.lifetime = child_lifetime::permanent, .max_restarts = 4, .within = 1h, .report = [](const child_report&) {}}};
    auto a = pool.spawn();
    auto b = pool.spawn();
    for (int i = 0; i < 4; ++i) {
      const int before = number_of(i % 2 == 0 ? a : b);
      (i % 2 == 0 ? a : b).tell(crash{});
      next_after(i % 2 == 0 ? a : b, before);
    }
    a.tell(crash{});
    EXPECT_EQ(pool.join().kind(), exit_kind::gave_up);
    EXPECT_FALSE(b.alive());
  });
}

// {one_for_one,one_for_all,rest_for_one}_other_child_fails_restart: while one that failed is restarted another one
// cannot start, again and again; all run in the end, and each failure has counted.
TEST_P(otp_supervisors, other_child_fails_restart) {
  program([] {
    for (const restart strategy : {restart::one_for_all, restart::rest_for_one}) {
      supervisor sup{settings(strategy, 10)};
      auto a = sup.spawn_actor<child>(named("a"), false);
      auto b = sup.spawn_actor<child>(named("b"), true);
      auto c = sup.spawn_actor<child>(named("c"), false);
      const int before = number_of(c);
      faults = 3;
      a.tell(crash{});
      next_after(c, before);
      EXPECT_EQ(sup.restarts(), 4u);
      EXPECT_EQ(sup.count_children().running, 3u);
      EXPECT_LT(number_of(a), number_of(b));
      EXPECT_LT(number_of(b), number_of(c));
    }
  });
}

// hanging_restart_loop, hanging_restart_loop_rest_for_one, hanging_restart_loop_simple: a supervisor whose child cannot
// be restarted, over and over, still answers, and can be ended.
TEST_P(otp_supervisors, hanging_restart_loop) {
  program([] {
    for (const restart strategy : {restart::one_for_one, restart::one_for_all, restart::rest_for_one}) {
      supervisor sup{settings(strategy, 1'000'000'000)};
      auto a = sup.spawn_actor<child>(named("a"), true);
      auto b = sup.spawn_actor<child>(named("b"));
      faults = 1'000'000'000;
      a.tell(crash{});
      await([&] { return sup.restarts() >= 10; });
      EXPECT_EQ(sup.count_children().children, 2u);
      EXPECT_TRUE(sup.find_child("a"));
      EXPECT_TRUE(sup.stop_child("a"));
      const std::uint64_t then = sup.restarts();
      EXPECT_TRUE(sup.spawn_actor<child>(named("c")).alive());
      EXPECT_EQ(sup.restarts(), then);  // stopped for good
      // OTP leaves those that waited for it where they are.
      EXPECT_GT(number_of(b), 0);
      EXPECT_EQ(sup.count_children().running, 2u);
      EXPECT_TRUE(sup.delete_child("a"));
      faults = 0;
    }
    actor_pool<child> pool{{.lifetime = child_lifetime::permanent,
                            .max_restarts = 1'000'000'000,
                            .within = 1h,
                            .report = [](const child_report&) {}}};
    auto a = pool.spawn(true);
    faults = 1'000'000'000;
    a.tell(crash{});
    await([&] { return pool.restarts() >= 10; });
    EXPECT_EQ(pool.count_children().children, 1u);
    EXPECT_TRUE(pool.stop_child(a));
    EXPECT_EQ(pool.count_children().children, 0u);
    auto b = pool.spawn(false);
    EXPECT_TRUE(b.alive());
    faults = 0;
  });
}

// ---- pools ---------------------------------------------------------------------------------------------------------

// simple_one_for_one, simple_one_for_one_extra, simple_one_for_one_corruption: each child comes back as itself.
TEST_P(otp_supervisors, simple_one_for_one) {
  program([] {
    actor_pool<child> pool{{.lifetime = child_lifetime::permanent, .report = [](const child_report&) {}}};
    auto a = pool.spawn();
    auto b = pool.spawn();
    const int of_a = number_of(a);
    const int of_b = number_of(b);
    a.tell(crash{});
    next_after(a, of_a);
    EXPECT_EQ(number_of(b), of_b);
    EXPECT_EQ(pool.children(), (std::vector<any_actor>{a, b}));
    EXPECT_EQ(pool.restarts(), 1u);
    EXPECT_FALSE(pool.stop_child(pool));  // of what is no child it knows nothing
    EXPECT_TRUE(pool.alive());
  });
}

// simple_one_for_one_shutdown: children are ended all at once, in the time of the slowest, not of their sum.
TEST_P(otp_supervisors, simple_one_for_one_shutdown) {
  static std::atomic<int> ending;
  ending = 0;
  class slow : public actor<slow> {
   public:
    ~slow() {
      ++ending;
      await([] { return ending.load() == 5; });  // each waits for the others
    }
  };
  program([] {
    actor_pool<slow> pool;
    for (int i = 0; i < 5; ++i) pool.spawn();
  });
  EXPECT_EQ(ending.load(), 5);
}

// do_not_save_start_parameters_for_temporary_children, do_not_save_child_specs_for_temporary_children: pool.test.cpp,
// keep_arguments_only_for_those_that_may_be_restarted. simple_one_for_one_scale_many_temporary_children: that a child
// of a pool takes the same time however many there are is measured, docs/design/measured/actors.md.
TEST_P(otp_supervisors, do_not_save_child_specs_for_temporary_children) {
  program([] {
    for (const restart strategy : {restart::one_for_one, restart::one_for_all, restart::rest_for_one}) {
      supervisor sup{settings(strategy)};
      auto a = sup.spawn_actor<child>(named("a", child_lifetime::temporary));
      a.tell(crash{});
      a.join();
      EXPECT_FALSE(sup.find_child("a"));
      auto again = sup.spawn_actor<child>(named("a", child_lifetime::temporary));
      EXPECT_TRUE(sup.stop_child("a"));
      EXPECT_FALSE(sup.restart_child("a"));
      EXPECT_EQ(sup.count_children().children, 0u);
    }
  });
}

// ---- trees ---------------------------------------------------------------------------------------------------------

// child_unlink: that a child takes back its links does not hide it from its supervisor. (Supervision is no link here.)
TEST_P(otp_supervisors, child_unlink) {
  struct unlink_from {
    any_actor whom;
  };
  class loose : public actor<loose> {
   public:
    void on(const unlink_from& u) { unlink(u.whom); }
    int on(which) { return 1; }
  };
  program([] {
    supervisor_ref sup;
    actor_ref<loose> c;
    {
      supervisor owner{settings(restart::one_for_one)};
      sup = owner;
      c = owner.spawn_actor<loose>();
      c.tell(unlink_from{sup});
      EXPECT_EQ(c.ask(which{}), 1);
    }
    EXPECT_FALSE(c.alive());
  });
}

TEST_P(otp_supervisors, tree) {
  program([] {
    supervisor top{settings(restart::one_for_all, 4)};
    auto one = top.spawn_supervisor(settings(restart::one_for_one, 4), named("one"));
    auto all = top.spawn_supervisor(settings(restart::one_for_all, 1), named("all"));
    auto c1 = one.spawn_actor<child>(named("c1"));
    auto c2 = one.spawn_actor<child>(named("c2"));
    auto c3 = all.spawn_actor<child>(named("c3"));
    auto c4 = all.spawn_actor<child>(named("c4"));
    const int n1 = number_of(c1), n2 = number_of(c2), n3 = number_of(c3), n4 = number_of(c4);
    c1.tell(crash{});
    next_after(c1, n1);
    EXPECT_EQ(number_of(c2), n2);
    c3.tell(crash{});
    const int n3b = next_after(c3, n3);
    EXPECT_GT(number_of(c4), n4);
    EXPECT_EQ(number_of(c2), n2);
    c3.tell(crash{});  // `all` gives up, and `top` restarts both; dynamic children of OTP's would be gone
    next_after(c3, n3b);
    EXPECT_GT(next_after(c2, n2), n2);
    EXPECT_EQ(top.restarts(), 1u);
    EXPECT_EQ(one.count_children().children, 2u);
    EXPECT_EQ(all.count_children().running, 2u);
  });
}

// count_children, count_children_supervisor, count_restarting_children.
TEST_P(otp_supervisors, count_children) {
  program([] {
    supervisor sup{{.max_restarts = 10, .within = 1h, .backoff = {.first = 1h}, .report = [](const child_report&) {}}};
    auto a = sup.spawn_actor<child>(named("a"));
    auto b = sup.spawn_actor<child>(named("b"));
    auto inner = sup.spawn_supervisor(settings(restart::one_for_one), named("in"));
    const auto counts = [&](std::size_t children, std::size_t running) {
      const child_counts n = sup.count_children();
      return n.children == children && n.running == running && n.supervisors == 1;
    };
    EXPECT_TRUE(counts(3, 3));
    EXPECT_TRUE(sup.stop_child("a"));
    EXPECT_TRUE(counts(3, 2));
    b.tell(crash{});
    await([&] { return counts(3, 1); });  // it waits for its restart
    EXPECT_TRUE(sup.restart_child("b"));
    EXPECT_TRUE(counts(3, 2));
    EXPECT_TRUE(sup.delete_child("a"));
    EXPECT_TRUE(counts(2, 2));
    actor_pool<child> pool{{.lifetime = child_lifetime::permanent,
                            .max_restarts = 10,
                            .within = 1h,
                            .backoff = {.first = 1h},
                            .report = [](const child_report&) {}}};
    auto c = pool.spawn();
    auto d = pool.spawn();
    c.tell(crash{});
    await([&] { return pool.count_children().running == 1; });
    EXPECT_EQ(pool.count_children().children, 2u);
    EXPECT_TRUE(pool.stop_child(c));
    EXPECT_EQ(pool.count_children().children, 1u);
    EXPECT_EQ(pool.count_children().running, 1u);
  });
}

// ---- significant children ------------------------------------------------------------------------------------------

// significant_temporary, significant_transient, significant_simple, nonsignificant_*, significant_bystander: by
// auto_shutdown, lifetime and reason. A child that its supervisor ends does not count.
TEST_P(otp_supervisors, significant) {
  program([] {
    for (const auto mode : {auto_shutdown::never, auto_shutdown::any_significant, auto_shutdown::all_significant}) {
      for (const auto lifetime : {child_lifetime::transient, child_lifetime::temporary}) {
        for (const bool abnormal : {false, true}) {
          supervisor_options o = settings(restart::one_for_one, 10);
          o.auto_shutdown = mode;
          supervisor sup{o};
          const child_options significant{.lifetime = lifetime, .significant = true};
          auto plain = sup.spawn_actor<child>(child_options{.lifetime = child_lifetime::temporary});
          auto a = sup.spawn_actor<child>(significant);
          auto b = sup.spawn_actor<child>(significant);
          auto bystander = sup.spawn_actor<child>(significant);
          EXPECT_TRUE(sup.stop_child(bystander));
          plain.tell(leave{});
          plain.join();
          const auto end = [&](const actor_ref<child>& c) {
            const int before = number_of(c);
            if (abnormal) c.tell(crash{});
            else c.tell(leave{});
            if (abnormal && lifetime == child_lifetime::transient) next_after(c, before);
            else c.join();
          };
          const bool ends = !abnormal || lifetime == child_lifetime::temporary;
          end(a);
          if (ends && mode == auto_shutdown::any_significant) {
            EXPECT_EQ(sup.join().kind(), exit_kind::shutdown);
            EXPECT_FALSE(b.alive());
            continue;
          }
          EXPECT_EQ(sup.count_children().children, ends ? 1u : 2u);
          end(b);
          if (ends && mode == auto_shutdown::all_significant) {
            EXPECT_EQ(sup.join().kind(), exit_kind::shutdown);
          } else {
            EXPECT_EQ(sup.count_children().children, ends ? 0u : 2u);
          }
        }
      }
    }
    supervisor sup{settings(restart::one_for_one)};  // significant_permanent: refused
    EXPECT_THROW(sup.spawn_actor<child>(child_options{.significant = true}), invalid_argument);
  });
}

}  // namespace
}  // namespace ramie
