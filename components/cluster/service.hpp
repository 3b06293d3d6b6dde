// The actor by which nodes speak to each other: the first export of each, so that its number is known.
//
// Presence. Each node says "I am here" to all once a second (a datagram on the cluster's own subject). A node that
// wants to know of others (`on_node`, groups, shards) answers by a reference to the other's service, which makes a
// link, and monitors it: the link says when the node is lost, as fast as links do. So a node counts as there from its
// first word until its link ends; if it speaks again afterwards, it is there again.
//
// Groups. Each node keeps the members that joined there. It tells all nodes that it knows of each change, all it has
// when a node comes up, and when it is asked by one that has just opened the group. These go by links, in order, so
// what another node has of this one is right until it loses this one; then it drops the proxies, and with them the
// members.
#pragma once

#include "node.hpp"

#include <ramie/patterns/recipient.hpp>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace ramie::detail {

class node_service;

struct spawn_request {
  std::string type, schema, arguments;
};
struct group_change {
  std::string group;
  any_actor who;
  bool joined = false;
};
struct group_question {
  std::string group;
  actor_ref<node_service> from;
};

RAMIE_WIRE(spawn_request, "ramie.spawn", (1, type), (2, schema), (3, arguments))
RAMIE_WIRE(group_change, "ramie.group_change", (1, group), (2, who), (3, joined))
RAMIE_WIRE(group_question, "ramie.group_question", (1, group), (2, from))

class node_service final : public actor<node_service> {
 public:
  using remote = messages<spawn_request, group_change, group_question>;
  static constexpr std::uint64_t number = 1;

  // Of this node alone.
  struct heard {
    node_address from;
    bool asks;  // it wants to hear of others at once
  };
  struct beacon {};
  struct watch {
    recipient<node_up> up;
    recipient<node_lost> lost;
  };
  struct open_group {
    std::string key;
    group_entry entry;
  };
  struct own_change {
    std::string key;
    any_actor who;
    bool joined;
  };

  explicit node_service(std::weak_ptr<cluster_core> core) : core_{std::move(core)} {}

  reply<any_actor> on(const spawn_request& r);
  void on(const group_change& c);
  void on(const group_question& q);
  void on(const heard& h);
  void on(beacon);
  void on(const watch& w);
  void on(open_group& o);
  void on(const own_change& c);
  void on(const down& d);

 private:
  struct neighbour {
    node_info node;
    actor_ref<node_service> service;
  };
  struct known_group {
    group_entry entry;
    std::vector<any_actor> ours;
  };
  void start_watching();
  void push(const std::string& key, known_group& g, const actor_ref<node_service>& to);
  void lose(std::map<std::string, neighbour>::iterator which);

  std::weak_ptr<cluster_core> core_;
  bool watching_ = false;
  std::map<std::string, neighbour> up_;
  std::map<std::string, known_group> groups_;
  std::vector<watch> watchers_;
};

}  // namespace ramie::detail
