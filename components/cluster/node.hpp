// What a node is made of: the classes it knows, its exports, its links with others and the proxies behind these.
//
// Locks, each held for a few instructions and none while another is taken, but for this order: core, then peer, then
// proxy, then an actor's cell.
#pragma once

#include <ramie/cluster/carrier.hpp>
#include <ramie/cluster/cluster.hpp>
#include <ramie/cluster/link.hpp>
#include <ramie/inspect.hpp>
#include <ramie/ramie.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ramie::detail {

struct cluster_core;
struct peer;
class link_actor;
class hub_actor;
class name_keeper;
class node_service;

/// Calls f when its last copy goes. In the closure of a fiber whose end somebody awaits: also if the runtime ends the
/// fiber by `cancelled`, or does not begin it.
template <class F>
std::shared_ptr<void> at_end(F f) {
  return {nullptr, [f = std::move(f)](void*) { f(); }};
}

/// Also of what comes from others: names of nodes are parts of the subjects that are published to, in which a space or
/// a line's end would be a command to the server.
inline bool is_word(std::string_view text, std::size_t most) noexcept {
  return !text.empty() && text.size() <= most && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}
inline constexpr std::size_t node_name_most = 32;
/// Throws wire_error.
void check_address(const wire_refs::record& what);

/// What nodes say to all.
namespace presence {
inline constexpr std::string_view here = "here", asks = "asks";
}

/// What travels in frames: each an envelope's kind and its numbers, then bytes.
enum class envelope : std::uint8_t {
  type = 1,     // index, name, schema: the next index of the sender's messages
  tell = 2,     // actor, message, body
  ask = 3,      // actor, message, request, ms left + 1 or 0, body
  answer = 4,   // actor, request, status, ...
  watch = 5,    // actor
  down = 6,     // actor, kind, text
  stop = 7,     // actor, kind or 0, text
  kill = 8,     // actor
  exit = 9,     // actor, kind, text, who
  credit = 10,  // actor, messages that were handled
};
enum class answer_status : std::uint8_t { value = 0, down = 1, full = 2, broken = 3, failed = 4 };

exit_reason read_reason(wire_reader& r);
void write_reason(wire_writer& w, const exit_reason& why);
std::string text_of_exception(const std::exception_ptr& e);

/// What uses the network, and has to stop before it does.
struct closable {
  virtual void close() = 0;

 protected:
  ~closable() = default;
};

/// What is shown with a node, as status_source has it: called under the core's lock.
struct status_part {
  /// `mine`: the labels of the cluster and this node.
  virtual void add_tables(std::vector<status_table>& to, const std::vector<std::string>& mine) = 0;
  virtual void dump(status_text& to) noexcept = 0;

 protected:
  ~status_part() = default;
};

/// A message of a class, with what names it on all links of this node.
struct known_message {
  remote_message how;
  std::uint64_t index;  // of the announcement
};
struct known_class {
  remote_class how;
  std::vector<known_message> messages;
  [[nodiscard]] const known_message* find(const type_info& type) const noexcept;
  [[nodiscard]] const known_message* find(std::string_view name) const noexcept;
};

/// What both a proxy's turns and its link know of it.
struct proxy {
  const known_class* of = nullptr;
  std::uint64_t number = 0;  // at the node where it is
  std::uint64_t window = 0;  // messages under way at most; 0: no bound
  std::weak_ptr<peer> to;
  std::mutex lock;
  std::unordered_map<std::uint64_t, message*> asked;  // by request
  std::uint64_t under_way = 0;
  bool over = false;
};

/// The other end of a link, as its writers see it.
struct peer : std::enable_shared_from_this<peer> {
  static constexpr std::size_t backlog_most = std::size_t{1} << 20;  // then proxies hold their mail: a guess

  peer(std::shared_ptr<cluster_core> c, node_address a) : kept{std::move(c)}, core{*kept}, address{std::move(a)} {}

  /// Appends envelopes, each with its length in front, and calls the link. False: it is lost.
  bool write(std::string_view envelopes);
  bool append(std::string_view envelopes);  // the same, with the lock
  /// The sender's type `m` is known there before whatever is written next.
  void announce(const known_message& m);
  /// In a proxy's turn: true if it has to wait, and is held.
  bool hold_if_full(actor_cell& c);
  /// The proxy for an actor there; on a worker. `ended`: one that ends at once, and that nobody else gets.
  any_actor stand_in(std::uint64_t number, const known_class& of, std::uint64_t capacity);
  /// Out of the table, if `cell` is what is in it, and, `only_forgotten`, nobody refers to it.
  bool strike(std::uint64_t number, const actor_cell* cell, bool only_forgotten);
  /// Asks proxies that nobody refers to any more to end.
  void sweep();

