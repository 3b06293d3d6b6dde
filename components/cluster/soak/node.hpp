// A node of ./run cluster: accounts as shards, jobs in a queue, and numbers told from each node to each.
#pragma once

#include "log_file.hpp"

#include <ramie/cluster.hpp>
#include <ramie/ramie.hpp>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>

namespace soak {

using namespace std::chrono_literals;

struct deposit {
  std::string op;
  std::int64_t amount = 0;
};
struct job {
  std::string id;
};
struct heard {
  std::string stream;
  std::uint64_t number = 0;
};
RAMIE_WIRE(deposit, "soak.deposit", (1, op), (2, amount))
RAMIE_WIRE(job, "soak.job", (1, id))
RAMIE_WIRE(heard, "soak.heard", (1, stream), (2, number))

struct node_state {
  std::string name, life;
  const history_file* log = nullptr;
};
inline node_state& here() {
  static node_state it;
  return it;
}

constexpr std::uint32_t shard_count = 64;

class account : public ramie::actor<account> {
 public:
  using remote = ramie::messages<deposit>;
  explicit account(const ramie::shard_key& k) : key_{k.key}, lease_{k.lease} {}
  std::int64_t on(const deposit& d) {
    // The time is taken first: if the lease is held afterwards, it was then.
    const std::int64_t now = std::chrono::steady_clock::now().time_since_epoch().count();
    if (!lease_.held()) throw ramie::lease_lost{"the lease ran out"};
    here().log->write("H " + std::to_string(now) + " " + key_ + " " + std::to_string(lease_.token()) + " " +
                      here().life + " " + d.op);
    return balance_ += d.amount;
  }

 private:
  std::string key_;
  ramie::shard_lease lease_;
  std::int64_t balance_ = 0;
};

class ear : public ramie::actor<ear> {
 public:
  using remote = ramie::messages<heard>;
  void on(const heard& h) { here().log->write("R " + h.stream + " " + std::to_string(h.number)); }
  void on(const ramie::node_up& n) { note("up", n.node); }
  void on(const ramie::node_lost& n) { note("lost", n.node); }

 private:
  static void note(const char* what, const ramie::node_info& n) {
    std::printf("%s: node %s %s\n", here().name.c_str(), n.name.c_str(), what);
    std::fflush(stdout);
  }
};

class node {
 public:
  node(const std::string& url, const std::string& folder)
      : folder_{folder}, cluster_{{.url = url, .name = "soak", .node = here().name, .lost_after = 2000ms}} {
    cluster_.knows<ear>();
    cluster_.on_node(ear_);
    cluster_.register_name("ear-" + here().name, ear_);
  }

  void run() {
    auto accounts =
        cluster_.shards<account>("accounts", {.count = shard_count, .lease = 2000ms, .passivate_after = 500ms});
    auto jobs = cluster_.queue<job>("jobs", {.attempts = 50, .retry_after = 100ms, .worker_lost_after = 2000ms});
    auto worker = jobs.serve(
        [&](const job& j) {
          jobs.once(j.id, [&] { here().log->write("E " + j.id); });
          here().log->write("J " + j.id);
        },
        {.in_flight = 8});
    std::puts("ready");
    std::fflush(stdout);
    ramie::scope all;
    for (int client = 0; client < 4; ++client) all.spawn([&, client] { ask(accounts, client); });
    all.spawn([&] { put(jobs); });
    for (const char* other : {"n1", "n2", "n3"})
      if (other != here().name) all.spawn([&, other] { tell(other); });
    all.spawn([&] { show(accounts); });
    all.join();
    std::puts("the clients have ended");
    std::fflush(stdout);
    for (std::uint64_t left; (left = jobs.size()) != 0;) {
      std::printf("%s: %llu jobs are left\n", here().name.c_str(), static_cast<unsigned long long>(left));
      std::fflush(stdout);
      ramie::this_fiber::sleep_for(500ms);
    }
    worker.stop();
    settle();
    std::puts("done");
    std::fflush(stdout);
    while (::access((folder_ + "/leave").c_str(), F_OK) != 0) ramie::this_fiber::sleep_for(20ms);
    here().log->write("X " + here().life);
  }

