// See shard_member.hpp.
#include "shard_member.hpp"

namespace ramie::detail {

void shard_member::forget_lease() {
  if (lease_ == 0) return;
  lease_ = 0;
  mine_.clear();
  out_.lost_all();
}

void shard_member::renew() {
  const duration sent = out_.now();
  if (lease_ != 0) {
    if (sent - renewed_ < s_.time / 3) return;
    std::uint64_t fresh = 0;
    if (sent - renewed_ < s_.time - s_.margin) {
      fresh = store_.update(lease_key(me_.node), me_.term, lease_);
      // Perhaps an earlier renewal was done, and its acknowledgement lost: nobody else writes this term.
      if (fresh == 0)
        if (const auto now = store_.get(lease_key(me_.node)); now && now->value == me_.term)
          fresh = store_.update(lease_key(me_.node), me_.term, now->revision);
    }
    if (fresh != 0) {
      lease_ = fresh;
      renewed_ = sent;
      out_.held_until(sent + s_.time - s_.margin);
      return;
    }
    forget_lease();
  }
  const std::string key = lease_key(me_.node);
  const std::string term = life_ + "-" + std::to_string(++terms_);
  const auto old = store_.get(key);
  // Another process of this node's name may still hold it: as any lease, T3.
  if (old && old->value != over && !old->value.starts_with(life_ + "-") && !has_lapsed(me_.node, *old)) return;
  const std::uint64_t mine = old ? store_.update(key, term, old->revision) : store_.create(key, term);
  if (mine == 0) return;
  me_.term = term;
  lease_ = mine;
  renewed_ = sent;
  out_.held_until(sent + s_.time - s_.margin);
}

bool shard_member::lives(const shard_owner& o) const {
  if (is_me(o)) return lease_ != 0;
  const auto known = leases_.find(o.node);
  return known != leases_.end() && known->second.value == o.term;
}

void shard_member::adopt(shard_table t, std::uint64_t revision) {
  table_ = std::move(t);
  table_revision_ = revision;
  for (std::uint32_t shard = 0; shard < table_.of.size(); ++shard) {
    const std::uint32_t owner = table_.of[shard];
    const bool is_mine = lease_ != 0 && owner != 0 && is_me(table_.owners[owner - 1]);
    const auto known = mine_.find(shard);
    if (is_mine && known == mine_.end()) {
      mine_.emplace(shard, table_.tokens[shard]);
      out_.took(shard, table_.tokens[shard]);
    } else if (!is_mine && known != mine_.end()) {
      mine_.erase(known);
      out_.let_go(shard);
    }
  }
}

void shard_member::read_table() {
  const std::string key = set_ + ".table";
  const auto found = store_.get(key);
  shard_table t;
  std::uint64_t revision = 0;
  if (found) {
    t = from_wire<shard_table>(found->value);
    revision = found->revision;
  } else {
    t.of.resize(s_.count);
    t.tokens.resize(s_.count);
    revision = store_.create(key, to_wire(t));
    if (revision == 0) return;  // next time
  }
  if (t.of.size() != s_.count || t.tokens.size() != s_.count ||
      std::any_of(t.of.begin(), t.of.end(), [&](std::uint32_t o) { return o > t.owners.size(); }))
    throw usage_error{"ramie: cluster: shards " + set_ + ": options.count is " + std::to_string(s_.count) +
                      ", but the cluster has them with " + std::to_string(t.of.size())};
  if (revision >= table_revision_) adopt(std::move(t), revision);
}

/// A lease that has just been read.
bool shard_member::has_lapsed(const std::string& node, const shard_store::entry& read) {
  seen& known = leases_[node];
  const duration now = out_.now();
  if (read.revision != known.revision) known = {read.value, read.revision, now};
  return now - known.at > s_.time + s_.margin;
}

void shard_member::look_at_leases() {
  for (const shard_owner& o : table_.owners) {
    if (is_me(o)) continue;
    const auto found = store_.get(lease_key(o.node));
    if (!found || !has_lapsed(o.node, *found) || found->value == over) continue;
    if (const std::uint64_t ended = store_.update(lease_key(o.node), std::string{over}, found->revision); ended != 0)
      leases_[o.node] = {std::string{over}, ended, out_.now()};
  }
}

bool shard_member::write(shard_table next) {
  next.version = table_.version + 1;
  const std::uint64_t revision = store_.update(set_ + ".table", to_wire(next), table_revision_);
  if (revision == 0) return false;
  adopt(std::move(next), revision);
  return true;
}

void shard_member::take_and_give(bool all) {
  if (lease_ == 0) return;
  shard_table next = table_;
  const std::uint64_t token = table_.version + 1;
  // Living nodes, and this one; who is gone, and owns nothing after this, goes out of the table.
  std::vector<shard_owner> living;
  for (const shard_owner& o : table_.owners)
    if (lives(o)) living.push_back(o);
  if (std::none_of(living.begin(), living.end(), [&](const shard_owner& o) { return is_me(o); }) && !all)
    living.push_back(me_);
  if (all) std::erase_if(living, [&](const shard_owner& o) { return is_me(o); });
  bool changed = living != table_.owners;
  std::vector<std::uint32_t> given;
  std::vector<shard_owner> kept = living;
  for (std::uint32_t shard = 0; shard < next.of.size(); ++shard) {
    const std::uint32_t was = table_.of[shard];
    const shard_owner* owner = was == 0 ? nullptr : &table_.owners[was - 1];
    if (owner != nullptr && !lives(*owner)) owner = nullptr;
    const shard_owner* should = nullptr;
    std::uint64_t best = 0;
    for (const shard_owner& o : living)
      if (const std::uint64_t h = mixed(hash_of_key(o.node) ^ mixed(shard)); should == nullptr || h > best) {
        should = &o;
        best = h;
      }
    const auto index = [&](const shard_owner& o) {
      return static_cast<std::uint32_t>(std::find(kept.begin(), kept.end(), o) - kept.begin()) + 1;
    };
    if (owner != nullptr && is_me(*owner) && (should == nullptr || !is_me(*should))) {
      next.of[shard] = should == nullptr ? 0 : index(*should);
      next.tokens[shard] = token;
      given.push_back(shard);
      changed = true;
    } else if (owner == nullptr && should != nullptr && is_me(*should)) {
      next.of[shard] = index(*should);
      next.tokens[shard] = token;
      changed = true;
    } else {
      next.of[shard] = owner == nullptr ? 0 : index(*owner);
      changed = changed || next.of[shard] != was;
    }
  }
  if (!changed) return;
  next.owners = std::move(kept);
  for (const std::uint32_t shard : given)
    if (mine_.erase(shard) != 0) out_.let_go(shard);
  write(std::move(next));
}

void shard_member::step() {
  renew();
  read_table();
  look_at_leases();
  take_and_give(false);
}

void shard_member::leave() {
  // Somebody else may write just then.
  for (int tries = 0; tries < 10 && lease_ != 0; ++tries) {
    read_table();
    take_and_give(true);
    if (std::none_of(table_.owners.begin(), table_.owners.end(), [&](const shard_owner& o) { return is_me(o); })) break;
  }
  if (lease_ != 0) store_.update(lease_key(me_.node), std::string{over}, lease_);
  forget_lease();
}

}  // namespace ramie::detail
