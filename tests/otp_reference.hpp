// The reference of otp_model.hpp: what OTP would do, sequentially.
#pragma once

#include <ramie/ramie.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ramie::otp_model {

struct relate {
  enum class how : std::uint8_t { link, unlink, monitor, watch, unmonitor };
  how is;
  any_actor whom;
};

/// The reference.
struct model {
  struct one {
    bool traps = false;
    bool supervised = false;
    child_lifetime lifetime = child_lifetime::permanent;
    int group = 0;  // children with the same number, not 0, are restarted together
    restart strategy = restart::one_for_one;
    bool alive = true;
    int incarnation = 1;
    int added = 0;
    exit_kind last = exit_kind::alive;
    bool ended_now = false;  // an incarnation of it ended in this step
    std::multiset<std::string> heard{};
    std::set<int> links{};
    std::multiset<int> monitors{};  // of actors
    std::multiset<int> watches{};   // of incarnations
  };
  std::vector<one> all;

  static bool normal(exit_kind k) { return k == exit_kind::stopped || k == exit_kind::shutdown; }
  void tell(int to, const char* what, int who, exit_kind why) {
    all[static_cast<std::size_t>(to)].heard.insert(what + std::to_string(who) + " " + to_string(why));
  }
  one& at(int i) { return all[static_cast<std::size_t>(i)]; }
  [[nodiscard]] int size() const { return static_cast<int>(all.size()); }

  /// An incarnation ends, with all consequences; `by_supervisor`: the supervisor continues from there.
  void end(int i, exit_kind why, bool by_supervisor = false) {
    one& o = at(i);
    if (!o.alive || o.incarnation == 0) return;
    o.ended_now = true;
    o.last = why;
    o.heard.clear();
    o.monitors.clear();
    o.watches.clear();
    std::vector<std::pair<int, int>> links;  // with the incarnation that is linked
    for (const int j : std::exchange(o.links, {})) {
      at(j).links.erase(i);
      links.emplace_back(j, at(j).incarnation);
    }
    for (int j = 0; j < size(); ++j) {
      for (auto n = at(j).watches.count(i); n != 0; --n) tell(j, "down ", i, why);
      at(j).watches.erase(i);
    }
    const bool again = o.supervised && (by_supervisor ? o.lifetime != child_lifetime::temporary
                                                      : o.lifetime == child_lifetime::permanent ||
                                                            (o.lifetime == child_lifetime::transient && !normal(why)));
    if (again) ++o.incarnation;
    else finish(i);
    for (const auto& [j, incarnation] : links) {
      if (!at(j).alive || at(j).incarnation != incarnation) continue;
      if (at(j).traps) tell(j, "exit ", i, why);
      else if (!normal(why)) end(j, exit_kind::linked);
    }
    if (!again || by_supervisor || o.strategy == restart::one_for_one) return;
    for (int j = o.strategy == restart::one_for_all ? 0 : i + 1; j < size(); ++j)
      if (j != i && at(j).group == o.group && at(j).alive) end(j, exit_kind::shutdown, true);
  }
  void finish(int i) {
    at(i).alive = false;
    for (int j = 0; j < size(); ++j) {
      for (auto n = at(j).monitors.count(i); n != 0; --n) tell(j, "down ", i, at(i).last);
      at(j).monitors.erase(i);
    }
  }
  void relate_to(int i, relate::how how, int j) {
    one& o = at(i);
    if (how == relate::how::unlink) {
      o.links.erase(j);
      at(j).links.erase(i);
    } else if (how == relate::how::unmonitor) {
      o.monitors.erase(j);
      o.watches.erase(j);
    } else if (how == relate::how::link) {
      if (at(j).alive) {
        if (i == j) return;
        o.links.insert(j);
        at(j).links.insert(i);
      } else if (o.traps) {
        tell(i, "exit ", j, at(j).last);
      } else if (!normal(at(j).last)) {
        end(i, exit_kind::linked);
      }
    } else if (!at(j).alive) {
      tell(i, "down ", j, at(j).last);
    } else {
      (how == relate::how::monitor ? o.monitors : o.watches).insert(j);
    }
  }
};

}  // namespace ramie::otp_model
