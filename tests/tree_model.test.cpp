// Random trees of supervisors and pools, and what is done to them: ends of every kind, children added, stopped, started
// again and deleted by their ids, constructors that throw. After each step the order in which states were constructed
// and destroyed has to be the reference's, and so have the lists of children.
#include "seeds.hpp"
#include "tree_reference.hpp"

#include <ramie/fiber/testing.hpp>
#include <ramie/ramie.hpp>

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ramie {
namespace {

using namespace fiber_tests;
using namespace tree_model;

struct crash {};
struct leave {};

/// What the actors noted, and which of their constructors throw.
struct shared_notes {
  std::mutex lock;
  std::vector<std::string> notes;
  std::map<std::string, int> faults;
  int alive = 0;
};

class leaf : public actor<leaf> {
 public:
  leaf(std::shared_ptr<shared_notes> all, std::string id, bool pooled)
      : all_{std::move(all)}, id_{std::move(id)}, pooled_{pooled} {
    std::lock_guard guard{all_->lock};
    if (int& left = all_->faults[id_]; left > 0) {
      --left;
      all_->notes.push_back("fault " + id_);
      throw std::runtime_error{"cannot start"};
    }
    all_->notes.push_back("born " + id_);
    ++all_->alive;
  }
  ~leaf() {
    std::lock_guard guard{all_->lock};
    if (!pooled_) all_->notes.push_back("died " + id_);
    --all_->alive;
  }
  void on(crash) { throw std::runtime_error{"crash"}; }
  void on(leave) { stop(); }

 private:
  std::shared_ptr<shared_notes> all_;
  std::string id_;
  bool pooled_;
};

const char* name_of(child_state s) {
  return s == child_state::running ? "running" : s == child_state::stopped ? "stopped" : "restarting";
}

class program {
 public:
  explicit program(unsigned seed) : random_{seed} {}

  std::string run(int steps) {
    {
      node top = supervisor_node("top", nullptr);
      supervisor root{options_of(top)};
      expected_.spawn(top);
      refs_["top"] = root;
      for (int i = 0; i < 4; ++i) add();
      for (int i = 0; i < 5; ++i) add_leaf();
      settle();
      for (int i = 0; i < steps && wrong_.empty(); ++i) {
        step();
        settle();
      }
    }
    std::lock_guard guard{all_->lock};
    if (wrong_.empty() && all_->alive != 0) wrong_ = "some outlive the tree\n";
    return wrong_.empty() ? wrong_ : wrong_ + story_;
  }

 private:
  unsigned dice(unsigned n) { return static_cast<unsigned>(random_() % n); }

  node supervisor_node(std::string id, node* above) {
    node n{.id = std::move(id), .is_supervisor = true, .above = above};
    n.strategy = static_cast<restart>(dice(3));
    n.restarts_most = static_cast<int>(dice(5));
    n.shuts_down = static_cast<auto_shutdown>(dice(3));
    n.lifetime = static_cast<child_lifetime>(dice(4) % 3);
    return n;
  }
  static supervisor_options options_of(const node& n) {
    return {.strategy = n.strategy,
            .max_restarts = n.restarts_most,
            .within = 1h,
            .auto_shutdown = n.shuts_down,
            .report = [](const child_report&) {}};
  }
  std::vector<node*> those(bool supervisors) {
    std::vector<node*> found;
    for (const auto& n : expected_.all)
      if (n->alive && n->is_supervisor == supervisors) found.push_back(n.get());
    return found;
  }
  node* any_of(const std::vector<node*>& of) {
    return of.empty() ? nullptr : of[dice(static_cast<unsigned>(of.size()))];
  }
  /// One that runs, and all above it.
  node* running(bool supervisors) {
    std::vector<node*> found = those(supervisors);
    std::erase_if(found, [](const node* n) {
      for (; n != nullptr; n = n->above)
        if (n->state != child_state::running) return true;
      return false;
    });
    return any_of(found);
  }
  supervisor_ref ref_of(const node& n) { return supervisor_ref{refs_.at(n.id)}; }

  void add() {
    node* above = running(true);
    if (above == nullptr || above->is_pool) return;
    node n = supervisor_node("s" + std::to_string(next_++), above);
    n.is_pool = dice(4) == 0;
    const child_options of_child{.lifetime = n.lifetime, .id = n.id};
    story_ += n.id + " under " + above->id + (n.is_pool ? " pool" : "") + " strategy " +
              std::to_string(static_cast<int>(n.strategy)) + " restarts " + std::to_string(n.restarts_most) +
              " lifetime " + std::to_string(static_cast<int>(n.lifetime)) + " auto shutdown " +
              std::to_string(static_cast<int>(n.shuts_down)) + "\n";
    if (n.is_pool) {
      n.strategy = restart::one_for_one;
      n.shuts_down = auto_shutdown::never;
      const auto of_children = static_cast<child_lifetime>(dice(3));
      pools_.emplace(n.id,
                     std::pair{of_children, ref_of(*above).spawn_pool<leaf>({.lifetime = of_children,
                                                                             .max_restarts = n.restarts_most,
                                                                             .within = 1h,
                                                                             .report = [](const child_report&) {}},
                                                                            of_child)});
      refs_[n.id] = pools_.at(n.id).second;
    } else {
      refs_[n.id] = ref_of(*above).spawn_supervisor(options_of(n), of_child);
    }
    expected_.spawn(n);
  }
  void add_leaf() {
    node* above = running(true);
    if (above == nullptr) return;
    node n{.id = "a" + std::to_string(next_++), .pooled = above->is_pool, .above = above};
    n.lifetime = above->is_pool ? pools_.at(above->id).first : static_cast<child_lifetime>(dice(3));
    n.significant = !n.pooled && n.lifetime != child_lifetime::permanent && dice(2) == 0;
    if (dice(4) == 0) set_faults(n.id, 1);
    story_ += n.id + " under " + above->id + " lifetime " + std::to_string(static_cast<int>(n.lifetime)) +
              (n.significant ? " significant" : "") + "\n";
    const bool starts = expected_.spawn(n);
    try {
      if (n.pooled) refs_[n.id] = pools_.at(above->id).second.spawn(all_, n.id, true);
      else
        refs_[n.id] = ref_of(*above).spawn_actor<leaf>(
            child_options{.lifetime = n.lifetime, .id = n.id, .significant = n.significant}, all_, n.id, false);
      if (!starts) wrong_ += n.id + " started\n";
    } catch (const std::runtime_error&) {
      if (starts) wrong_ += n.id + " did not start\n";
    }
  }
  void set_faults(const std::string& id, int n) {
    story_ += id + " faults " + std::to_string(n) + "\n";
    expected_.faults[id] = n;
    std::lock_guard guard{all_->lock};
    all_->faults[id] = n;
  }

  void step() {
    const unsigned what = dice(13);
    if (what == 0) return add();
    if (what <= 2) return add_leaf();
    if (what == 3) {
      if (node* n = any_of(those(false)); n != nullptr) set_faults(n->id, static_cast<int>(dice(4)));
      return;
    }
    if (what <= 7) {
      node* n = running(false);
      if (n == nullptr) return;
      story_ += n->id + (what == 4 ? " leaves\n" : what == 5 ? " is killed\n" : " crashes\n");
      const actor_ref<leaf> to{*refs_.at(n->id).cell()};
      if (what == 4) to.tell(leave{});
      else if (what == 5) to.kill();
      else to.tell(crash{});
      return expected_.end(*n, what == 4);
    }
    if (what == 8) {
      node* n = running(true);
      if (n == nullptr || (n->above == nullptr && dice(8) != 0)) return;
      story_ += n->id + " is killed\n";
      refs_.at(n->id).kill();
      return expected_.end(*n, false);
    }
    by_id(what);
  }
  void by_id(unsigned what) {
    node* above = running(true);
    if (above == nullptr || above->is_pool) return;
    node* n = any_of(above->children);
    if (n == nullptr) return;
    const std::string id = n->id;
    if (what <= 10) {
      story_ += id + " is stopped by id\n";
      if (ref_of(*above).stop_child(id) != expected_.stop(*n)) wrong_ += id + ": stop_child\n";
    } else if (what == 11) {
      story_ += id + " is started again by id\n";
      bool done = false, failed = false, expected_done = false, expected_failed = false;
      try {
        expected_done = expected_.restart_by_id(*n);
      } catch (const cannot_start&) {
        expected_failed = true;
      }
      try {
        done = ref_of(*above).restart_child(id);
      } catch (const std::runtime_error&) {
        failed = true;
      }
      if (done != expected_done || failed != expected_failed) wrong_ += id + ": restart_child\n";
    } else {
      story_ += id + " is deleted by id\n";
      expected_.erase(*n);
      if (!ref_of(*above).delete_child(id)) wrong_ += id + ": delete_child\n";
    }
  }

  std::string difference() {
    {
      std::lock_guard guard{all_->lock};
      if (all_->notes != expected_.notes) {
        std::string text = "noted";
        for (const auto& s : all_->notes) text += " [" + s + "]";
        text += ", not";
        for (const auto& s : expected_.notes) text += " [" + s + "]";
        return text;
      }
    }
    for (const auto& n : expected_.all)
      if (refs_.at(n->id).alive() != n->alive) return n->id + (n->alive ? " has ended" : " lives");
    for (node* n : those(true)) {
      bool runs = true;
      for (const node* at = n; at != nullptr; at = at->above) runs = runs && at->state == child_state::running;
      if (!runs) continue;
      if (const std::string wrong = children_differ(*n); !wrong.empty()) return wrong;
    }
    return {};
  }
  std::string children_differ(const node& n) {
    try {
      if (n.is_pool) {
        const auto& pool = pools_.at(n.id).second;
        if (pool.count_children().running != n.children.size()) return n.id + " has other children";
        if (pool.restarts() != static_cast<std::uint64_t>(n.restarted)) return n.id + ": restarts";
        return {};
      }
      const std::vector<child_info> infos = ref_of(n).child_infos();
      std::string is, should;
      for (const child_info& c : infos)
        is += c.id + " " + name_of(c.state) + " " + std::to_string(c.restarts) + (c.supervisor ? " s, " : ", ");
      for (const node* c : n.children)
        should +=
            c->id + " " + name_of(c->state) + " " + std::to_string(c->restarts) + (c->is_supervisor ? " s, " : ", ");
      if (is != should) return n.id + " has " + is + "not " + should;
      if (ref_of(n).restarts() != static_cast<std::uint64_t>(n.restarted)) return n.id + ": restarts";
    } catch (const actor_down&) {
      return n.id + " does not answer";
    }
    return {};
  }
  void settle() {
    if (!wrong_.empty()) return;
    std::string wrong;
    for (int polls = 0; polls < 20'000; ++polls) {
      wrong = difference();
      if (wrong.empty()) return;
      if (polls < 200) this_fiber::yield();
      else this_fiber::sleep_for(1ms);
    }
    wrong_ = wrong + "\n";
  }

  std::mt19937 random_;
  std::shared_ptr<shared_notes> all_ = std::make_shared<shared_notes>();
  reference expected_;
  std::map<std::string, any_actor> refs_;
  std::map<std::string, std::pair<child_lifetime, pool_ref<leaf>>> pools_;
  int next_ = 0;
  std::string story_;
  std::string wrong_;
};

class tree_models : public with_workers {};
INSTANTIATE_TEST_SUITE_P(workers, tree_models, few_and_many());

TEST_P(tree_models, agree) {
  in_runtime([&] {
    seeds::for_each(seeds::fewer_if_placed(scaled(2000)), [&](int seed) {
      const std::string wrong = program{static_cast<unsigned>(seed)}.run(12);
      if (!wrong.empty()) ADD_FAILURE() << "seed " << seed << ": " << wrong;
    });
  });
}

}  // namespace
}  // namespace ramie
