// Shards: a fiber that keeps the lease and the table (shard_member.hpp), and an actor, the gate, by which all mail for
// the shards of this node comes, from other nodes and from here.
//
//  G1  The gate starts the actor of a key at its first message, and hands it all that come, in order. It is the only one
//      that has a reference to it, so when it stops one that was idle nothing is on its way to it.
//  G2  While an actor ends, mail for its key waits at the gate; the next one is started when the end was reported. So no
//      two actors of a key are alive on a node at once, and none is when the shard is given away. What is in an actor's
//      mailbox when it crashes is lost with it, as for any actor: requests are answered actor_down.
//  G3  What comes for a shard that is not here is not handled: a request is answered "moved", and asked again elsewhere;
//      what was told is sent on, a few times at most, and then waits here, for two leases at most, in its order.
//  G4  A node that leaves keeps its gate until the gates of all others have said that they read the table without it, or
//      a lease's time has passed: what they sent by the old one is answered "moved", and not lost with the gate.
#include "link_actor.hpp"
#include "node.hpp"
#include "shard_member.hpp"

#include <ramie/cluster/shards.hpp>

#include <atomic>
#include <deque>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>

namespace ramie::detail {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

struct shard_tell {
  std::string key, name, bytes;
  std::uint64_t hops = 0;
};
struct shard_ask {
  std::string key, name, bytes;
};
struct shard_answer {
  bool moved = false;
  std::string bytes;
};
/// Answered once the table of this version, or a later one, was read.
struct shard_seen {
  std::uint64_t version = 0;
};
RAMIE_WIRE(shard_seen, "ramie.shard_seen", (1, version))
RAMIE_WIRE(shard_tell, "ramie.shard_tell", (1, key), (2, name), (3, bytes), (4, hops))
RAMIE_WIRE(shard_ask, "ramie.shard_ask", (1, key), (2, name), (3, bytes))
RAMIE_WIRE(shard_answer, "ramie.shard_answer", (1, moved), (2, bytes))

class shard_gate final : public actor<shard_gate> {
 public:
  using remote = messages<shard_tell, shard_ask, shard_seen>;
  struct took {
    std::uint32_t shard;
    std::uint64_t token;
  };
  struct let_go {
    std::uint32_t shard;
  };
  struct lost_all {};
  struct sweep {};
  struct retry {};
  struct table_read {
    std::uint64_t version;
  };

  explicit shard_gate(std::weak_ptr<shards_core> core) : core_{std::move(core)} {}
  void on(shard_tell& t);
  reply<shard_answer> on(shard_ask& a);
  void on(took t) { tokens_[t.shard] = t.token; }
  reply<void> on(shard_seen s);
  void on(table_read t);
  reply<void> on(let_go l);
  reply<void> on(lost_all);
  void on(sweep);
  void on(retry);
  void on(const down& d);

 private:
  struct letter {
    std::string name, bytes;
    std::optional<reply<shard_answer>> answer;  // to a request
  };
  struct entity {
    std::uint32_t shard = 0;
    any_actor who;
    bool ending = false;
    std::chrono::steady_clock::time_point used;
    std::deque<letter> waiting;  // for the one before to end
  };
  struct sender;
  struct parked {
    shard_tell mail;
    std::chrono::steady_clock::time_point until;
  };
  bool place(shards_core& core, shard_tell& t);
  void take(shards_core& core, const std::string& key, std::uint32_t shard, letter l);
  void hand_over(shards_core& core, const any_actor& to, letter l);
  void end(entity& e, bool at_once);
  void tell_if_empty();

