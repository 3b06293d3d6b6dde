// What actors offer, each with each of the others at once: bounds, restarts, putting messages aside, urgent mail,
// timers, ties made in constructors, nested supervisors, ends during construction, kills from outside, names, groups,
// handlers in place of others, watches from outside, pools, receive timeouts. All sets of these features run the same
// program, which counts: no message is handled twice or out of order, each request is answered, what an incarnation set
// up ends with it, and nothing is left at the end.
#include <ramie/fiber/testing.hpp>
#include <ramie/ramie.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>

namespace ramie {
namespace {

using namespace fiber_tests;

// The features of one program, as bits.
constexpr unsigned bounds = 1, crashes = 2, stashes = 4, urgent = 8, timers = 16, ties = 32, nested = 64,
                   early_ends = 128, kills = 256, late_answers = 512, names = 1024, groups = 2048, replaced = 4096,
                   watches = 8192, pooled = 16384, quiet_times = 32768, all_features = 65535;
constexpr int senders = 3;
constexpr int per_sender = 30;
constexpr std::size_t room = 4;

struct word {};
struct world {
  unsigned features = 0;
  group<word> all;
  std::atomic<int> payloads{0};  // of messages that exist
  std::atomic<int> states{0};
  std::atomic<int> incarnations{0};  // constructors that began
  std::atomic<int> tied{0};          // of these, those that made a link
  std::atomic<int> wrong{0};
  std::atomic<int> put_aside{0};
  // Of the one actor, whichever incarnation.
  std::array<std::array<int, per_sender>, senders> seen{};
  std::array<int, senders> last{-1, -1, -1};
};

/// Counts the messages that live.
class token {
 public:
  explicit token(std::atomic<int>& of) : of_{&of} { ++*of_; }
  token(const token& other) : of_{other.of_} { ++*of_; }
  token(token&& other) noexcept : of_{other.of_} { ++*of_; }
  token& operator=(const token&) = default;
  token& operator=(token&&) = default;
  ~token() { --*of_; }

 private:
  std::atomic<int>* of_;
};

struct note {
  int sender;
  int number;
  bool aside = false;
  token life;
};
struct question {
  int n;
  token life;
};
struct tick {
  int incarnation;
  token life;
};
struct crash {};
struct release {};
struct exits {};

/// Lives all the while, and hears of each end of those that link to it.
class partner : public actor<partner> {
 public:
  void on(const exit_signal&) { ++heard_; }
  int on(exits) { return heard_; }

 private:
  int heard_ = 0;
};

/// Watches one from outside: each of its incarnations, as far as it is quick enough, and its end.
class watcher : public actor<watcher> {
 public:
  explicit watcher(const any_actor& whom) : end_{monitor(whom)}, incarnation_{monitor(whom, monitoring::incarnation)} {}
  void on(const down& d) {
    if (d.reason.kind() == exit_kind::alive) ++wrong_;
    if (d.ref == end_) {
      ++ends_;
      if (d.who.alive() || d.reason.kind() != exit_kind::shutdown) ++wrong_;
    } else if (d.ref != incarnation_) {
      ++wrong_;
    } else if (d.who.alive()) {
      incarnation_ = monitor(d.who, monitoring::incarnation);
    }
  }
  /// Of the end for good it is told once.
  bool on(exits) { return ends_ == 1 && wrong_ == 0; }

 private:
  monitor_ref end_, incarnation_;
  int ends_ = 0;
  int wrong_ = 0;
};

class subject : public actor<subject> {
 public:
  subject(std::shared_ptr<world> w, const actor_ref<partner>& other)
      : w_{std::move(w)}, other_{other}, mine_{w_->incarnations++} {
    if (has(ties)) {
      link(other);
      monitor(other);
      ++w_->tied;
    }
    if (has(names) && !whereis_any("the subject")) register_name("the subject", self());
    if (has(groups)) {
      w_->all.join(self());
      of_group_ = w_->all.monitor(self()).ref;
    }
    if (has(quiet_times)) set_receive_timeout(20us);
    if (has(timers)) {
      repeat_timer("again", 20us, tick{mine_, token{w_->payloads}});
      send_after(1us, tick{mine_, token{w_->payloads}});
    }
    if (has(early_ends)) {
      if (mine_ % 5 == 2) this_fiber::yield();  // it is known to others, who may kill it just now
      if (mine_ % 5 == 3) throw std::runtime_error{"not this time"};
      if (mine_ % 5 == 1) stop();
      if (mine_ % 5 == 4) self().tell(crash{});
    }
    ++w_->states;
  }
  ~subject() {
    --w_->states;
    if (has(early_ends) && mine_ % 3 == 0) this_fiber::yield();
  }

