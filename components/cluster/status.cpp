// What a node shows of itself: its links, its shards.
#include "node.hpp"

#include <mutex>
#include <utility>

namespace ramie::detail {

std::vector<link_info> cluster_core::links() const {
  std::vector<link_info> all;
  const std::lock_guard guard{lock};
  for (const auto& [address, p] : peers) {
    const std::lock_guard peer_guard{p->lock};
    link_info i = p->info;
    i.waiting_bytes = p->backlog;
    i.proxies = p->proxies.size();
    all.push_back(std::move(i));
  }
  return all;
}

std::vector<status_table> cluster_core::tables() const {
  const std::vector<std::string> mine{options.name, me.name};
  status_table nodes{"cluster_node",
                     "What this process is in a cluster of actors.",
                     {"cluster", "node"},
                     {"incarnation", "exports", "links"},
                     {}};
  status_table all{"cluster_link",
                   "A link to another node of a cluster of actors.",
                   {"cluster", "node", "peer", "incarnation"},
                   {"open", "sent_bytes_total", "received_bytes_total", "sent_frames_total", "received_frames_total",
                    "unacknowledged_frames", "credit_bytes", "waiting_bytes", "proxies"},
                   {}};
  for (const link_info& l : links())
    all.rows.push_back({{options.name, me.name, l.peer.name, std::to_string(l.peer.incarnation)},
                        {l.open ? 1U : 0U, l.sent_bytes, l.received_bytes, l.sent_frames, l.received_frames,
                         l.unacknowledged_frames, l.credit_bytes, l.waiting_bytes, l.proxies}});
  const std::lock_guard guard{lock};
  nodes.rows.push_back({mine, {me.incarnation, exports.size(), peers.size()}});
  std::vector<status_table> out{std::move(nodes), std::move(all)};
  for (status_part* const part : parts) part->add_tables(out, mine);
  return out;
}

void cluster_core::dump(status_text& to) const noexcept {
  to << "cluster " << options.name << ", node " << me.name << ", incarnation " << me.incarnation;
  const std::unique_lock guard{lock, std::try_to_lock};
  if (!guard) {
    to << ": it is being changed\n";
    return;
  }
  to << ": " << std::uint64_t{exports.size()} << " exported actors\n";
  for (const auto& [address, p] : peers) {
    to << "  link to " << address.name << " (" << address.incarnation << ")";
    const std::unique_lock peer_guard{p->lock, std::try_to_lock};
    if (!peer_guard) {
      to << ": it is being changed\n";
      continue;
    }
    const link_info& i = p->info;
    to << (i.open ? ": open, " : ": not open, ") << i.sent_bytes << " bytes sent in " << i.sent_frames << " frames, "
       << i.received_bytes << " received in " << i.received_frames << "; " << std::uint64_t{i.unacknowledged_frames}
       << " frames not acknowledged, " << i.credit_bytes << " bytes of credit, " << std::uint64_t{p->backlog.load()}
       << " bytes wait, " << std::uint64_t{p->proxies.size()} << " proxies\n";
  }
  for (status_part* const part : parts) part->dump(to);
}

}  // namespace ramie::detail