  const std::shared_ptr<cluster_core> kept;  // until the link is lost: then the core has no peer any more
  cluster_core& core;
  const node_address address;
  std::mutex lock;
  std::deque<std::string> chunks;       // of about a frame each
  std::atomic<std::size_t> backlog{0};  // of bytes in `chunks`; changed under the lock
  bool called = false;                  // the link will look
  std::atomic<bool> lost{false};        // changed under the lock
  std::vector<any_actor> held;
  std::set<std::uint64_t> announced;
  struct stood_in {
    any_actor cell;
    std::shared_ptr<proxy> state;
  };
  std::unordered_map<std::uint64_t, stood_in> proxies;  // by number
  std::set<std::uint64_t> watched;                      // exports, for the other side
  actor_ref<link_actor> link;
  std::atomic<std::uint64_t> requests{0};
  link_info info;  // lock
};

struct export_entry {
  any_actor who;
  const known_class* of = nullptr;
  std::uint64_t capacity = 0;
  std::vector<std::pair<std::string, std::uint64_t>> names;  // in the cluster, with the revision by which it has them
};

struct cluster_core final : std::enable_shared_from_this<cluster_core>, wire_refs, status_source {
  cluster_core(cluster_options o, std::unique_ptr<carrier> by) : options{std::move(o)}, net{std::move(by)} {}

  // status_source, in status.cpp
  [[nodiscard]] std::vector<status_table> tables() const override;
  void dump(status_text& to) const noexcept override;
  [[nodiscard]] std::vector<link_info> links() const;

  // wire_refs
  record out(const any_actor& who) override;
  any_actor in(const record& what) override;
  /// Bytes that a message may have: of a frame some are for what goes along.
  [[nodiscard]] std::size_t message_most() const noexcept {
    constexpr std::size_t around = std::size_t{16} << 10;
    return std::min(wire_limits::message_bytes, std::max(net->frame_most(), 2 * around) - around);
  }

  std::shared_ptr<peer> peer_of(const node_address& a);  // on a worker
  [[nodiscard]] const known_class* class_of(std::string_view name);
  [[nodiscard]] std::optional<export_entry> exported(std::uint64_t number);
  /// Of an actor that has ended: its reason, as long as it is remembered.
  [[nodiscard]] exit_reason reason_of(std::uint64_t number);
  void forget(const actor_cell& stand_in) {
    const std::lock_guard guard{lock};
    elsewhere.erase(&stand_in);
  }
  void actor_ended(const any_actor& who, const exit_reason& why);
  void peer_lost(peer& p, std::uint64_t next_epoch);
  void came(const node_address& from, std::string frame);

  /// Is anything on its way to a node that can be reached?
  [[nodiscard]] bool has_unsent();
  [[nodiscard]] actor_ref<link_actor> link_to(const node_address& a);
  [[nodiscard]] std::vector<actor_ref<link_actor>> all_links();

  cluster_options options;
  std::unique_ptr<carrier> net;
  node_address me;
  actor_ref<hub_actor> hub;
  actor_ref<name_keeper> keeper;
  actor_ref<node_service> service;

  std::optional<status_registration> shown;

  mutable std::mutex lock;
  bool closing = false;
  std::map<std::string, std::unique_ptr<known_class>, std::less<>> classes;
  std::uint64_t messages = 0;
  std::map<std::string, starter> starters;
  std::vector<std::weak_ptr<closable>> to_close;
  std::vector<status_part*> parts;  // each takes itself out before it ends
  std::map<std::string, std::shared_ptr<void>> groups;
  std::map<node_address, std::shared_ptr<peer>> peers;
  std::map<std::string, std::uint64_t> newest;  // incarnation of each node that was heard of
  std::map<node_address, std::uint64_t> epochs;
  std::unordered_map<const actor_cell*, std::uint64_t> numbers;
  std::unordered_map<std::uint64_t, export_entry> exports;
  std::uint64_t exported_last = 0;
  static constexpr std::size_t remembered_most = 4096;
  std::deque<std::pair<std::uint64_t, exit_reason>> ended;
  std::unordered_map<const actor_cell*, record> elsewhere;  // what proxies stand for
};

class log_core;
std::shared_ptr<log_core> make_log(cluster_core& core, const std::string& name);
remote_class make_gate_class();
std::shared_ptr<shards_core> make_shards(const std::shared_ptr<cluster_core>& core, const std::string& set,
                                         const type_info& of, any_actor (*start)(const shard_key&),
                                         const shard_options& o);
std::unique_ptr<carrier> make_nats_carrier(const cluster_options& options);
std::unique_ptr<foreign_actor> make_proxy_actor(std::shared_ptr<peer> to, std::shared_ptr<proxy> state);

}  // namespace ramie::detail