  std::weak_ptr<shards_core> core_;
  std::unordered_map<std::uint32_t, std::uint64_t> tokens_;  // of the shards that are here
  std::unordered_map<std::string, entity> entities_;
  struct leaving {
    std::optional<std::uint32_t> shard;  // none: all
    reply<void> when;
  };
  std::vector<leaving> leaving_;
  std::uint64_t version_ = 0;  // of the table that was read last
  std::vector<std::pair<std::uint64_t, reply<void>>> seeing_;
  std::deque<parked> parked_;  // what was told, for shards that are nobody's
};

class shards_core final : public closable,
                          public status_part,
                          public std::enable_shared_from_this<shards_core>,
                          private shard_store,
                          private shard_output {
 public:
  shards_core(std::shared_ptr<cluster_core> c, std::string set, const known_class& of,
              any_actor (*how)(const shard_key&), const shard_options& o)
      : cluster{std::move(c)}, classes{of}, start_actor{how}, options{o}, set_{std::move(set)} {}
  ~shards_core() {
    const std::lock_guard guard{cluster->lock};
    std::erase(cluster->parts, static_cast<status_part*>(this));
  }
  shards_core(const shards_core&) = delete;
  shards_core& operator=(const shards_core&) = delete;

  void start() {
    gate_ = spawn_actor<shard_gate>(actor_options{.name = "shards " + set_}, std::weak_ptr{shared_from_this()});
    const wire_refs::record record = cluster->out(gate_);
    shard_settings s;
    s.count = options.count;
    s.time = options.lease;
    s.margin = options.lease / 20;
    const shard_owner me{cluster->me.name, {}, cluster->me.incarnation, record.number};
    // An incarnation may have several members of one set after another.
    static std::atomic<std::uint64_t> lives{0};
    member_.emplace(
        static_cast<shard_store&>(*this), static_cast<shard_output&>(*this), set_, me,
        std::to_string(cluster->me.incarnation) + "." + std::to_string(record.number) + "." + std::to_string(++lives),
        s);
    spawn([me = shared_from_this(), last = at_end([me = shared_from_this()] { me->over_.set(); })] {
      me->keep();
    }).detach();
    if (options.passivate_after != milliseconds{0}) gate_.tell(shard_gate::sweep{});
  }
  void close() override {
    closing_ = true;
    over_.wait();
    this_fiber::sleep_for(2 * look_every());  // the others read the table; until then they are answered "moved"
    gate_.stop();
    gate_.join();
  }

  [[nodiscard]] std::uint32_t shard_of(std::string_view key) const noexcept {
    return static_cast<std::uint32_t>(hash_of_key(key) % options.count);
  }
  /// Nothing: nobody's, as far as is known.
  std::optional<actor_ref<shard_gate>> gate_of(std::uint32_t shard) {
    wire_refs::record at;
    {
      const std::lock_guard guard{lock_};
      if (shard >= seen_.of.size() || seen_.of[shard] == 0) return std::nullopt;
      const shard_owner& o = seen_.owners[seen_.of[shard] - 1];
      if (!is_word(o.node, node_name_most)) return std::nullopt;  // somebody else has written the table
      at = {o.node, o.incarnation, o.gate, std::string{type_of<shard_gate>().name()}, 0};
    }
    const any_actor found = cluster->in(at);
    if (!found.alive()) return std::nullopt;
    return actor_ref<shard_gate>{*found.cell()};
  }
  std::vector<shard_info> owners() {
    const std::lock_guard guard{lock_};
    std::vector<shard_info> all(seen_.of.size());
    for (std::size_t i = 0; i < all.size(); ++i)
      if (seen_.of[i] != 0) all[i] = {seen_.owners[seen_.of[i] - 1].node, seen_.tokens[i]};
    return all;
  }
  void add_tables(std::vector<status_table>& to, const std::vector<std::string>& mine) override {
    std::map<std::string, std::uint64_t> count;
    for (const shard_info& s : owners()) ++count[s.node];
    status_table t{"cluster_shards",
                   "How many shards a node owns, as this one knows it; the owner is empty for those of nobody.",
                   {"cluster", "node", "set", "owner"},
                   {"shards"},
                   {}};
    for (const auto& [owner, shards] : count) t.rows.push_back({{mine[0], mine[1], set_, owner}, {shards}});
    to.push_back(std::move(t));
  }
  void dump(status_text& to) noexcept override {
    to << "  shards " << set_ << ": ";
    const std::unique_lock guard{lock_, std::try_to_lock};
    if (!guard) {
      to << "they are being changed\n";
      return;
    }
    std::uint64_t here = 0, nobodys = 0;
    for (const std::uint32_t owner : seen_.of) {
      if (owner == 0) ++nobodys;
      else if (seen_.owners[owner - 1].node == cluster->me.name) ++here;
    }
    to << here << " of " << std::uint64_t{seen_.of.size()} << " here, " << nobodys << " nobody's; the lease is "
       << (held() ? "held\n" : "not held\n");
  }
  void tell(std::string_view key, std::string_view name, std::string_view bytes) {
    const std::uint32_t shard = shard_of(key);
    const auto until = std::chrono::steady_clock::now() + 2 * options.lease;
    for (;;) {
      const auto gate = gate_of(shard);
      if (gate && gate->tell(shard_tell{std::string{key}, std::string{name}, std::string{bytes}, 0}) == tell_status::ok)
        return;
      if (closing_ || std::chrono::steady_clock::now() > until)
        throw cluster_error{"ramie: cluster: shards " + set_ + ": nobody has the shard of " + std::string{key}};
      this_fiber::sleep_for(look_every());
    }
  }
  std::string ask(std::string_view key, std::string_view name, std::string_view bytes, nanoseconds timeout) {
    const std::uint32_t shard = shard_of(key);
    const auto until = std::chrono::steady_clock::now() + timeout;
    for (;;) {
      const nanoseconds left = until - std::chrono::steady_clock::now();
      if (closing_ || left <= nanoseconds{0})
        throw timeout_error{"ramie: cluster: shards " + set_ + ": nobody has the shard of " + std::string{key}};
      if (const auto gate = gate_of(shard)) {
        shard_answer got = gate->ask_for(left, shard_ask{std::string{key}, std::string{name}, std::string{bytes}});
        if (!got.moved) return std::move(got.bytes);
      }
      this_fiber::sleep_for(std::min<nanoseconds>(look_every(), left));
    }
  }
  [[nodiscard]] shard_lease lease(std::uint64_t token) const { return {token, until_}; }
  [[nodiscard]] bool held() const { return lease(0).held(); }

  const std::shared_ptr<cluster_core> cluster;
  const known_class& classes;
  any_actor (*const start_actor)(const shard_key&);
  const shard_options options;

 private:
  [[nodiscard]] milliseconds look_every() const {
    return std::min<milliseconds>(options.lease / 10, milliseconds{250});
  }
  /// The lease's fiber.
  void keep() {
    while (!closing_) {
      try {
        member_->step();
        {
          const std::lock_guard guard{lock_};
          seen_ = member_->table();
        }
        gate_.tell(shard_gate::table_read{member_->table().version});
      } catch (const usage_error& e) {
        if (!std::exchange(told_, true)) std::fprintf(stderr, "%s\n", e.what());
      } catch (const error&) {
        // The server is away: the lease runs out if it stays so.
      }
      for (milliseconds slept{0}; slept < look_every() && !closing_; slept += milliseconds{10})
        this_fiber::sleep_for(milliseconds{10});
    }
    // Of two that leave at once neither waits for the other.
    gate_.tell(shard_gate::table_read{std::numeric_limits<std::uint64_t>::max()});
    try {
      member_->leave();
      wait_for_others();
    } catch (const error&) {
      // The others wait for the lease.
    }
  }

  /// G4
  void wait_for_others() {
    const shard_table& t = member_->table();
    scope all;
    for (const shard_owner& o : t.owners)
      all.spawn([&] {
        try {
          const any_actor gate =
              cluster->in({o.node, o.incarnation, o.gate, std::string{type_of<shard_gate>().name()}, 0});
          actor_ref<shard_gate>{*gate.cell()}.ask_for(options.lease, shard_seen{t.version});
        } catch (const error&) {
          // It is gone, or frozen, or of an older version of this library.
        }
      });
    all.join();
  }

  // shard_store
  std::optional<shard_store::entry> get(const std::string& key) override {
    auto found = cluster->net->get("shards", key);
    if (!found) return std::nullopt;
    return shard_store::entry{std::move(found->value), found->revision};
  }
  std::uint64_t create(const std::string& key, const std::string& value) override {
    return cluster->net->create("shards", key, value);
  }
  std::uint64_t update(const std::string& key, const std::string& value, std::uint64_t last) override {
    return cluster->net->update("shards", key, value, last);
  }
  // shard_output
  duration now() override { return std::chrono::steady_clock::now().time_since_epoch(); }
  void took(std::uint32_t shard, std::uint64_t token) override { gate_.tell(shard_gate::took{shard, token}); }
  void let_go(std::uint32_t shard) override { gate_.ask(shard_gate::let_go{shard}); }
  void lost_all() override { gate_.ask(shard_gate::lost_all{}); }
  void held_until(duration t) override { until_->store(t.count(), std::memory_order_release); }

  std::string set_;
  actor_ref<shard_gate> gate_;
  std::optional<shard_member> member_;
  std::shared_ptr<std::atomic<std::int64_t>> until_ = std::make_shared<std::atomic<std::int64_t>>(0);
  std::mutex lock_;
  shard_table seen_;
  std::atomic<bool> closing_{false};
  bool told_ = false;
  event over_;
};

/// The answer of a shard's actor, on its way back.
struct shard_gate::sender final : answer_sender {
  sender(reply<shard_answer> r, wire_refs& refs) : to{std::move(r)}, names{refs} {}
  void value(std::string_view bytes) noexcept override {
    try {
      to.set_value(shard_answer{false, std::string{bytes}});
    } catch (...) {
      failure(std::current_exception());
    }
  }
  void failure(std::exception_ptr e) noexcept override {
    try {
      to.set_exception(std::move(e));
    } catch (...) {
      // It has an answer.
    }
  }
  wire_refs& refs() noexcept override { return names; }
  /// It is the bytes of another answer.
  [[nodiscard]] std::size_t most() const noexcept override { return wire_limits::message_bytes - 64; }
  reply<shard_answer> to;
  wire_refs& names;
};

/// False: its shard is nobody's just now, or nobody knows whose.
bool shard_gate::place(shards_core& core, shard_tell& t) {
  const std::uint32_t shard = core.shard_of(t.key);
  if (tokens_.contains(shard) && core.held()) {
    take(core, t.key, shard, {std::move(t.name), std::move(t.bytes), {}});
    return true;
  }
  const auto gate = core.gate_of(shard);
  if (!gate || *gate == self() || t.hops >= 3) return false;
  ++t.hops;
  gate->tell(std::move(t));
  return true;
}

void shard_gate::on(shard_tell& t) {
  const auto core = core_.lock();
  if (core == nullptr) return;
  const bool behind_others =
      std::any_of(parked_.begin(), parked_.end(), [&](const parked& p) { return p.mail.key == t.key; });
  if (!behind_others && place(*core, t)) return;
  t.hops = 0;
  parked_.push_back({std::move(t), std::chrono::steady_clock::now() + 2 * core->options.lease});
  start_timer(timer_key{"retry"}, milliseconds{20}, retry{});
}

void shard_gate::on(retry) {
  const auto core = core_.lock();
  if (core == nullptr || parked_.empty()) return;
  std::set<std::string> blocked;
  std::deque<parked> left;
  for (parked& p : parked_) {
    if (blocked.contains(p.mail.key) || !place(*core, p.mail)) {
      blocked.insert(p.mail.key);
      if (std::chrono::steady_clock::now() < p.until) left.push_back(std::move(p));
      else
        std::fprintf(stderr, "ramie: cluster: a message for %s was not handled: nobody has its shard\n",
                     p.mail.key.c_str());
    }
  }
  parked_ = std::move(left);
  if (!parked_.empty()) start_timer(timer_key{"retry"}, milliseconds{20}, retry{});
}

reply<shard_answer> shard_gate::on(shard_ask& a) {
  reply<shard_answer> answer;
  const auto core = core_.lock();
  const std::uint32_t shard = core == nullptr ? 0 : core->shard_of(a.key);
  if (core == nullptr || !tokens_.contains(shard) || !core->held()) answer.set_value(shard_answer{true, {}});
  else take(*core, a.key, shard, {std::move(a.name), std::move(a.bytes), answer});
  return answer;
}

void shard_gate::take(shards_core& core, const std::string& key, std::uint32_t shard, letter l) {
  entity& e = entities_[key];
  e.shard = shard;
  e.used = std::chrono::steady_clock::now();
  if (e.who && !e.who.alive()) e.ending = true;  // it crashed, and `down` is on its way
  if (e.ending) {
    e.waiting.push_back(std::move(l));
    return;
  }
  if (!e.who) {
    try {
      e.who = core.start_actor(shard_key{key, core.lease(tokens_.at(shard))});
    } catch (const cancelled&) {
      throw;
    } catch (const std::exception& failed) {
      if (l.answer) l.answer->set_exception(std::current_exception());
      else std::fprintf(stderr, "ramie: cluster: the actor of %s cannot start: %s\n", key.c_str(), failed.what());
      entities_.erase(key);
      return;
    }
    monitor(e.who);
  }
  hand_over(core, e.who, std::move(l));
}

void shard_gate::hand_over(shards_core& core, const any_actor& to, letter l) {
  const known_message* known = core.classes.find(l.name);
  try {
    if (known == nullptr || known->how.ask == nullptr)
      throw remote_failure{"ramie: cluster: shards: a " + std::string{core.classes.how.of->name()} + " takes no " +
                           l.name + " on this node"};
    if (l.answer) known->how.ask(to, l.bytes, std::make_unique<sender>(*l.answer, *core.cluster), *core.cluster);
    else known->how.tell(to, l.bytes, *core.cluster);
  } catch (const cancelled&) {
    throw;
  } catch (const std::exception& e) {
    if (l.answer) l.answer->set_exception(std::current_exception());
    else std::fprintf(stderr, "ramie: cluster: a message to a shard was not handed over: %s\n", e.what());
  }
}

void shard_gate::end(entity& e, bool at_once) {
  if (!e.who) return;
  if (at_once) e.who.kill();
  else if (!e.ending) e.who.stop();
  e.ending = true;
}

reply<void> shard_gate::on(shard_seen s) {
  reply<void> when;
  seeing_.emplace_back(s.version, when);
  on(table_read{version_});
  return when;
}

void shard_gate::on(table_read t) {
  version_ = std::max(version_, t.version);
  std::erase_if(seeing_, [&](const auto& one) {
    if (one.first > version_) return false;
    one.second.set_value();
    return true;
  });
}

reply<void> shard_gate::on(let_go l) {
  reply<void> when;
  tokens_.erase(l.shard);
  for (auto& [key, e] : entities_)
    if (e.shard == l.shard) end(e, false);
  leaving_.push_back({l.shard, when});
  tell_if_empty();
  return when;
}

reply<void> shard_gate::on(lost_all) {
  reply<void> when;
  tokens_.clear();
  for (auto& [key, e] : entities_) end(e, true);
  leaving_.push_back({std::nullopt, when});
  tell_if_empty();
  return when;
}

void shard_gate::tell_if_empty() {
  std::erase_if(leaving_, [&](const leaving& l) {
    const bool full = std::any_of(entities_.begin(), entities_.end(), [&](const auto& e) {
      return e.second.ending && (!l.shard || e.second.shard == *l.shard);
    });
    if (!full) l.when.set_value();
    return !full;
  });
}

void shard_gate::on(const down& d) {
  const auto at =
      std::find_if(entities_.begin(), entities_.end(), [&](const auto& e) { return e.second.who == d.who; });
  if (at == entities_.end()) return;
  const std::string key = at->first;
  const std::uint32_t shard = at->second.shard;
  std::deque<letter> waiting = std::move(at->second.waiting);
  entities_.erase(at);
  const auto core = core_.lock();
  for (letter& l : waiting) {
    if (core != nullptr && tokens_.contains(shard) && core->held()) take(*core, key, shard, std::move(l));
    else if (l.answer) l.answer->set_value(shard_answer{true, {}});
    else if (core != nullptr) self().tell(shard_tell{key, std::move(l.name), std::move(l.bytes), 0});
  }
  tell_if_empty();
}

void shard_gate::on(sweep) {
  const auto core = core_.lock();
  if (core == nullptr) return;
  const auto now = std::chrono::steady_clock::now();
  for (auto& [key, e] : entities_)
    if (e.who && !e.ending && now - e.used > core->options.passivate_after && e.who.mail_count() == 0) end(e, false);
  start_timer(timer_key{"sweep"}, std::max<nanoseconds>(core->options.passivate_after / 4, milliseconds{10}), sweep{});
}

// ---- the public face -----------------------------------------------------------------------------------------------

void shard_calls::tell(shards_core& s, std::string_view key, std::string_view name, std::string_view bytes) {
  s.tell(key, name, bytes);
}
std::string shard_calls::ask(shards_core& s, std::string_view key, std::string_view name, std::string_view bytes,
                             nanoseconds timeout) {
  return s.ask(key, name, bytes, timeout);
}
std::vector<shard_info> shard_calls::owners(shards_core& s) { return s.owners(); }
std::uint32_t shard_calls::shard_of(const shards_core& s, std::string_view key) noexcept { return s.shard_of(key); }
wire_refs& shard_calls::refs(shards_core& s) noexcept { return *s.cluster; }

std::shared_ptr<shards_core> make_shards(const std::shared_ptr<cluster_core>& core, const std::string& set,
                                         const type_info& of, any_actor (*start)(const shard_key&),
                                         const shard_options& o) {
  if (o.count < 1 || o.count > 4096)
    throw invalid_argument{"ramie: cluster: shards: options.count is " + std::to_string(o.count) + "; 1 to 4096"};
  if (o.lease < milliseconds{500})
    throw invalid_argument{"ramie: cluster: shards: options.lease is " + std::to_string(o.lease.count()) +
                           " ms; at least 500"};
  auto made = std::make_shared<shards_core>(core, set, *core->class_of(of.name()), start, o);
  made->start();
  const std::lock_guard guard{core->lock};
  core->to_close.emplace_back(made);
  core->parts.push_back(made.get());
  return made;
}

remote_class make_gate_class() { return make_remote_class<shard_gate>(); }

}  // namespace ramie::detail
