// The leases of shards against a simulated server and clock: nodes are stopped between any two calls for any time,
// calls fail before or after they had their effect, nodes are killed. The judge of ./run cluster decides; mistakes that
// are planted have to be found by it.
// Computes.
#include "shard_member.hpp"

#include "soak/history.hpp"

#include <ramie/cluster/cluster.hpp>
#include <ramie/ramie.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace ramie::detail {
namespace {

using namespace std::chrono_literals;

enum class mistake : std::uint8_t { none, lease_not_checked, takers_too_early, given_while_alive, revisions_ignored };

constexpr std::uint32_t shard_count = 8;

struct world;

/// A node: its fiber stops at each call of the server, until the world lets it go on.
struct sim_node final : shard_store, shard_output {
  sim_node(world& w, std::string n) : in{w}, name{std::move(n)} {}

  std::optional<shard_store::entry> get(const std::string& key) override;
  std::uint64_t create(const std::string& key, const std::string& value) override;
  std::uint64_t update(const std::string& key, const std::string& value, std::uint64_t last) override;
  duration now() override;
  void took(std::uint32_t shard, std::uint64_t token) override { mine[shard] = token; }
  void let_go(std::uint32_t shard) override;
  void lost_all() override { mine.clear(); }
  void held_until(duration t) override { until = t; }
  void rest();
  void live();

  world& in;
  std::string name;
  std::map<std::uint32_t, std::uint64_t> mine;
  duration until{0};
  bool killed = false, over = false;
  event go_on{event_reset::automatic}, stopped{event_reset::automatic};
};

struct world {
  world(std::uint64_t seed, mistake m) : random{seed}, planted{m} {
    settings = {.count = shard_count, .time = 1s, .margin = 50ms};
    if (m == mistake::takers_too_early) settings.margin = -300ms;
    for (const char* n : {"a", "b", "c"}) nodes.push_back(std::make_unique<sim_node>(*this, n));
  }
  bool chance(std::uint64_t of) { return random() % of == 0; }

  /// What actors of each node would do just now.
  void act() {
    for (const auto& n : nodes) {
      if (n->killed || (clock >= n->until && planted != mistake::lease_not_checked)) continue;
      for (const auto& [shard, token] : n->mine)
        history.read("H " + std::to_string(clock.count()) + " " + std::to_string(shard) + " " + std::to_string(token) +
                     " " + n->name + " " + std::to_string(++ops));
    }
  }
  void turn(bool calm) {
    std::vector<sim_node*> ready;
    for (const auto& n : nodes)
      if (!n->over && !n->killed) ready.push_back(n.get());
    sim_node& next = *ready[random() % ready.size()];
    next.go_on.set();
    next.stopped.wait();
    const bool long_time = !calm && chance(60);
    clock += std::chrono::milliseconds{long_time ? random() % 3000 : random() % 8};
    act();
  }
  void run() {
    std::vector<join_handle<void>> fibers;
    for (const auto& n : nodes) fibers.push_back(spawn([&, node = n.get()] { node->live(); }));
    for (const auto& n : nodes) n->stopped.wait();
    const bool kills = chance(2);
    for (int i = 0; i < 1500; ++i) {
      if (kills && i == 700) nodes[random() % 3]->killed = true;
      turn(false);
    }
    failing = false;
    for (int i = 0; i < 1500; ++i) turn(true);  // some five seconds: leases run out, and everything finds its place
    for (const auto& n : nodes)
      if (!n->killed && clock < n->until)
        for (const auto& [shard, token] : n->mine) ++placed[shard];
    ending = true;
    for (const auto& n : nodes)
      while (!n->over) {
        n->go_on.set();
        n->stopped.wait();
      }
    for (auto& f : fibers) f.join();
  }

  std::mt19937_64 random;
  mistake planted;
  shard_settings settings;
  std::vector<std::unique_ptr<sim_node>> nodes;
  std::map<std::string, shard_store::entry> keys;
  std::uint64_t revision = 0, ops = 0;
  std::chrono::nanoseconds clock{1s};
  bool failing = true, ending = false;
  soak::judge history;
  std::map<std::uint32_t, int> placed;  // at the end: how many have this shard
};

void sim_node::rest() {
  stopped.set();
  go_on.wait();
  if (in.ending) throw cluster_error{"the end"};
}
void sim_node::live() {
  shard_member member{*this, *this, "set", {name, {}, 1, 2}, "life-of-" + name, in.settings};
  for (;;) {
    try {
      rest();
      member.step();
    } catch (const cluster_error&) {
      if (in.ending) break;
    }
  }
  over = true;
  stopped.set();
}
shard_output::duration sim_node::now() { return in.clock; }
void sim_node::let_go(std::uint32_t shard) {
  if (in.planted != mistake::given_while_alive) mine.erase(shard);
}

std::optional<shard_store::entry> sim_node::get(const std::string& key) {
  rest();
  if (in.failing && in.chance(50)) throw cluster_error{"lost"};
  const auto at = in.keys.find(key);
  std::optional<shard_store::entry> found;
  if (at != in.keys.end()) found = at->second;
  rest();  // the answer is on its way
  return found;
}
std::uint64_t sim_node::create(const std::string& key, const std::string& value) {
  rest();
  if (in.failing && in.chance(50)) throw cluster_error{"lost"};
  if (in.keys.contains(key)) return 0;
  const std::uint64_t fresh = ++in.revision;
  in.keys[key] = {value, fresh};
  rest();
  if (in.failing && in.chance(50)) throw cluster_error{"the answer was lost"};
  return fresh;
}
std::uint64_t sim_node::update(const std::string& key, const std::string& value, std::uint64_t last) {
  rest();
  if (in.failing && in.chance(50)) throw cluster_error{"lost"};
  const auto at = in.keys.find(key);
  if (at == in.keys.end() || (at->second.revision != last && in.planted != mistake::revisions_ignored)) return 0;
  const std::uint64_t fresh = ++in.revision;
  at->second = {value, fresh};
  rest();
  if (in.failing && in.chance(50)) throw cluster_error{"the answer was lost"};
  return fresh;
}

struct outcome {
  std::vector<std::string> wrong;
  std::uint64_t handled = 0;
  std::map<std::uint32_t, int> placed;
};
outcome run_once(std::uint64_t seed, mistake m) {
  outcome o;
  ramie::run([&] {
    world w{seed, m};
    w.run();
    const soak::verdict v = w.history.decide();
    o = {v.wrong, v.handled, w.placed};
  });
  return o;
}

TEST(shard_leases, have_one_owner_whatever_stops_and_fails) {
  std::uint64_t handled = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const outcome o = run_once(seed, mistake::none);
    EXPECT_TRUE(o.wrong.empty()) << "seed " << seed << ": " << o.wrong.front();
    handled += o.handled;
    for (std::uint32_t shard = 0; shard < shard_count; ++shard)
      EXPECT_EQ(o.placed.contains(shard) ? o.placed.at(shard) : 0, 1) << "seed " << seed << ", shard " << shard;
  }
  EXPECT_GT(handled, 100'000u);  // they do act
}

std::uint64_t found_after(mistake m) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed)
    if (!run_once(seed, m).wrong.empty()) return seed;
  return 0;
}

TEST(shard_leases, planted_mistakes_are_found) {
  EXPECT_NE(found_after(mistake::lease_not_checked), 0u);
  EXPECT_NE(found_after(mistake::takers_too_early), 0u);
  EXPECT_NE(found_after(mistake::given_while_alive), 0u);
  EXPECT_NE(found_after(mistake::revisions_ignored), 0u);
}

}  // namespace
}  // namespace ramie::detail
