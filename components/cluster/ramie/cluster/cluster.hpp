// Actors on several machines: see docs/design/cluster.md.
#pragma once

#include <ramie/cluster/group.hpp>
#include <ramie/cluster/log.hpp>
#include <ramie/cluster/queue.hpp>
#include <ramie/cluster/remote.hpp>
#include <ramie/cluster/shards.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ramie {

/// What a cluster cannot do: reach the server, take a name. The message says which.
class cluster_error : public error {
 public:
  using error::error;
};

struct cluster_options {
  /// Of nats-server, several separated by commas. JetStream has to be enabled there: it keeps names.
  std::string url = "nats://127.0.0.1:4222";
  /// Nodes of one name and server see each other. Letters, digits, - and _, at most 32.
  std::string name = "ramie";
  /// Unlike all other nodes' of the cluster. As above.
  std::string node;
  /// As what this node logs in to the server: one of these, or none. `credentials` is a file of NATS credentials (a JWT
  /// and an NKEY seed, as nsc writes it).
  std::string user{}, password{};
  std::string token{};
  std::string credentials{};
  /// TLS, which is used if a url begins with tls://, or any of these is given. Files in PEM: the certificates to trust
  /// (empty: the system's); what this node shows, and its key. The server's certificate has to be for the host in the
  /// url, or for `server_name`.
  std::string trusted{};
  std::string certificate{}, key{};
  std::string server_name{};
  /// A node that is not heard of for so long is lost, and one of which the server says that it is not there, for a
  /// tenth of it. At least 500 ms.
  std::chrono::milliseconds lost_after{3000};
};

struct node_info {
  std::string name;
  std::uint64_t incarnation = 0;  // a process that takes the name again has a larger one
  friend bool operator==(const node_info&, const node_info&) = default;
};

/// Messages to an actor that asked for them by cluster::on_node. One that was lost, and speaks again, is up again.
struct node_up {
  node_info node;
};
struct node_lost {
  node_info node;
};

/// What a node knows of its link with another.
struct link_info {
  node_info peer;
  bool open = false;
  std::uint64_t sent_bytes = 0, received_bytes = 0;
  std::uint64_t sent_frames = 0, received_frames = 0;
  std::size_t unacknowledged_frames = 0;
  std::uint64_t credit_bytes = 0;
  std::size_t waiting_bytes = 0;  // of messages, for the link
  std::size_t proxies = 0;        // references to actors there
};

namespace detail {
struct cluster_core;
class carrier;
std::shared_ptr<queue_core> make_queue(cluster_core& core, const std::string& name, const queue_options& o);
}  // namespace detail

/// Makes this process a node of a cluster. A reference to an actor of another node is like any: tell, ask, monitor,
/// link, join, stop and kill reach the actor there. What differs: messages go in order from one actor to another until
/// the other node is lost; then monitors get down{node_lost}, `ask` throws actor_down{node_lost}, and what was under
/// way may or may not have been handled. Only types that this node knows are decoded.
///
/// Made and used within a runtime, by fibers; what waits for the server says "suspends".
class cluster {
 public:
  /// Suspends. Throws invalid_argument; cluster_error if the server cannot be reached, or a living node has the name.
  explicit cluster(const cluster_options& options);
  cluster(const cluster&) = delete;
  cluster& operator=(const cluster&) = delete;
  /// Suspends, until what was told to other nodes has arrived there, but not longer than options.lost_after. Then they
  /// see this node as lost, and references to their actors end with node_lost.
  ~cluster();

  /// From now on references to actors of class A can be sent and received, and other nodes may send such actors what
  /// `A::remote` lists (to a fiber actor, A is mailbox<Ms...>: those Ms that have a RAMIE_WIRE; it can be told, not
  /// asked). Call it before references are exchanged. Any number of times.
  template <class A>
  void knows() {
    add_class(detail::make_remote_class<A>());
  }

  /// Makes the actor known as `name` in the whole cluster, until it ends. False: another one that may be alive has it.
  /// Suspends. Throws usage_error if the cluster does not know A, or the actor is of another node; cluster_error.
  template <class A>
  bool register_name(std::string_view name, const actor_ref<A>& who) {
    return register_any(name, who);
  }
  /// The actor of this name. Nothing: there is none. Suspends. Throws cluster_error, also if it is of another class.
  template <class A>
  std::optional<actor_ref<A>> whereis(std::string_view name) {
    const any_actor found = whereis_any(name, type_of<A>());
    if (!found) return std::nullopt;
    return actor_ref<A>{*found.cell()};
  }

