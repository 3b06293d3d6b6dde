// Random programs of actors, compared with a sequential reference of what OTP would do, with the differences that
// docs/guides/erlang.md lists: references outlive restarts, and so do monitors of an actor.
//
// One fiber gives the commands, one after the other, and after each waits for the state that the reference predicts:
// which actors live, in which incarnation, and what each has heard. An incarnation that ends in a step may have heard
// any part of what came in that step; one that lives on has heard all of it, once.
#pragma once

#include "otp_reference.hpp"
#include "otp_subjects.hpp"

#include <ramie/ramie.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ramie::otp_model {

using namespace std::chrono_literals;

/// A source of choices: `pick(n)` gives 0 to n-1.
using picker = std::function<std::uint32_t(std::uint32_t n)>;

class program {
  static constexpr int slots_most = 14;

 public:
  /// Within a runtime. `fail(text)` gets the differences from the reference. Commands are for the first `among` actors:
  /// what takes several of the same few is met sooner among three, which are children restarted each for itself.
  program(picker pick, std::function<void(const std::string&)> fail, int polls_most, int among = slots_most)
      : pick_{std::move(pick)}, fail_{std::move(fail)}, polls_most_{polls_most}, among_{among} {}

  void run(int steps) {
    all_ = std::make_shared<people>();
    supervisor single{quiet(restart::one_for_one)};
    const restart strategy = pick_(2) == 0 ? restart::one_for_all : restart::rest_for_one;
    supervisor together{quiet(strategy)};
    above_ = {single, together};
    for (int i = 0; i < 3; ++i) start_child();
    start_group(strategy);
    for (int i = 0; i < 2; ++i) start_loose(pick_(2) == 0);
    start_loose(true);
    hears_all_ = model_.size() - 1;
    settle("the start");
    for (int i = 0; i < steps && !failed_; ++i) step();
    for (std::size_t i = 0; i < actors_.size(); ++i)
      if (!model_.all[i].supervised) actors_[i].kill();
    for (std::size_t i = 0; i < actors_.size(); ++i)
      if (!model_.all[i].supervised) actors_[i].join();
  }
  [[nodiscard]] const std::string& story() const { return story_; }

 private:
  static supervisor_options quiet(restart strategy) {
    supervisor_options o{.strategy = strategy, .max_restarts = 1'000'000, .within = 1h};
    o.report = [](const child_report&) {};
    return o;
  }
  template <class Start>
  void enter(model::one o, Start start) {
    auto mine = std::make_shared<notes>();
    const any_actor a = start(mine);
    {
      std::lock_guard guard{all_->lock};
      all_->slots[a] = static_cast<int>(actors_.size());
    }
    actors_.push_back(a);
    notes_.push_back(mine);
    model_.all.push_back(std::move(o));
  }
  /// The id of the one that is entered next.
  [[nodiscard]] std::string next_id() const { return std::to_string(model_.size()); }
  void start_child() {
    const auto lifetime = static_cast<child_lifetime>(pick_(3));
    const bool traps = pick_(2) == 0;
    enter({.traps = traps, .supervised = true, .lifetime = lifetime}, [&](const auto& mine) -> any_actor {
      const child_options spec{.lifetime = lifetime, .id = next_id()};
      if (traps) return above_[0].spawn_actor<trapping>(spec, all_, mine);
      return above_[0].spawn_actor<mortal>(spec, all_, mine);
    });
  }
  /// They have no links: a link would race with the way their ends follow from each other's.
  void start_group(restart strategy) {
    for (int i = 0; i < 3; ++i) {
      const auto lifetime = static_cast<child_lifetime>(pick_(3));
      enter({.traps = true, .supervised = true, .lifetime = lifetime, .group = 1, .strategy = strategy},
            [&](const auto& mine) -> any_actor {
              return above_[1].spawn_actor<trapping>(child_options{.lifetime = lifetime, .id = next_id()}, all_, mine);
            });
    }
  }
  void start_loose(bool traps) {
    enter({.traps = traps}, [&](const auto& mine) -> any_actor {
      if (traps) return spawn_actor<trapping>(all_, mine);
      return spawn_actor<mortal>(all_, mine);
    });
  }

  template <class M>
  void send(int i, const M& m) {
    const any_actor& a = actors_[static_cast<std::size_t>(i)];
    const auto to = [&]<class A>(std::type_identity<A>) { static_cast<void>(actor_ref<A>{*a.cell()}.tell(m)); };
    if (model_.at(i).traps) to(std::type_identity<trapping>{});
    else to(std::type_identity<mortal>{});
  }

