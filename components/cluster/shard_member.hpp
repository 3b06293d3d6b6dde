// The ownership of shards: what one node does about it, as a state machine over the server's keys and a clock.
//
// Keys, in the bucket "shards", each changed only by its last revision:
//   <set>.table    who owns what: the nodes that take part, and for each shard its owner and token
//   <set>.l.<node> the node's lease: the name of this lease ("term"); a new revision each time it is renewed
//
//  T1  A term is a name that no other lease ever has. The table names owners by node and term; who has that term's lease
//      alive is an owner, and nobody else.
//  T2  A node holds its lease until `time - margin` after it *sent* the last renewal that was acknowledged, by its own
//      clock. It asks the clock before each message, not a flag: it may have been frozen.
//  T3  A node that sees no new revision of another's lease for `time + margin`, by its own clock, since it first *read* the last
//      one, overwrites the lease by that revision with "over". If that succeeds the term is over for good: its owner had
//      sent its last renewal before that revision was read, so by T2 it has let go. Its next renewal fails. No clocks
//      are compared; they need only run at about the same rate: within `margin`.
//      A new process of a node waits in the same way for the lease of the one before, which may be alive elsewhere.
//  T4  Shards change hands by a write of the table, by its revision, so of two writers one fails and reads again. A node
//      writes itself in for a shard only if that is nobody's, or of a term that is over; another in only for its own.
//      Before it gives one away, its actors have ended (`let_go`).
//  T5  Each write has a larger version, and a shard that gets a new owner gets that as its token. So tokens grow, and no
//      two owners have one.
//  T6  A node acts for a shard only by a table that it has read, or written, with its own term in it. A write of which
//      it is not known whether it was done (T4) is nothing: the table is read again.
//  T7  Who should own a shard: the one of the nodes in the table with living leases that has the greatest hash of node
//      and shard. Of n nodes each has about 1/n, and when one comes or goes only its own shards move.
#pragma once

#include <ramie/cluster/remote.hpp>
#include <ramie/cluster/wire.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ramie::detail {

struct shard_owner {
  std::string node, term;
  std::uint64_t incarnation = 0, gate = 0;  // where its gate is: an export
  friend bool operator==(const shard_owner&, const shard_owner&) = default;
};
struct shard_table {
  std::uint64_t version = 0;
  std::vector<shard_owner> owners;
  std::vector<std::uint32_t> of;      // shard: index of its owner + 1, or 0
  std::vector<std::uint64_t> tokens;  // shard: of its present owner
};
RAMIE_WIRE(shard_owner, "ramie.shard_owner", (1, node), (2, term), (3, incarnation), (4, gate))
RAMIE_WIRE(shard_table, "ramie.shard_table", (1, version), (2, owners), (3, of), (4, tokens))

inline std::uint64_t mixed(std::uint64_t x) noexcept {  // splitmix64 (Steele, Lea, Flood 2014)
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}
/// FNV-1a, mixed: the same on all machines, for all nodes have to agree.
inline std::uint64_t hash_of_key(std::string_view text) noexcept {
  std::uint64_t h = 0xcbf29ce484222325;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return mixed(h);
}

/// The server's keys. Each call may throw cluster_error, and then have happened or not.
class shard_store {
 public:
  struct entry {
    std::string value;
    std::uint64_t revision = 0;
  };
  virtual std::optional<entry> get(const std::string& key) = 0;
  virtual std::uint64_t create(const std::string& key, const std::string& value) = 0;  // 0: is there
  virtual std::uint64_t update(const std::string& key, const std::string& value, std::uint64_t last) = 0;  // 0: changed
 protected:
  ~shard_store() = default;
};

struct shard_settings {
  std::uint32_t count = 256;
  std::chrono::nanoseconds time{std::chrono::seconds{5}};  // of a lease
  std::chrono::nanoseconds margin{std::chrono::milliseconds{250}};
};

/// What a node is told to do, and asked.
class shard_output {
 public:
  using duration = std::chrono::nanoseconds;
  virtual duration now() = 0;
  /// It owns this shard from now on, as long as the lease is held.
  virtual void took(std::uint32_t shard, std::uint64_t token) = 0;
  /// Its actors are to end; it returns when they have.
  virtual void let_go(std::uint32_t shard) = 0;
  /// The lease is over: the actors of all shards are to end, at once.
  virtual void lost_all() = 0;
  /// The lease is held until then.
  virtual void held_until(duration t) = 0;

 protected:
  ~shard_output() = default;
};

class shard_member {
 public:
  using duration = std::chrono::nanoseconds;
  static constexpr std::string_view over = "over";

  /// `me.term` is made here: `life` is unlike that of any other process, ever.
  shard_member(shard_store& store, shard_output& out, std::string set, shard_owner me, std::string life,
               const shard_settings& s)
      : store_{store}, out_{out}, set_{std::move(set)}, me_{std::move(me)}, life_{std::move(life)}, s_{s} {}

  /// Now and then, several times in a third of the lease's time. Suspends. Throws cluster_error: try again.
  void step();
  /// Gives all away. Suspends. Throws cluster_error.
  void leave();
  [[nodiscard]] const shard_table& table() const noexcept { return table_; }

 private:
  struct seen {
    std::string value;
    std::uint64_t revision = 0;
    duration at{0};
  };
  void renew();
  void forget_lease();
  void read_table();
  void look_at_leases();
  bool has_lapsed(const std::string& node, const shard_store::entry& read);
  void take_and_give(bool all);
  bool write(shard_table next);
  void adopt(shard_table t, std::uint64_t revision);
  [[nodiscard]] bool lives(const shard_owner& o) const;
  [[nodiscard]] bool is_me(const shard_owner& o) const { return o.node == me_.node && o.term == me_.term; }
  [[nodiscard]] std::string lease_key(const std::string& node) const { return set_ + ".l." + node; }

  shard_store& store_;
  shard_output& out_;
  std::string set_;
  shard_owner me_;
  std::string life_;
  shard_settings s_;
  std::uint64_t terms_ = 0, lease_ = 0;  // revision of the own lease; 0: none
  duration renewed_{0};
  std::map<std::string, seen> leases_;  // of others
  shard_table table_;
  std::uint64_t table_revision_ = 0;
  std::map<std::uint32_t, std::uint64_t> mine_;
};

}  // namespace ramie::detail
