// Presence, remote starts and groups: see service.hpp.
#include "service.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace ramie {

namespace detail {

namespace {

wire_refs::record service_of(const node_info& node) {
  return {node.name, node.incarnation, node_service::number, std::string{type_of<node_service>().name()}, 0};
}

}  // namespace

reply<any_actor> node_service::on(const spawn_request& r) {
  reply<any_actor> answer;
  try {
    const auto core = core_.lock();
    if (core == nullptr) throw cluster_error{"ramie: cluster: the node is about to leave"};
    starter how;
    {
      const std::lock_guard guard{core->lock};
      const auto known = core->starters.find(r.type);
      if (known == core->starters.end())
        throw cluster_error{"ramie: cluster: spawn_on: node " + core->me.name + " does not start a " + r.type +
                            ": call hosts<...>() there"};
      how = known->second;
    }
    if (how.schema != r.schema)
      throw cluster_error{"ramie: cluster: spawn_on: node " + core->me.name + " starts a " + r.type + " with \"" +
                          how.schema + "\", not with \"" + r.schema + "\""};
    answer.set_value(how.start(r.arguments, *core));
  } catch (const cancelled&) {
    throw;
  } catch (...) {
    answer.set_exception(std::current_exception());
  }
  return answer;
}

void node_service::on(const group_change& c) {
  const auto core = core_.lock();
  const auto group = groups_.find(c.group);
  if (core == nullptr || group == groups_.end() || !c.who) return;
  if (!c.joined) {
    group->second.entry.drop(c.who);
    return;
  }
  const known_class* of = core->class_of(c.who.cell()->how().of->name());
  const known_message* how = of == nullptr ? nullptr : of->find(*group->second.entry.message);
  if (how == nullptr) {
    std::fprintf(stderr, "ramie: cluster: group %s: a member of class %s is left out: it cannot be sent a %.*s here\n",
                 c.group.c_str(), std::string{c.who.cell()->how().of->name()}.c_str(),
                 static_cast<int>(group->second.entry.message->name().size()),
                 group->second.entry.message->name().data());
    return;
  }
  group->second.entry.add(c.who, how->how.act);
}

void node_service::on(const group_question& q) {
  if (const auto group = groups_.find(q.group); group != groups_.end() && q.from) push(q.group, group->second, q.from);
}

void node_service::push(const std::string& key, known_group& g, const actor_ref<node_service>& to) {
  std::erase_if(g.ours, [](const any_actor& a) { return !a.alive(); });
  for (const any_actor& one : g.ours) to.tell(group_change{key, one, true});
}

void node_service::start_watching() {
  if (std::exchange(watching_, true)) return;
  if (const auto core = core_.lock()) core->net->broadcast(presence::asks);
}

void node_service::on(beacon) {
  if (const auto core = core_.lock()) core->net->broadcast(presence::here);
  start_timer(timer_key{"beacon"}, std::chrono::seconds{1}, beacon{});
}

void node_service::on(const heard& h) {
  const auto core = core_.lock();
  if (core == nullptr) return;
  if (h.asks) core->net->broadcast(presence::here);
  if (!watching_) return;
  if (const auto known = up_.find(h.from.name); known != up_.end()) {
    if (known->second.node.incarnation >= h.from.incarnation) return;
    lose(known);
  }
  const node_info node{h.from.name, h.from.incarnation};
  const any_actor found = core->in(service_of(node));
  const actor_ref<node_service> service{*found.cell()};
  up_.insert_or_assign(node.name, neighbour{node, service});
  for (auto& [key, group] : groups_) {
    push(key, group, service);
    service.tell(group_question{key, self()});  // it may have told its members before this node had the group
  }
  for (const watch& w : watchers_) w.up.tell(node_up{node});
  monitor(service);
}

void node_service::on(const down& d) {
  const auto which = std::find_if(up_.begin(), up_.end(), [&](const auto& n) { return n.second.service == d.who; });
  if (which != up_.end()) lose(which);
}

void node_service::lose(std::map<std::string, neighbour>::iterator which) {
  const node_info node = which->second.node;
  up_.erase(which);
  for (const watch& w : watchers_) w.lost.tell(node_lost{node});
}

void node_service::on(const watch& w) {
  start_watching();
  std::erase_if(watchers_, [](const watch& old) { return !old.up.alive(); });
  watchers_.push_back(w);
  for (const auto& [name, n] : up_) w.up.tell(node_up{n.node});
}

void node_service::on(open_group& o) {
  start_watching();
  if (!groups_.emplace(o.key, known_group{std::move(o.entry), {}}).second) return;
  for (const auto& [name, n] : up_) n.service.tell(group_question{o.key, self()});
}

void node_service::on(const own_change& c) {
  known_group& group = groups_.at(c.key);
  std::erase_if(group.ours, [&](const any_actor& a) { return a == c.who || !a.alive(); });
  if (c.joined) group.ours.push_back(c.who);
  for (const auto& [name, n] : up_) n.service.tell(group_change{c.key, c.who, c.joined});
}

}  // namespace detail

// ---- the public face -----------------------------------------------------------------------------------------------

any_actor cluster::spawn_any(const node_info& where, detail::spawn_call call) {
  const any_actor found = core_->in(detail::service_of(where));
  const actor_ref<detail::node_service> service{*found.cell()};
  return service.ask(detail::spawn_request{std::string{call.type}, std::move(call.schema), std::move(call.arguments)});
}

wire_refs& cluster::refs() noexcept { return *core_; }

void cluster::add_starter(std::string_view type, detail::starter how) {
  const std::lock_guard guard{core_->lock};
  core_->starters.insert_or_assign(std::string{type}, std::move(how));
}

void cluster::watch_nodes(recipient<node_up> up, recipient<node_lost> lost) {
  core_->service.tell(detail::node_service::watch{std::move(up), std::move(lost)});
}

std::shared_ptr<void> cluster::open_group(const std::string& key, detail::group_entry entry) {
  std::shared_ptr<void> kept = entry.group;
  {
    const std::lock_guard guard{core_->lock};
    const auto [at, fresh] = core_->groups.emplace(key, kept);
    if (!fresh) return at->second;
  }
  core_->service.tell(detail::node_service::open_group{key, std::move(entry)});
  return kept;
}

void detail::change_group(cluster_core& core, const std::string& key, const any_actor& who, bool joined) {
  core.service.tell(node_service::own_change{key, who, joined});
}

void detail::check_member(cluster_core& core, const any_actor& who, const type_info& message) {
  const known_class* of = core.class_of(who.cell()->how().of->name());
  if (of == nullptr || of->find(message) == nullptr)
    throw usage_error{"ramie: cluster: group: join: the cluster does not know that a " +
                      std::string{who.cell()->how().of->name()} + " takes a " + std::string{message.name()} +
                      ": call knows<...>(), and name the message in its `remote`"};
}

}  // namespace ramie
