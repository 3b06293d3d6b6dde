// What a node knows: its classes, its exports, its peers.
#include "node.hpp"

#include "link_actor.hpp"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <utility>

namespace ramie::detail {

void write_reason(wire_writer& w, const exit_reason& why) {
  w.varint(static_cast<std::uint64_t>(why.kind()));
  w.bytes(std::string_view{text_of_exception(why.exception())}.substr(0, 4096));
}

exit_reason read_reason(wire_reader& r) {
  const std::uint64_t kind = r.varint();
  const std::string_view text = r.bytes();
  if (kind > static_cast<std::uint64_t>(exit_kind::node_lost)) wire_fails("a reason is unknown");
  std::exception_ptr e;
  if (!text.empty()) e = std::make_exception_ptr(remote_failure{std::string{text}});
  return exit_reason{static_cast<exit_kind>(kind), std::move(e)};
}

const known_message* known_class::find(const type_info& type) const noexcept {
  for (const known_message& m : messages)
    if (*m.how.type == type) return &m;
  return nullptr;
}
const known_message* known_class::find(std::string_view name) const noexcept {
  for (const known_message& m : messages)
    if (m.how.name == name) return &m;
  return nullptr;
}

// ---- the node ------------------------------------------------------------------------------------------------------

const known_class* cluster_core::class_of(std::string_view name) {
  const std::lock_guard guard{lock};
  const auto at = classes.find(name);
  return at == classes.end() ? nullptr : at->second.get();
}

std::optional<export_entry> cluster_core::exported(std::uint64_t number) {
  const std::lock_guard guard{lock};
  const auto at = exports.find(number);
  if (at == exports.end()) return std::nullopt;
  return at->second;
}

exit_reason cluster_core::reason_of(std::uint64_t number) {
  const std::lock_guard guard{lock};
  for (const auto& [one, why] : ended)
    if (one == number) return why;
  return exit_reason{exit_kind::stopped};
}

std::shared_ptr<peer> cluster_core::peer_of(const node_address& a) {
  std::uint64_t epoch = 0;
  std::shared_ptr<peer> made;
  {
    const std::lock_guard guard{lock};
    const auto known = peers.find(a);
    if (known != peers.end()) return known->second;
    made = std::make_shared<peer>(shared_from_this(), a);
    made->info.peer = {a.name, a.incarnation};
    if (closing) {
      made->lost = true;
      return made;
    }
    epoch = ++epochs[a];
    peers.emplace(a, made);
  }
  auto link = spawn_actor<link_actor>(actor_options{.name = "link to " + a.name}, shared_from_this(), made, epoch);
  {
    const std::lock_guard guard{made->lock};
    made->link = link;
  }
  link.tell(link_actor::tick{});
  link.tell(link_actor::flush{});
  return made;
}

bool cluster_core::has_unsent() {
  const std::lock_guard guard{lock};
  for (const auto& [address, p] : peers) {
    const std::lock_guard peer_guard{p->lock};
    if (p->backlog != 0 || p->called || p->info.unacknowledged_frames != 0) return true;
    for (const auto& [number, one] : p->proxies)
      if (one.cell.mail_count() != 0) return true;
  }
  return false;
}

actor_ref<link_actor> cluster_core::link_to(const node_address& a) {
  const std::lock_guard guard{lock};
  const auto known = peers.find(a);
  if (known == peers.end()) return {};
  const std::lock_guard peer_guard{known->second->lock};
  return known->second->link;
}

std::vector<actor_ref<link_actor>> cluster_core::all_links() {
  std::vector<actor_ref<link_actor>> all;
  const std::lock_guard guard{lock};
  for (const auto& [address, p] : peers) {
    const std::lock_guard peer_guard{p->lock};
    if (p->link) all.push_back(p->link);
  }
  return all;
}

void cluster_core::came(const node_address& from, std::string frame) {
  actor_ref<link_actor> link;
  std::vector<actor_ref<link_actor>> old;
  {
    const std::lock_guard guard{lock};
    if (closing) return;
    std::uint64_t& incarnation = newest[from.name];
    if (from.incarnation < incarnation) return;
    if (from.incarnation > incarnation) {
      incarnation = from.incarnation;
      for (const auto& [address, p] : peers)
        if (address.name == from.name && address.incarnation < incarnation) {
          const std::lock_guard peer_guard{p->lock};
          if (p->link) old.push_back(p->link);
        }
    }
    if (const auto known = peers.find(from); known != peers.end()) {
      const std::lock_guard peer_guard{known->second->lock};
      link = known->second->link;
    }
  }
  for (const auto& o : old) o.tell(link_actor::close{});
  if (link) link.tell(link_actor::frame{std::move(frame)});
  else hub.tell(hub_actor::came{from, std::move(frame)});
}

void hub_actor::on(came& c) {
  const auto core = core_.lock();
  if (core == nullptr) return;
  core->peer_of(c.from);
  if (const auto link = core->link_to(c.from)) link.tell(link_actor::frame{std::move(c.frame)});
}

void cluster_core::actor_ended(const any_actor& who, const exit_reason& why) {
  std::uint64_t number = 0;
  std::vector<std::shared_ptr<peer>> all;
  std::vector<std::pair<std::string, std::uint64_t>> names;
  {
    const std::lock_guard guard{lock};
    const auto known = numbers.find(who.cell());
    if (known == numbers.end()) return;
    number = known->second;
    numbers.erase(known);
    names = std::move(exports.at(number).names);
    exports.erase(number);
    ended.emplace_back(number, why);
    if (ended.size() > remembered_most) ended.pop_front();
    for (const auto& [address, p] : peers) all.push_back(p);
  }
  std::string bytes;
  wire_writer w{bytes};
  w.with_length([&] {
    w.varint(static_cast<std::uint64_t>(envelope::down));
    w.varint(number);
    write_reason(w, why);
  });
  for (const auto& p : all) {
    bool watches = false;
    actor_ref<link_actor> link;
    {
      const std::lock_guard guard{p->lock};
      watches = p->watched.erase(number) != 0;
      link = p->link;
    }
    if (watches) p->write(bytes);
    if (link) link.tell(link_actor::gone{number});
  }
  for (const auto& [name, revision] : names) keeper.tell(name_keeper::give_up{name, revision});
}

void name_keeper::on(again) {
  while (!left_.empty()) {
    try {
      net_.remove("names", left_.back().name, left_.back().revision);
    } catch (const cluster_error&) {
      start_timer(timer_key{"again"}, std::chrono::milliseconds{250}, again{});
      return;
    }
    left_.pop_back();
  }
}

void cluster_core::peer_lost(peer& p, std::uint64_t next_epoch) {
  {
    const std::lock_guard guard{lock};
    const auto at = peers.find(p.address);
    if (at != peers.end() && at->second.get() == &p) peers.erase(at);
    std::uint64_t& epoch = epochs[p.address];
    epoch = std::max(epoch, next_epoch);
  }
  std::unordered_map<std::uint64_t, peer::stood_in> gone;
  {
    const std::lock_guard guard{p.lock};
    p.lost = true;
    p.chunks.clear();
    p.backlog = 0;
    p.held.clear();
    gone.swap(p.proxies);
  }
  for (const auto& [number, one] : gone) {
    forget(*one.cell.cell());
    end_foreign(*one.cell.cell(), exit_reason{exit_kind::node_lost});
  }
}

}  // namespace ramie::detail
