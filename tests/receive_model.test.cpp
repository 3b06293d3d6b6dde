// Random letters to one fiber actor, which takes them by random receives: in order, by a predicate, for a time; and
// what it gets by a list. With bounds, urgency, stops in between, functions that return or throw, and restarts. All
// letters are there before the first receive, so the result is the same on any number of workers.
#include "seeds.hpp"

#include <ramie/fiber/testing.hpp>
#include <ramie/ramie.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

namespace ramie {
namespace {

using namespace fiber_tests;

struct letter {
  int id = 0;
};
using box_type = mailbox<letter, int>;

/// A receive, or how the function ends.
struct operation {
  enum class kind { receive, receive_for, pick, pick_for, leave, fail } is;
  int of = 2;  // pick: letters whose id is a multiple
};

/// What a letter or a stop is to the list.
struct item {
  int id = 0;  // -1: a stop
  int urgency = 0;
  bool is_int = false;
};

struct plan {
  std::size_t capacity = 0;
  overflow when_full = overflow::fail;
  bool supervised = false;
  std::vector<std::vector<operation>> lives;  // of each incarnation; those behind receive until they are stopped
};

struct shared_state {
  plan by;
  std::mutex lock;
  std::vector<std::string> notes;
  int lives = 0;
  ramie::event begun, go;
  void note(const std::string& text) {
    std::lock_guard guard{lock};
    notes.push_back(text);
  }
};

std::string text_of(const box_type::any_message& m) {
  if (!m) return "nothing";
  if (const letter* l = std::get_if<letter>(&*m)) return std::to_string(l->id);
  return "int " + std::to_string(std::get<int>(*m));
}

void serve(const std::shared_ptr<shared_state>& all, box_type& box) {
  const auto life = static_cast<std::size_t>(all->lives++);
  if (life == 0) {
    all->begun.set();
    all->go.wait();
  }
  const std::string mine = std::to_string(life) + ": ";
  const auto picks = [](int of) { return [of](const letter& l) { return l.id % of == 0; }; };
  if (life < all->by.lives.size()) {
    for (const operation& o : all->by.lives[life]) {
      switch (o.is) {
        case operation::kind::receive:
          // One that might wait for ever: what comes is either there or does not come.
          all->note(mine + text_of(box.receive_for(0ns)));
          break;
        case operation::kind::receive_for: all->note(mine + text_of(box.receive_for(1us))); break;
        case operation::kind::pick:
        case operation::kind::pick_for: {
          const auto l = box.receive_if_for<letter>(o.is == operation::kind::pick ? 0ns : 1us, picks(o.of));
          all->note(mine + "pick " + (l ? std::to_string(l->id) : "nothing"));
          break;
        }
        case operation::kind::leave: return;
        case operation::kind::fail: throw cancelled{};
      }
    }
    if (life + 1 < all->by.lives.size()) return;
  }
  while (auto m = box.receive()) all->note(mine + text_of(m));
}

/// What the notes will be.
class reference {
 public:
  explicit reference(const plan& p) : p_{p} {}
  std::vector<std::string> notes;
  int lost = 0;
  bool alive = true;

  tell_status send(const item& i) {
    if (i.id == -1) {
      list_.push_back(i);
      return tell_status::ok;
    }
    const auto waiting = std::count_if(list_.begin(), list_.end(), [](const item& at) { return at.id != -1; });
    if (p_.capacity != 0 && static_cast<std::size_t>(waiting) >= p_.capacity) {
      if (p_.when_full == overflow::block_sender) return tell_status::full;
      if (p_.when_full != overflow::drop_oldest) {
        ++lost;
        return p_.when_full == overflow::fail ? tell_status::full : tell_status::dropped;
      }
      drop_oldest();
    }
    const auto behind =
        std::find_if(list_.begin(), list_.end(), [&](const item& at) { return at.urgency < i.urgency; });
    list_.insert(i.urgency == 0 ? list_.end() : behind, i);
    return tell_status::ok;
  }
  void run() {
    while (alive && live()) ++life_;
  }

 private:
  void drop_oldest() {
    auto found = list_.end();
    for (auto at = list_.begin(); at != list_.end(); ++at)
      if (at->id != -1 && (found == list_.end() || at->urgency < found->urgency)) found = at;
    if (found == list_.end()) return;
    list_.erase(found);
    ++lost;
  }
  /// False: it waits for more.
  bool live() {
    const std::string mine = std::to_string(life_) + ": ";
    bool ended = false;
    const auto take = [&](int of) -> std::string {
      for (auto at = list_.begin(); at != list_.end() && !ended; ++at) {
        if (at->id == -1) {
          if (at == list_.begin()) {
            ended = true;
            list_.erase(at);
          }
          return "nothing";
        }
        if (of != 0 && (at->is_int || at->id % of != 0)) continue;
        const std::string text = (at->is_int ? "int " : "") + std::to_string(at->id);
        list_.erase(at);
        return text;
      }
      return "nothing";
    };
    const auto life = static_cast<std::size_t>(life_);
    bool serves_on = life >= p_.lives.size();
    if (!serves_on) {
      serves_on = life + 1 == p_.lives.size();
      for (const operation& o : p_.lives[life]) {
        const bool picks = o.is == operation::kind::pick || o.is == operation::kind::pick_for;
        if (o.is == operation::kind::leave || o.is == operation::kind::fail) {
          serves_on = false;
          break;
        }
        notes.push_back(mine + (picks ? "pick " + take(o.of) : take(0)));
      }
    }
    if (serves_on) {
      while (!list_.empty() && !ended) {
        const std::string text = take(0);
        if (!ended) notes.push_back(mine + text);
      }
      if (!ended) return false;
    }
    if (!p_.supervised) {
      alive = false;
      lost += static_cast<int>(std::count_if(list_.begin(), list_.end(), [](const item& i) { return i.id != -1; }));
    }
    return true;
  }