  void on(note n) {
    if (has(stashes) && n.number % 3 == 0 && !n.aside) {
      n.aside = true;
      try {
        stash(std::move(n));
        ++w_->put_aside;
        return;
      } catch (const stash_full&) {
        unstash_all();
      }
    }
    auto& seen = w_->seen[static_cast<std::size_t>(n.sender)][static_cast<std::size_t>(n.number)];
    if (++seen != 1) ++w_->wrong;
    int& last = w_->last[static_cast<std::size_t>(n.sender)];
    if (!has(stashes) && !has(urgent) && n.number <= last) ++w_->wrong;
    last = n.number;
    if (has(late_answers) && n.number % 4 == 0) this_fiber::yield();
    if (has(replaced) && n.number % 5 == 0)
      become([this](note m) { on(std::move(m)); }, [this](const question& q) { return on(q); });
    if (has(replaced) && n.number % 7 == 0) unbecome();
  }
  void on(word) {}
  void on(const member_joined& j) { check(j.ref); }
  void on(const member_left& l) { check(l.ref); }
  void on(const receive_timeout&) {}
  void on(const crash&) { throw std::runtime_error{"asked to"}; }
  void on(const release&) { unstash_all(); }
  void on(const tick& t) {
    if (t.incarnation != mine_) ++w_->wrong;
  }
  /// The partner lives as long as the runtime.
  void on(const down& d) {
    if (d.reason.kind() != exit_kind::shutdown) ++w_->wrong;
  }
  reply<int> on(const question& q) {
    reply<int> later;
    if (!has(late_answers)) later.set_value(q.n + 1);
    else ask_then(other_, exits{}, [later, n = q.n](const answer<int>&) mutable { later.set_value(n + 1); });
    return later;
  }

 private:
  [[nodiscard]] bool has(unsigned f) const noexcept { return (w_->features & f) != 0; }
  /// What is told of the group is for the incarnation that monitors it.
  void check(monitor_ref of) {
    if (of != of_group_) ++w_->wrong;
  }

