// The actors of otp_model.hpp.
#pragma once

#include "otp_reference.hpp"

#include <ramie/ramie.hpp>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace ramie::otp_model {

/// What one slot's actors heard and did, over all of their incarnations.
struct notes {
  std::mutex lock;
  int incarnation = 0;  // of constructors that ran
  int ended = 0;        // of destructors
  int added = 0;
  std::vector<std::string> heard;  // by the latest incarnation
};

struct crash {};
struct add {};
struct ping {};

/// The slot of each actor. Set by the driver, read by actors.
struct people {
  std::mutex lock;
  std::map<any_actor, int> slots;
  int of(const any_actor& a) {
    std::lock_guard guard{lock};
    const auto found = slots.find(a);
    return found == slots.end() ? -1 : found->second;
  }
};

template <class Self>
class subject : public actor<Self> {
 public:
  subject(std::shared_ptr<people> all, std::shared_ptr<notes> mine) : all_{std::move(all)}, mine_{std::move(mine)} {
    std::lock_guard guard{mine_->lock};
    ++mine_->incarnation;
    mine_->heard.clear();
  }
  ~subject() {
    std::lock_guard guard{mine_->lock};
    ++mine_->ended;
  }
  /// As by an exception that is not reported.
  void on(crash) { throw cancelled{}; }
  void on(add) {
    std::lock_guard guard{mine_->lock};
    ++mine_->added;
  }
  int on(ping) { return 1; }
  void on(const relate& r) {
    switch (r.is) {
      case relate::how::link: this->link(r.whom); break;
      case relate::how::unlink: this->unlink(r.whom); break;
      case relate::how::monitor: this->monitor(r.whom); break;
      case relate::how::watch: this->monitor(r.whom, monitoring::incarnation); break;
      case relate::how::unmonitor: this->unmonitor(r.whom); break;
    }
  }
  void on(const down& d) { hear("down ", d.who, d.reason); }

 protected:
  void hear(const char* what, const any_actor& who, const exit_reason& why) {
    std::string line = what + std::to_string(all_->of(who)) + " " + to_string(why.kind());
    std::lock_guard guard{mine_->lock};
    mine_->heard.push_back(std::move(line));
  }

 private:
  std::shared_ptr<people> all_;
  std::shared_ptr<notes> mine_;
};
class mortal : public subject<mortal> {
 public:
  using subject::on;
  using subject::subject;
};
class trapping : public subject<trapping> {
 public:
  using subject::on;
  using subject::subject;
  void on(const exit_signal& s) { hear("exit ", s.who, s.reason); }
};

inline future<int> ask_subject(const any_actor& a, bool traps) {
  if (traps) return actor_ref<trapping>{*a.cell()}.ask_async(ping{});
  return actor_ref<mortal>{*a.cell()}.ask_async(ping{});
}
/// Or it is told that there is no answer: each request ends in one of the two ways.
inline bool answered(future<int>& f) {
  try {
    return f.get() == 1;
  } catch (const actor_down&) {
    return false;
  }
}

}  // namespace ramie::otp_model