  void step() {
    const int n = model_.size();
    const auto choices = static_cast<std::uint32_t>(std::min(n, among_));
    const int i = static_cast<int>(pick_(choices));
    int j = static_cast<int>(pick_(choices));
    const std::uint32_t what = pick_(15);
    for (model::one& o : model_.all) o.ended_now = false;
    model::one& o = model_.at(i);
    std::string said = std::to_string(i);
    if (what < 7) {
      const auto how = what < 3   ? relate::how::link
                       : what < 4 ? relate::how::monitor
                       : what < 5 ? relate::how::watch
                       : what < 6 ? relate::how::unlink
                                  : relate::how::unmonitor;
      // Of a group only an actor outside of all cascades hears, which traps.
      if ((o.group != 0 || model_.at(j).group != 0) && i != hears_all_) return;
      if (i == j && how != relate::how::link) return;
      if (!o.alive) return;
      said += " relates as " + std::to_string(static_cast<int>(how)) + " to " + std::to_string(j);
      model_.relate_to(i, how, j);
      send(i, relate{how, actors_[static_cast<std::size_t>(j)]});
    } else if (what == 7 || what == 8) {
      // In one step: what is sent after the crash is for the next incarnation.
      said += " crashes";
      const bool before = o.alive;
      model_.end(i, exit_kind::failed);
      if (before) o.added += o.alive ? 3 : 2;
      send(i, add{});
      send(i, add{});
      send(i, crash{});
      send(i, add{});
    } else if (what == 9) {
      said += " is stopped";
      model_.end(i, exit_kind::stopped);
      actors_[static_cast<std::size_t>(i)].stop();
    } else if (what == 10) {
      said += " is killed";
      model_.end(i, exit_kind::killed);
      actors_[static_cast<std::size_t>(i)].kill();
    } else if (what == 11) {
      said += " is asked, crashes, and is asked again";
      const bool before = o.alive;
      model_.end(i, exit_kind::failed);
      auto first = request(i);
      send(i, crash{});
      auto second = request(i);
      if (answered(first) != before) wrong(said + ": the first request");
      if (answered(second) && !o.alive) wrong(said + ": the second request");
    } else if (what == 12) {
      if (!o.supervised) return;
      said += " is terminated and restarted by its id";
      const bool before = o.alive;
      model_.end(i, exit_kind::shutdown, true);
      const supervisor_ref& above = above_[o.group == 0 ? 0 : 1];
      if (above.stop_child(std::to_string(i)) != before) wrong(said + ": terminated");
      if (above.restart_child(std::to_string(i)) != (before && o.alive)) wrong(said + ": restarted");
    } else if (what == 13) {
      if (n == slots_most) return;
      said = next_id() + " is spawned";
      if (pick_(2) == 0) start_child();
      else start_loose(pick_(2) == 0);
    } else {
      said += " gets mail";
      if (o.alive) ++o.added;
      send(i, add{});
    }
    story_ += said + "\n";
    settle(said);
  }

  /// Empty if the state matches the reference.
  std::string difference() {
    for (int i = 0; i < model_.size(); ++i) {
      model::one& o = model_.at(i);
      const std::string slot = "actor " + std::to_string(i);
      if (actors_[static_cast<std::size_t>(i)].alive() != o.alive) return slot + (o.alive ? " has ended" : " lives");
      notes& at = *notes_[static_cast<std::size_t>(i)];
      std::lock_guard guard{at.lock};
      if (at.incarnation != o.incarnation)
        return slot + " is incarnation " + std::to_string(at.incarnation) + ", not " + std::to_string(o.incarnation);
      if (at.ended != o.incarnation - (o.alive ? 1 : 0)) return slot + ": a state more or less than there should be";
      if (at.added != o.added) return slot + " added " + std::to_string(at.added) + ", not " + std::to_string(o.added);
      if (!o.alive) continue;
      const std::multiset<std::string> heard{at.heard.begin(), at.heard.end()};
      if (heard == o.heard) continue;
      std::string text = slot + " heard";
      for (const auto& line : heard) text += " [" + line + "]";
      text += ", not";
      for (const auto& line : o.heard) text += " [" + line + "]";
      return text;
    }
    return {};
  }

  void settle(const std::string& after) {
    std::string wrong;
    for (int polls = 0; polls < polls_most_; ++polls) {
      wrong = difference();
      if (wrong.empty()) {
        // Mail that is still in mailboxes would show after this: each actor answers, and nothing has changed.
        for (int i = 0; i < model_.size(); ++i) answer(i);
        wrong = difference();
        if (wrong.empty()) return;
      }
      if (polls < 200) this_fiber::yield();
      else this_fiber::sleep_for(1ms);
    }
    this->wrong("after \"" + after + "\": " + wrong);
  }
  void wrong(const std::string& what) {
    failed_ = true;
    fail_(what + "\n" + story_);
  }
  future<int> request(int i) { return ask_subject(actors_[static_cast<std::size_t>(i)], model_.at(i).traps); }
  void answer(int i) {
    auto asked = request(i);
    answered(asked);
  }

  picker pick_;
  std::function<void(const std::string&)> fail_;
  int polls_most_;
  int among_;
  std::shared_ptr<people> all_;
  std::array<supervisor_ref, 2> above_;  // each for itself; together
  int hears_all_ = 0;
  std::vector<any_actor> actors_;
  std::vector<std::shared_ptr<notes>> notes_;
  model model_;
  std::string story_;
  bool failed_ = false;
};

}  // namespace ramie::otp_model
