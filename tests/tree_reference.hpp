// The reference of tree_model.test.cpp: a tree of supervisors that does one thing at a time.
#pragma once

#include <ramie/supervise/supervisor_options.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ramie::tree_model {

struct node {
  std::string id;
  bool is_supervisor = false;
  bool is_pool = false;  // a supervisor as well
  bool pooled = false;   // a child of one: its end is not noted, for they end all at once
  node* above = nullptr;
  child_lifetime lifetime = child_lifetime::permanent;
  bool significant = false;
  child_state state = child_state::running;
  bool alive = true;  // not for good gone
  int restarts = 0;
  // Supervisors.
  restart strategy = restart::one_for_one;
  auto_shutdown shuts_down = auto_shutdown::never;
  int restarts_most = 3;
  int recent = 0;
  int restarted = 0;  // children, ever
  std::vector<node*> children{};
};

/// Thrown by the start of what cannot be constructed.
struct cannot_start {};

class reference {
 public:
  std::vector<std::string> notes;     // who was constructed, could not be, or ended, in that order
  std::map<std::string, int> faults;  // so many constructors of that id throw from now on
  std::vector<std::unique_ptr<node>> all;

  node& make(node n) {
    all.push_back(std::make_unique<node>(std::move(n)));
    return *all.back();
  }
  /// False if its constructor throws.
  bool spawn(node n) {
    try {
      if (!n.is_supervisor) construct(n.id);
    } catch (const cannot_start&) {
      return false;
    }
    node& made = make(std::move(n));
    if (made.above != nullptr) made.above->children.push_back(&made);
    return true;
  }

  /// It ends by itself.
  void end(node& n, bool normal) {
    if (!n.alive || n.state != child_state::running) return;
    die(n);
    if (n.above == nullptr) finish(n);
    else ended(n, normal);
  }
  bool stop(node& n) {
    if (n.lifetime == child_lifetime::temporary) {
      die(n);
      remove(n);
    } else {
      die(n);
      n.state = child_state::stopped;
    }
    return true;
  }
  /// True: it was not running and does now. Throws cannot_start.
  bool restart_by_id(node& n) {
    if (n.state == child_state::running) return false;
    try {
      start(n);
    } catch (...) {
      n.state = child_state::stopped;
      throw;
    }
    return true;
  }
  void erase(node& n) {
    die(n);
    remove(n);
  }

 private:
  void construct(const std::string& id) {
    if (int& left = faults[id]; left > 0) {
      --left;
      notes.push_back("fault " + id);
      throw cannot_start{};
    }
    notes.push_back("born " + id);
  }
  /// What runs of it comes to rest, youngest first.
  void die(node& n) {
    if (n.state != child_state::running) return;
    if (n.is_pool) {
      while (!n.children.empty()) remove(*n.children.back());
    } else if (n.is_supervisor) {
      for (auto c = n.children.rbegin(); c != n.children.rend(); ++c) rest(**c);
    } else if (!n.pooled) {
      notes.push_back("died " + n.id);
    }
    if (n.above != nullptr) n.state = child_state::restarting;
  }
  void rest(node& n) {
    const child_state before = n.state;
    die(n);
    if (before == child_state::running) n.state = child_state::restarting;
  }
  /// For good.
  void finish(node& n) {
    n.alive = false;
    for (node* c : n.children) finish(*c);
    n.children.clear();
  }
  void remove(node& n) {
    std::erase(n.above->children, &n);
    finish(n);
  }
  void start(node& n) {
    n.state = child_state::restarting;
    if (!n.is_supervisor) {
      construct(n.id);
    } else {
      n.recent = 0;
      const std::vector<node*> before = n.children;
      for (node* c : before)
        if (c->lifetime == child_lifetime::temporary) remove(*c);
      try {
        for (node* c : n.children) start(*c);
      } catch (const cannot_start&) {
        for (auto c = n.children.rbegin(); c != n.children.rend(); ++c) rest(**c);
        throw;
      }
    }
    n.state = child_state::running;
  }
  void ended(node& n, bool normal) {
    node& p = *n.above;
    n.state = child_state::restarting;
    const bool again = n.lifetime == child_lifetime::permanent || (n.lifetime == child_lifetime::transient && !normal);
    if (!again) {
      const bool significant = n.significant;
      remove(n);
      if (!significant || p.shuts_down == auto_shutdown::never) return;
      if (p.shuts_down == auto_shutdown::any_significant ||
          std::none_of(p.children.begin(), p.children.end(), [](const node* c) { return c->significant; }))
        end(p, true);
      return;
    }
    if (p.recent >= p.restarts_most) return end(p, false);
    ++p.recent;
    ++p.restarted;
    ++n.restarts;
    end_others(p, n);
    std::size_t at = 0;
    while (p.strategy != restart::one_for_all && p.children[at] != &n) ++at;
    for (; at < p.children.size(); ++at) {
      node& c = *p.children[at];
      if (c.state != child_state::restarting) continue;
      try {
        start(c);
      } catch (const cannot_start&) {
        return ended(c, false);
      }
      if (p.strategy == restart::one_for_one) return;
    }
  }
  void end_others(node& p, const node& cause) {
    if (p.strategy == restart::one_for_one) return;
    const std::vector<node*> before = p.children;
    for (auto c = before.rbegin(); c != before.rend(); ++c) {
      if (*c == &cause) {
        if (p.strategy == restart::rest_for_one) return;
        continue;
      }
      if ((*c)->state == child_state::stopped) continue;
      rest(**c);
      if ((*c)->lifetime == child_lifetime::temporary) remove(**c);
    }
  }
};

}  // namespace ramie::tree_model