 private:
  [[nodiscard]] bool is_over() const { return ::access((folder_ + "/stop").c_str(), F_OK) == 0; }

  void ask(ramie::cluster_shards<account>& accounts, int client) {
    for (std::uint64_t i = 0; !is_over(); ++i) {
      const std::string op = here().life + "." + std::to_string(client) + "." + std::to_string(i);
      here().log->write("S " + here().life + " " + op);
      try {
        // A shard a key, so that the judge knows which is which.
        accounts.of(key_of(accounts, (i * 7 + static_cast<std::uint64_t>(client) * 13) % shard_count))
            .ask_for(5s, deposit{op, 1});
        here().log->write("A " + here().life + " " + op);
      } catch (const ramie::error&) {
        here().log->write("F " + here().life + " " + op);
      }
      ramie::this_fiber::sleep_for(5ms);
    }
  }
  /// The first number whose shard it is.
  static std::string key_of(ramie::cluster_shards<account>& accounts, std::uint64_t shard) {
    for (std::uint64_t i = shard;; i += shard_count) {
      const std::string key = std::to_string(i);
      if (accounts.shard_of(key) == shard) return key;
    }
  }
  void put(ramie::cluster_queue<job>& jobs) {
    for (std::uint64_t i = 0; !is_over(); ++i) {
      const std::string id = here().life + "." + std::to_string(i);
      try {
        jobs.put({id}, id);
        here().log->write("P " + id);
      } catch (const ramie::error& e) {
        std::fprintf(stderr, "%s\n", e.what());
      }
      ramie::this_fiber::sleep_for(10ms);
    }
  }
  void tell(const std::string& other) {
    for (std::uint64_t streams = 0; !is_over(); ++streams) {
      try {
        const auto there = cluster_.whereis<ear>("ear-" + other);
        if (there) stream_to(*there, here().life + ">" + other + "." + std::to_string(streams));
      } catch (const ramie::error&) {
        // The server is away.
      }
      ramie::this_fiber::sleep_for(100ms);
    }
  }
  void stream_to(const ramie::actor_ref<ear>& there, const std::string& stream) {
    std::uint64_t count = 0;
    while (!is_over() && there.tell(heard{stream, count}) == ramie::tell_status::ok)
      if (++count % 50 == 0) ramie::this_fiber::sleep_for(20ms);
    // What was told is owed only if the other is never lost: it is up to the end of this node.
    if (is_over() && there.alive()) owed_[stream] = {there, count};
  }
  /// Until all that was told has arrived, where its receiver was never lost.
  void settle() {
    for (const auto& [stream, owed] : owed_) {
      const auto& [there, count] = owed;
      const auto waits = [&] {
        for (const ramie::link_info& l : cluster_.links())
          if (l.unacknowledged_frames != 0 || l.waiting_bytes != 0) return true;
        return there.mail_count() != 0;
      };
      while (there.alive() && waits()) ramie::this_fiber::sleep_for(10ms);
      if (there.alive()) here().log->write("T " + stream + " " + std::to_string(count));
    }
  }
  void show(ramie::cluster_shards<account>& accounts) {
    for (int i = 1; !is_over(); ++i) {
      ramie::this_fiber::sleep_for(100ms);
      if (i % 20 != 0) continue;
      std::map<std::string, int> count;
      for (const ramie::shard_info& s : accounts.owners()) ++count[s.node];
      std::string line;
      for (const auto& [who, n] : count)
        line += "  " + (who.empty() ? std::string{"nobody"} : who) + " has " + std::to_string(n);
      std::printf("%s sees:%s\n", here().name.c_str(), line.c_str());
      std::fflush(stdout);
    }
  }

  std::string folder_;
  ramie::cluster cluster_;
  ramie::actor_ref<ear> ear_ = ramie::spawn_actor<ear>();
  std::map<std::string, std::pair<ramie::actor_ref<ear>, std::uint64_t>> owed_;
};

}  // namespace soak
