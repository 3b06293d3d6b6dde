// The public face: joining, names, nodes.
//
// Names and nodes are keys that the server keeps; a node's incarnation is the revision with which it took its name.
// A node that finds a name taken asks whether its holder may be alive: only if the server says that nobody listens
// there is the name taken over, by the holder's revision, so that of two nodes that try one has it. Nodes have no
// leases yet: one that was cut from the server, and lives, can lose its name to another, with a larger incarnation, in
// whose favour all decide.
#include "link_actor.hpp"
#include "node.hpp"
#include "service.hpp"

#include <algorithm>
#include <utility>

namespace ramie {

namespace {

void check_name(const char* what, std::string_view text, std::size_t most) {
  if (!detail::is_word(text, most))
    throw invalid_argument{std::string{"ramie: cluster: "} + what + " \"" + std::string{text} + "\": 1 to " +
                           std::to_string(most) + " letters, digits, - and _"};
}

cluster_options checked(cluster_options o) {
  check_name("options.name", o.name, 32);
  check_name("options.node", o.node, detail::node_name_most);
  if (o.lost_after < std::chrono::milliseconds{500})
    throw invalid_argument{"ramie: cluster: options.lost_after is " + std::to_string(o.lost_after.count()) +
                           " ms; at least 500"};
  return o;
}

std::uint64_t claim_node(detail::carrier& net, const std::string& name) {
  for (;;) {
    if (const std::uint64_t mine = net.create("nodes", name, ""); mine != 0) return mine;
    const auto held = net.get("nodes", name);
    if (!held) continue;
    if (net.may_live({name, held->revision}))
      throw cluster_error{"ramie: cluster: node " + name + " is alive already, or cannot be asked"};
    if (const std::uint64_t mine = net.update("nodes", name, "", held->revision); mine != 0) return mine;
  }
}

}  // namespace

cluster::cluster(const cluster_options& options) : cluster{options, detail::make_nats_carrier(checked(options))} {}

cluster::cluster(const cluster_options& options, std::unique_ptr<detail::carrier> by)
    : core_{std::make_shared<detail::cluster_core>(checked(options), std::move(by))} {
  detail::cluster_core& c = *core_;
  c.me = {c.options.node, claim_node(*c.net, c.options.node)};
  c.hub = spawn_actor<detail::hub_actor>(actor_options{.name = "cluster " + c.options.name}, std::weak_ptr{core_});
  c.keeper = spawn_actor<detail::name_keeper>(actor_options{.name = "names of " + c.me.name}, *c.net);
  knows<detail::node_service>();
  c.service = spawn_actor<detail::node_service>(actor_options{.name = "service of " + c.me.name}, std::weak_ptr{core_});
  c.out(c.service);  // the first export has the number that others know
  c.net->start(c.me, {.received = [&c](const detail::node_address& from, std::string f) { c.came(from, std::move(f)); },
                      .refused =
                          [&c](const detail::node_address& to) {
                            if (const auto link = c.link_to(to)) link.tell(detail::link_actor::refused{});
                          },
                      .reconnected =
                          [&c] {
                            for (const auto& link : c.all_links()) link.tell(detail::link_actor::reconnected{});
                          },
                      .heard =
                          [&c](const detail::node_address& from, const std::string& word) {
                            c.service.tell(detail::node_service::heard{from, word == detail::presence::asks});
                          }});
  c.service.tell(detail::node_service::beacon{});
  c.shown.emplace(c);
}

cluster::~cluster() {
  detail::cluster_core& c = *core_;
  c.shown.reset();
  std::vector<std::weak_ptr<detail::closable>> first;
  {
    const std::lock_guard guard{c.lock};
    first.swap(c.to_close);
  }
  for (const auto& one : first)
    if (const auto user = one.lock()) shield([&] { user->close(); });
  // What was told before is to arrive, if anybody is there.
  const auto until = std::chrono::steady_clock::now() + c.options.lost_after;
  while (c.has_unsent() && std::chrono::steady_clock::now() < until)
    shield([] { this_fiber::sleep_for(std::chrono::milliseconds{2}); });
  {
    const std::lock_guard guard{c.lock};
    c.closing = true;
  }
  for (const auto& link : c.all_links()) {
    link.tell(detail::link_actor::close{});
    shield([&] { link.join(); });
  }
  c.service.stop();
  shield([&] { c.service.join(); });
  c.hub.stop();
  shield([&] { c.hub.join(); });
  c.keeper.stop();
  shield([&] { c.keeper.join(); });
  try {
    shield([&] { c.net->remove("nodes", c.me.name, c.me.incarnation); });
  } catch (const cluster_error&) {
    // The next one finds that nobody listens.
  }
  c.net->stop();
}

void cluster::add_class(detail::remote_class made) {
  detail::cluster_core& c = *core_;
  const std::lock_guard guard{c.lock};
  const std::string name{made.of->name()};
  if (c.classes.contains(name)) return;
  auto known = std::make_unique<detail::known_class>();
  for (const detail::remote_message& m : made.messages) known->messages.push_back({m, c.messages++});
  known->how = std::move(made);
  c.classes.emplace(name, std::move(known));
}

std::string cluster::group_key(std::string_view name, std::string_view message) {
  check_name("group", name, 128);
  return std::string{name} + " of " + std::string{message};
}

std::shared_ptr<detail::queue_core> cluster::open_queue(std::string_view name, const queue_options& options) {
  check_name("queue", name, 64);
  return detail::make_queue(*core_, std::string{name}, options);
}

std::shared_ptr<detail::shards_core> cluster::open_shards(std::string_view name, const type_info& of,
                                                          any_actor (*start)(const shard_key&),
                                                          const shard_options& options) {
  check_name("shards", name, 64);
  add_class(detail::make_gate_class());
  return detail::make_shards(core_, std::string{name}, of, start, options);
}

std::shared_ptr<detail::log_core> cluster::open_log(std::string_view name) {
  check_name("logs", name, 64);
  return detail::make_log(*core_, std::string{name});
}

bool cluster::register_any(std::string_view name, const any_actor& who) {
  check_name("register_name", name, 128);
  detail::cluster_core& c = *core_;
  const wire_refs::record what = [&] {
    try {
      return c.out(who);
    } catch (const wire_error& e) {
      throw usage_error{e.what()};
    }
  }();
  if (what.node != c.me.name || what.incarnation != c.me.incarnation)
    throw usage_error{"ramie: cluster: register_name \"" + std::string{name} + "\": the actor is of node " + what.node +
                      ", where its end is noticed: it is to be registered there"};
  const std::string key{name};
  const std::string value = to_wire(what);
  std::uint64_t mine = 0;
  for (;;) {
    if ((mine = c.net->create("names", key, value)) != 0) break;
    const auto held = c.net->get("names", key);
    if (!held) continue;
    const auto holder = from_wire<wire_refs::record>(held->value);
    detail::check_address(holder);
    const bool here = holder.node == c.me.name && holder.incarnation == c.me.incarnation;
    if (here && holder.number == what.number) {  // it has it, perhaps by a call whose answer was lost
      mine = held->revision;
      break;
    }
    const auto known = here ? c.exported(holder.number) : std::nullopt;
    if (here ? known && known->who.alive() : c.net->may_live({holder.node, holder.incarnation})) return false;
    if ((mine = c.net->update("names", key, value, held->revision)) != 0) break;
  }
  {
    const std::lock_guard guard{c.lock};
    if (const auto at = c.exports.find(what.number); at != c.exports.end()) {
      std::erase_if(at->second.names, [&](const auto& n) { return n.first == key; });
      at->second.names.emplace_back(key, mine);
      return true;
    }
  }
  c.keeper.tell(detail::name_keeper::give_up{key, mine});  // it ended meanwhile
  return true;
}

any_actor cluster::whereis_any(std::string_view name, const type_info& wanted) {
  check_name("whereis", name, 128);
  const auto found = core_->net->get("names", std::string{name});
  if (!found) return {};
  const auto what = from_wire<wire_refs::record>(found->value);
  if (what.type != wanted.name())
    throw cluster_error{"ramie: cluster: whereis: " + std::string{name} + " is a " + what.type + ", not a " +
                        std::string{wanted.name()}};
  return core_->in(what);
}

node_info cluster::self() const { return {core_->me.name, core_->me.incarnation}; }

std::vector<node_info> cluster::nodes() {
  std::vector<node_info> all;
  for (const std::string& name : core_->net->keys("nodes")) {
    const auto held = core_->net->get("nodes", name);
    if (!held) continue;
    const bool me = name == core_->me.name && held->revision == core_->me.incarnation;
    if (me || core_->net->may_live({name, held->revision})) all.push_back({name, held->revision});
  }
  std::sort(all.begin(), all.end(), [](const node_info& a, const node_info& b) { return a.name < b.name; });
  return all;
}

std::vector<link_info> cluster::links() const { return core_->links(); }

}  // namespace ramie
