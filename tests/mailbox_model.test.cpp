// Random letters to one actor, and what becomes of each by a reference that takes them one after the other: bounds of
// every kind, urgency, messages put aside and taken back, handlers in place of others, converted messages, requests,
// stop, failures and restarts. All letters are sent while the actor's first handler is at work, so what follows is the
// same on any number of workers.
#include "mailbox_reference.hpp"
#include "seeds.hpp"

#include <ramie/fiber/testing.hpp>
#include <ramie/ramie.hpp>

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ramie {
namespace {

using namespace fiber_tests;
using namespace mailbox_model;

/// Copies that live: none is left at the end.
std::atomic<int> bodies{0};
class body {
 public:
  body() { ++bodies; }
  body(const body&) { ++bodies; }
  body(body&&) noexcept { ++bodies; }
  body& operator=(const body&) = default;
  body& operator=(body&&) = default;
  ~body() { --bodies; }
};

struct told_letter {
  letter is;
  body life{};
};
/// What is converted to the message that the handler takes.
struct short_letter {
  letter is;
};
struct long_letter {
  letter is;
  body life{};
  long_letter(const short_letter& s) : is{s.is} {}
};
struct question {
  letter is;
  body life{};
};
struct begin {};

struct common {
  std::mutex lock;
  std::vector<std::string> notes;
  int incarnation = 0;
  ramie::event begun, go;
  void note(const std::string& text) {
    std::lock_guard guard{lock};
    notes.push_back(text);
  }
};

class subject : public actor<subject> {
 public:
  explicit subject(std::shared_ptr<common> all) : all_{std::move(all)} {
    std::lock_guard guard{all_->lock};
    mine_ = std::to_string(++all_->incarnation);
  }
  void on(begin) {
    all_->begun.set();
    all_->go.wait();
  }
  void on(const told_letter& m) { act(m.is, ""); }
  void on(const long_letter& m) { act(m.is, "c"); }
  int on(const question& m) {
    act(m.is, "");
    return m.is.id;
  }

 private:
  void act(const letter& l, const char* by) {
    const std::string what = mine_ + by + " " + std::to_string(l.id);
    if (l.what == deed::stash_once && aside_.insert(l.id).second) {
      try {
        stash();
        return all_->note(what + " aside");
      } catch (const stash_full&) {
        all_->note(what + " no room");
      }
    } else {
      all_->note(what);
    }
    if (l.what == deed::release) unstash_all();
    if (l.what == deed::replace)
      become([this](const told_letter& m) { act(m.is, "r"); }, [this](const long_letter& m) { act(m.is, "r"); },
             [this](const question& m) {
               act(m.is, "r");
               return m.is.id;
             });
    if (l.what == deed::restore) unbecome();
    if (l.what == deed::tell_self) {
      EXPECT_EQ(self().tell(told_letter{{l.id + 1000}}), tell_status::ok);
    }
    if (l.what == deed::tell_self_now) {
      EXPECT_EQ(self().tell_urgent(told_letter{{l.id + 1000}}), tell_status::ok);
    }
    if (l.what == deed::fail) throw cancelled{};  // which is not reported
    if (l.what == deed::leave) stop();
  }

  std::shared_ptr<common> all_;
  std::string mine_;
  std::set<int> aside_;
};

const char* name_of(way how) {
  const char* const names[] = {"told", "converted", "asked", "stopped"};
  return names[static_cast<int>(how)];
}
std::string text_of(const letter& l) {
  return std::to_string(l.id) + " " + name_of(l.how) + " urgency " + std::to_string(l.urgency) + " deed " +
         std::to_string(static_cast<int>(l.what));
}

/// False if it does not hold after very long.
template <class Condition>
bool holds_soon(Condition condition) {
  for (int polls = 0; polls < 20'000; ++polls) {
    if (condition()) return true;
    if (polls < 500) this_fiber::yield();
    else this_fiber::sleep_for(1ms);
  }
  return false;
}

class program {
 public:
  explicit program(unsigned seed) : random_{seed} {}
  /// What differs; empty if nothing does.
  std::string run(int letters) {
    const auto dice = [&](unsigned n) { return static_cast<unsigned>(random_() % n); };
    settings s;
    s.supervised = dice(2) == 0;
    s.requests_wait = dice(2) == 0;
    if (dice(2) == 0) s.capacity = 1 + dice(6);
    s.when_full = static_cast<overflow>(dice(4));
    s.stash_capacity = dice(2) == 0 ? 1 + dice(3) : s.capacity;
    reference expected{s};
    story_ = "capacity " + std::to_string(s.capacity) + " overflow " + std::to_string(static_cast<int>(s.when_full)) +
             " stash " + std::to_string(s.stash_capacity) + (s.supervised ? " supervised" : "") +
             (s.requests_wait ? " requests wait" : "") + "\n";

    const auto all = std::make_shared<common>();
    const auto lost_before = dead_letters();
    std::map<int, future<int>> asked;
    {
      supervisor top{quiet()};
      const actor_options options{.mailbox_capacity = s.capacity,
                                  .overflow = s.when_full,
                                  .asks_wait_for_restart = s.requests_wait,
                                  .stash_capacity = s.stash_capacity};
      const auto a = s.supervised ? top.spawn_actor<subject>(child_options{.actor = options}, all)
                                  : spawn_actor<subject>(options, all);
      a.tell(begin{});
      all->begun.wait();
      for (int id = 0; id < letters && wrong_.empty(); ++id) {
        letter l{id, static_cast<deed>(dice(static_cast<unsigned>(deed::last) + 1))};
        if (l.what == deed::fail && dice(2) == 0) l.what = deed::nothing;
        l.how = static_cast<way>(dice(16) == 0 ? 3 : dice(3));
        if (l.how == way::told && dice(4) == 0) l.urgency = 1 + static_cast<int>(dice(3));
        // What would wait for room is only tried, which there is no way to do for urgent mail and requests.
        if (s.capacity != 0 && s.when_full == overflow::block_sender && l.how != way::stopped) {
          l.urgency = 0;
          if (l.how == way::asked) l.how = way::told;
        }
        send(a, l, expected, asked);
      }
      all->go.set();
      expected.run();
      if (!expected.alive) {
        a.join();
        if (a.alive()) differ("it lives");
      } else {
        bool comes = holds_soon([&] {
          std::lock_guard guard{all->lock};
          return all->notes.size() >= expected.notes.size() && all->incarnation >= expected.incarnation;
        });
        if (!a.alive()) differ("it has ended");
        // What is more than expected would be handled before this.
        a.tell(told_letter{{-1}});
        comes = comes && holds_soon([&] {
                  std::lock_guard guard{all->lock};
                  return !all->notes.empty() && all->notes.back().ends_with(" -1");
                });
        std::lock_guard guard{all->lock};
        if (comes) all->notes.pop_back();
        else differ("not all was handled");
      }
      if (all->incarnation != expected.incarnation) differ("incarnations: " + std::to_string(all->incarnation));
      if (all->notes != expected.notes) differ("notes: " + joined(all->notes) + ", not " + joined(expected.notes));
      const auto lost = dead_letters();
      const auto now = static_cast<int>(lost.down + lost.full + lost.restarting - lost_before.down - lost_before.full -
                                        lost_before.restarting);
      if (now != expected.lost)
        differ("dead letters: " + std::to_string(now) + ", not " + std::to_string(expected.lost));
      a.stop();
      if (!s.supervised) a.join();
    }
    // A request that was put aside is refused at the end.
    for (auto& [id, answer] : asked)
      if (has_answer(answer, id) != expected.answered.at(id)) differ("the answer to " + std::to_string(id));
    await([] { return bodies.load() == 0; });
    return wrong_.empty() ? wrong_ : wrong_ + "\n" + story_;
  }

 private:
  static supervisor_options quiet() {
    return {.max_restarts = 1'000'000, .within = 1h, .report = [](const child_report&) {}};
  }
  static std::string joined(const std::vector<std::string>& all) {
    std::string text;
    for (const std::string& s : all) text += "[" + s + "] ";
    return text;
  }
  void differ(const std::string& what) { wrong_ += what + "\n"; }
  static bool has_answer(future<int>& f, int id) {
    try {
      return f.get() == id;
    } catch (const actor_down&) {
      return false;
    } catch (const mailbox_full&) {
      return false;
    }
  }
  void send(const actor_ref<subject>& a, const letter& l, reference& expected, std::map<int, future<int>>& asked) {
    const tell_status then = expected.send(l);
    tell_status status = then;
    if (l.how == way::stopped) a.stop();
    else if (l.how == way::asked) asked.emplace(l.id, a.ask_async(question{l}));
    else if (l.how == way::converted) status = a.try_tell(short_letter{l});
    else if (l.urgency != 0) status = a.tell_urgent(told_letter{l}, l.urgency);
    else status = a.try_tell(told_letter{l});
    story_ += text_of(l) + (then == tell_status::ok ? "" : " refused") + "\n";
    if (status != then) differ(text_of(l) + " was " + std::to_string(static_cast<int>(status)));
  }

  std::mt19937 random_;
  std::string story_;
  std::string wrong_;
};

class mailbox_models : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, mailbox_models, few_and_many());

TEST_P(mailbox_models, agree) {
  in_runtime([&] {
    seeds::for_each(seeds::fewer_if_placed(scaled(1000)), [&](int seed) {
      const std::string wrong = program{static_cast<unsigned>(seed)}.run(4 + seed % 20);
      if (!wrong.empty()) ADD_FAILURE() << "seed " << seed << ": " << wrong;
    });
  });
}

}  // namespace
}  // namespace ramie