  plan p_;
  std::list<item> list_;  // the most urgent first
  int life_ = 0;
};

std::string joined(const std::vector<std::string>& all) {
  std::string text;
  for (const std::string& s : all) text += "[" + s + "] ";
  return text;
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

/// Empty if all is as it should be.
std::string run_program(unsigned seed) {
  std::mt19937 random{seed};
  const auto dice = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  const auto all = std::make_shared<shared_state>();
  plan& p = all->by;
  p.supervised = dice(2) == 0;
  if (dice(2) == 0) p.capacity = 1 + dice(6);
  p.when_full = static_cast<overflow>(dice(4));
  for (unsigned lives = 1 + dice(3); lives != 0; --lives) {
    auto& life = p.lives.emplace_back();
    for (unsigned n = dice(6); n != 0; --n)
      life.push_back(
          {static_cast<operation::kind>(dice(16) == 0 ? 4 + dice(2) : dice(4)), 2 + static_cast<int>(dice(3))});
  }
  reference expected{p};
  std::string story = "capacity " + std::to_string(p.capacity) + " overflow " +
                      std::to_string(static_cast<int>(p.when_full)) + (p.supervised ? " supervised\n" : "\n");
  std::string wrong;
  const auto before = dead_letters();
  supervisor top{{.max_restarts = 1'000'000, .within = 1h, .report = [](const child_report&) {}}};
  const actor_options options{.mailbox_capacity = p.capacity, .overflow = p.when_full};
  const auto f = [all](box_type& box) { serve(all, box); };
  const auto a = p.supervised ? top.spawn_actor<letter, int>(child_options{.actor = options}, f)
                              : spawn_actor<letter, int>(options, f);
  all->begun.wait();
  const unsigned letters = 3 + dice(12);
  for (unsigned n = 0; n < letters; ++n) {
    item i{.id = static_cast<int>(n), .is_int = dice(4) == 0};
    if (dice(10) == 0) i.id = -1;
    else if (dice(4) == 0 && !(p.capacity != 0 && p.when_full == overflow::block_sender))
      i.urgency = 1 + static_cast<int>(dice(3));
    const tell_status then = expected.send(i);
    tell_status status = then;
    if (i.id == -1) a.stop();
    else if (i.urgency != 0)
      status = i.is_int ? a.tell_urgent(i.id, i.urgency) : a.tell_urgent(letter{i.id}, i.urgency);
    else status = i.is_int ? a.try_tell(i.id) : a.try_tell(letter{i.id});
    story += std::to_string(i.id) + (i.is_int ? " int" : "") + " urgency " + std::to_string(i.urgency) +
             (then == tell_status::ok ? "\n" : " refused\n");
    if (status != then) wrong += std::to_string(i.id) + " was " + std::to_string(static_cast<int>(status)) + "\n";
  }
  all->go.set();
  expected.run();
  if (!expected.alive) {
    a.join();
  } else {
    const auto noted = [&] {
      std::lock_guard guard{all->lock};
      return all->notes.size();
    };
    bool comes = holds_soon([&] { return noted() >= expected.notes.size(); });
    a.tell(letter{1000});
    comes = comes && holds_soon([&] { return noted() > expected.notes.size(); });
    std::lock_guard guard{all->lock};
    if (!comes || !all->notes.back().ends_with(": 1000")) wrong += "more was noted, or less\n";
    else all->notes.pop_back();
  }
  if (a.alive() != expected.alive) wrong += "alive\n";
  if (all->notes != expected.notes) wrong += "noted " + joined(all->notes) + "not " + joined(expected.notes) + "\n";
  const auto after = dead_letters();
  const auto lost = static_cast<int>(after.down + after.full - before.down - before.full);
  if (lost != expected.lost) wrong += "lost " + std::to_string(lost) + ", not " + std::to_string(expected.lost) + "\n";
  if (!p.supervised) {
    a.kill();
    a.join();
  }
  return wrong.empty() ? wrong : wrong + story;
}

class receive_models : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, receive_models, few_and_many());

TEST_P(receive_models, agree) {
  in_runtime([&] {
    seeds::for_each(seeds::fewer_if_placed(scaled(1000)), [&](int seed) {
      const std::string wrong = run_program(static_cast<unsigned>(seed));
      if (!wrong.empty()) ADD_FAILURE() << "seed " << seed << ": " << wrong;
    });
  });
}

}  // namespace
}  // namespace ramie