  /// From now on other nodes may start actors of class A here by spawn_on, with arguments of types Args, which A's
  /// constructor takes. Implies knows<A>().
  template <class A, class... Args>
  void hosts() {
    knows<A>();
    using list = detail::argument_list<Args...>;
    add_starter(type_of<A>().name(), {list::schema(), &list::template start<A>});
  }
  /// Starts an actor of class A on that node, which called hosts<A, Args...>(); texts are sent as std::string. It lives
  /// until it is stopped, or its node ends. Suspends. Throws actor_down{node_lost}; remote_failure if the node does not
  /// host A, or not with such arguments, or A's constructor threw; wire_error; usage_error if A is not known here.
  template <class A, class... Args>
  actor_ref<A> spawn_on(const node_info& where, const Args&... args) {
    using list = detail::argument_list<detail::argument_of<Args>...>;
    detail::spawn_call call{type_of<A>().name(), list::schema(), {}};
    detail::wire_writer w{call.arguments, &refs()};
    list::write(w, detail::argument_of<Args>(args)...);
    const any_actor made = spawn_any(where, std::move(call));
    return actor_ref<A>{*made.cell()};
  }

  /// From now on `watcher` is told node_up and node_lost; node_up also for each node that is known already. It is told
  /// of all but this node, within about a second. Makes links with all of them. Throws std::bad_alloc.
  template <class A>
  void on_node(const actor_ref<A>& watcher) {
    watch_nodes(watcher, watcher);
  }

  /// The group of this name and type of messages, which all nodes share. Throws invalid_argument; std::bad_alloc.
  template <wire_message M>
  cluster_group<M> group(std::string_view name) {
    const std::string key = group_key(name, wire_name<M>());
    auto fresh = std::make_shared<ramie::group<M>>();
    ramie::group<M>* const all = fresh.get();
    const std::shared_ptr<void> kept = open_group(
        key, {fresh, &type_of<M>(),
              [all](const any_actor& who, detail::message_function act) { all->join(recipient<M>{who, act}); },
              [all](const any_actor& who) { all->leave(who); }});
    return {core_, key, std::static_pointer_cast<ramie::group<M>>(kept)};
  }

  /// The durable queue of this name. Suspends. Throws invalid_argument; cluster_error, also if the server has it with
  /// other options.
  template <wire_message M>
  cluster_queue<M> queue(std::string_view name, const queue_options& options = {}) {
    return cluster_queue<M>{open_queue(name, options)};
  }

  /// Takes part in the set of shards of this name, whose actors are of class A, constructed from a shard_key. Suspends
  /// shortly. Throws invalid_argument, std::bad_alloc.
  template <class A>
  cluster_shards<A> shards(std::string_view name, const shard_options& options = {}) {
    knows<A>();
    return cluster_shards<A>{open_shards(name, type_of<A>(), &detail::start_in_shard<A>, options)};
  }

  /// The logs of this name: what durable actors keep. Suspends. Throws invalid_argument, cluster_error.
  template <wire_message E>
  cluster_logs<E> logs(std::string_view name) {
    return cluster_logs<E>{open_log(name)};
  }

  /// This node.
  [[nodiscard]] node_info self() const;
  /// All that can be reached just now, by name. Suspends. Throws cluster_error.
  [[nodiscard]] std::vector<node_info> nodes();
  /// Any thread; does not suspend.
  [[nodiscard]] std::vector<link_info> links() const;

  /// For tests, on another network.
  cluster(const cluster_options& options, std::unique_ptr<detail::carrier> by);

 private:
  static std::string group_key(std::string_view name, std::string_view message);
  any_actor spawn_any(const node_info& where, detail::spawn_call call);
  [[nodiscard]] wire_refs& refs() noexcept;
  void add_starter(std::string_view type, detail::starter how);
  void watch_nodes(recipient<node_up> up, recipient<node_lost> lost);
  std::shared_ptr<void> open_group(const std::string& key, detail::group_entry entry);
  std::shared_ptr<detail::queue_core> open_queue(std::string_view name, const queue_options& options);
  std::shared_ptr<detail::shards_core> open_shards(std::string_view name, const type_info& of,
                                                   any_actor (*start)(const shard_key&), const shard_options& options);
  std::shared_ptr<detail::log_core> open_log(std::string_view name);
  void add_class(detail::remote_class c);
  bool register_any(std::string_view name, const any_actor& who);
  any_actor whereis_any(std::string_view name, const type_info& wanted);

  std::shared_ptr<detail::cluster_core> core_;
};

}  // namespace ramie