  std::shared_ptr<world> w_;
  actor_ref<partner> other_;
  const int mine_;
  monitor_ref of_group_{};
};

supervisor_options silent() {
  supervisor_options o{.max_restarts = 1'000'000, .within = 1h};
  o.report = [](const child_report&) {};
  return o;
}

/// The answer, or that there is none, is all that may come.
void ask_once(const actor_ref<subject>& a, world& w, int n) {
  try {
    if (a.ask(question{n, token{w.payloads}}) != n + 1) ++w.wrong;
  } catch (const actor_down&) {
  } catch (const mailbox_full&) {
  } catch (const broken_reply&) {
  }
}

/// It takes and answers requests again, more of them than there is room: each use of a mailbox gives its room back.
void use_again(const actor_ref<subject>& a, world& w) {
  for (std::size_t answered = 0; answered < 3 * room;) {
    try {
      static_cast<void>(a.ask(question{1, token{w.payloads}}));
      ++answered;
    } catch (const error&) {
      this_fiber::yield();
    }
  }
}

/// Other members of its group come and go.
void pass_through_group(world& w) {
  class member : public actor<member> {
   public:
    void on(word) {}
  };
  auto m = spawn_actor<member>();
  w.all.join(m);
  w.all.publish(word{});
  m.kill();
}

void send_all(const actor_ref<subject>& a, const supervisor_ref& parent, world& w, int sender, unsigned seed) {
  std::mt19937 random{seed};
  for (int i = 0; i < per_sender; ++i) {
    const auto dice = [&](unsigned n) { return random() % n; };
    note n{sender, i, false, token{w.payloads}};
    if ((w.features & urgent) != 0 && dice(4) == 0) a.tell_urgent(std::move(n));
    else if (dice(4) == 0) a.try_tell(std::move(n));
    else a.tell(std::move(n));
    if ((w.features & crashes) != 0 && dice(6) == 0) a.tell(crash{});
    if ((w.features & stashes) != 0 && dice(4) == 0) a.tell(release{});
    if ((w.features & kills) != 0 && dice(8) == 0) a.kill();
    if ((w.features & nested) != 0 && dice(per_sender) == 0) parent.kill();
    if ((w.features & groups) != 0 && dice(6) == 0) pass_through_group(w);
    if (dice(3) == 0) ask_once(a, w, i);
    if (dice(3) == 0) this_fiber::yield();
  }
}

actor_ref<subject> start_subject(const supervisor_ref& top, const supervisor_ref& parent,
                                 const std::shared_ptr<world>& w, const actor_ref<partner>& other, overflow when_full,
                                 unsigned seed) {
  child_options how;
  if ((w->features & bounds) != 0) how.actor.mailbox_capacity = room;
  how.actor.overflow = when_full;
  how.actor.asks_wait_for_restart = seed % 2 == 0;
  if ((w->features & pooled) == 0) return parent.spawn_actor<subject>(how, w, other);
  return top
      .spawn_pool<subject>({.lifetime = child_lifetime::permanent,
                            .max_restarts = 1'000'000,
                            .within = 1h,
                            .actor = how.actor,
                            .report = [](const child_report&) {}})
      .spawn(w, other);
}

void run_program(unsigned features, overflow when_full, unsigned seed) {
  if ((features & pooled) != 0) features &= ~nested;  // a pool's children end with it
  const std::string what = "features " + std::to_string(features) + ", overflow " +
                           std::to_string(static_cast<int>(when_full)) + ", seed " + std::to_string(seed);
  const auto w = std::make_shared<world>();
  w->features = features;
  const auto other = spawn_actor<partner>();
  actor_ref<watcher> watching;
  {
    supervisor top{silent()};
    const supervisor_ref parent = (features & nested) != 0 ? top.spawn_supervisor(silent()) : supervisor_ref{top};
    const auto a = start_subject(top, parent, w, other, when_full, seed);
    if ((features & watches) != 0) watching = spawn_actor<watcher>(any_actor{a});
    scope all;
    for (int s = 0; s < senders; ++s)
      all.spawn([&, s] { send_all(a, parent, *w, s, seed * senders + static_cast<unsigned>(s)); });
    all.join();
    use_again(a, *w);
    a.tell(release{});
    use_again(a, *w);
    if ((features & names) != 0) {
      EXPECT_EQ(whereis<subject>("the subject"), a) << what;
    }
    if ((features & groups) != 0) {
      EXPECT_TRUE(w->all.contains(a)) << what;
      await([&] { return w->all.size() == 1; });
    }
    if ((features & (bounds | crashes | nested | early_ends | kills)) == 0) {
      for (const auto& of_sender : w->seen)
        for (const int times : of_sender) EXPECT_EQ(times, 1) << what;
    }
  }
  EXPECT_FALSE(whereis_any("the subject")) << what;
  EXPECT_EQ(w->all.size(), 0u) << what;
  if ((features & watches) != 0) {
    EXPECT_TRUE(watching.ask(exits{})) << what;
    watching.stop();
    watching.join();
  }
  EXPECT_EQ(w->states.load(), 0) << what;
  EXPECT_EQ(w->wrong.load(), 0) << what;
  await([&] { return w->payloads.load() == 0; });
  // Notes of ends are sent before the waiter for the supervisor is told.
  if ((features & ties) != 0) {
    EXPECT_EQ(other.ask(exits{}), w->tied.load()) << what;
  }
  other.stop();
  other.join();
}

/// Under `dedicated` most messages wake another worker.
int few_if_placed(int n) { return std::max(1, scaled(n) / (std::getenv("RAMIE_PLACEMENT") != nullptr ? 10 : 1)); }

class actor_pairs : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, actor_pairs, few_and_many());

/// Every pair, and every single one, under each way in which a full mailbox behaves.
TEST_P(actor_pairs, hold_whatever_else_happens) {
  in_runtime([] {
    for (unsigned a = 1; a <= all_features; a *= 2) {
      for (unsigned b = a; b <= all_features; b *= 2) {
        const unsigned both = a | b;
        const int ways = (both & bounds) != 0 ? 4 : 1;
        for (int way = 0; way < ways; ++way) {
          for (unsigned seed = 0; seed < (sanitized ? 1 : 2); ++seed)
            run_program(both, static_cast<overflow>(way), seed);
          if (testing::Test::HasFailure()) return;
        }
      }
    }
  });
}

void run_until_it_ends(const std::shared_ptr<world>& w, overflow when_full, unsigned seed) {
  const auto other = spawn_actor<partner>();
  supervisor top{silent()};
  const supervisor_ref parent = (w->features & nested) != 0 ? top.spawn_supervisor(silent()) : supervisor_ref{top};
  const auto a = start_subject(top, parent, w, other, when_full, seed);
  actor_ref<watcher> watching;
  if ((w->features & watches) != 0) watching = spawn_actor<watcher>(any_actor{a});
  scope all;
  for (int s = 0; s < senders; ++s)
    all.spawn([&, s] { send_all(a, parent, *w, s, seed * senders + static_cast<unsigned>(s)); });
  all.join();
}

/// The runtime ends at some moment of such a program: nothing is left of it.
TEST_P(actor_pairs, end_with_their_runtime) {
  std::mt19937 random{3};
  for (int i = 0; i < few_if_placed(300) && !testing::Test::HasFailure(); ++i) {
    const auto w = std::make_shared<world>();
    w->features = static_cast<unsigned>(random() % (all_features + 1));
    const auto when_full = static_cast<overflow>(random() % 4);
    const auto seed = static_cast<unsigned>(random());
    const auto turns = static_cast<unsigned>(1 + random() % 400);
    {
      runtime rt{options()};
      rt.run([&] {
        spawn([=] {
          try {
            run_until_it_ends(w, when_full, seed);
          } catch (const error&) {  // of what has been shut down before it
          }
        }).detach();
        for (unsigned n = 0; n < turns; ++n) this_fiber::yield();
      });
    }
    EXPECT_EQ(w->states.load(), 0) << i;
    EXPECT_EQ(w->payloads.load(), 0) << i;
    EXPECT_EQ(w->wrong.load(), 0) << i;
    EXPECT_EQ(w->all.size(), 0u) << i;
  }
}

/// Any set of them.
TEST_P(actor_pairs, hold_all_together) {
  in_runtime([] {
    std::mt19937 random{7};
    for (int i = 0; i < few_if_placed(400) && !testing::Test::HasFailure(); ++i)
      run_program(random() % (all_features + 1), static_cast<overflow>(random() % 4), static_cast<unsigned>(random()));
  });
}

}  // namespace
}  // namespace ramie
