// See link.hpp.
#include <ramie/cluster/link.hpp>

#include <ramie/base/assert.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace ramie::detail {

namespace {
constexpr char magic[6] = {'r', 'a', 'm', 'i', 'e', 1};  // the last is the version
}

void frame_head::append_to(std::string& bytes) const {
  static_assert(std::endian::native == std::endian::little);
  char head[size]{};
  std::memcpy(head, magic, sizeof(magic));
  head[6] = static_cast<char>(kind);
  const std::uint64_t fields[] = {from_epoch, to_epoch, number, acknowledged, credit};
  static_assert(8 + sizeof(fields) == size);
  std::memcpy(head + 8, fields, sizeof(fields));
  bytes.append(head, size);
}

bool frame_head::read(std::string_view bytes) noexcept {
  if (bytes.size() < size || std::memcmp(bytes.data(), magic, sizeof(magic)) != 0) return false;
  const auto k = static_cast<std::uint8_t>(bytes[6]);
  if (k > static_cast<std::uint8_t>(what::gap)) return false;
  kind = static_cast<what>(k);
  std::uint64_t fields[5];
  std::memcpy(fields, bytes.data() + 8, sizeof(fields));
  from_epoch = fields[0];
  to_epoch = fields[1];
  number = fields[2];
  acknowledged = fields[3];
  credit = fields[4];
  return from_epoch != 0;
}

void node_link::put_head(std::string& frame, frame_head::what kind, std::uint64_t number) const {
  frame_head h;
  h.kind = kind;
  h.from_epoch = epoch_;
  h.to_epoch = peer_;
  h.number = number;
  h.acknowledged = mistake_ == link_mistake::acked_too_early ? std::max(taken_, seen_) : taken_;
  h.credit = taken_bytes_;
  if (mistake_ == link_mistake::credit_lost && kind != frame_head::what::hello) h.credit = set_.window_bytes;
  h.append_to(frame);
}

void node_link::put(frame_head::what kind, std::string_view payload, bool probe) {
  std::string frame;
  frame.reserve(frame_head::size + payload.size());
  put_head(frame, kind, sent_);
  frame.append(payload);
  out_.send(frame, probe);
}

void node_link::send(std::string_view payload, duration now) {
  RAMIE_ASSERT(open_, "node_link::send: the link is not open");
  if (kept_.empty()) progress_ = now;
  std::string frame;
  frame.reserve(frame_head::size + payload.size());
  put_head(frame, frame_head::what::data, ++sent_);
  frame.append(payload);
  sent_bytes_ += payload.size();
  kept_.push_back({sent_, std::move(frame)});
  owes_ = false;
  unanswered_bytes_ = 0;
  out_.send(kept_.back().frame, false);
}

void node_link::resend(duration now) {
  progress_ = now;
  if (mistake_ == link_mistake::not_resent) return;
  for (kept& k : kept_) {
    // The head says what is known now: an old acknowledgement would be right, but old credit might be lost for long.
    std::string frame;
    frame.reserve(k.frame.size());
    put_head(frame, frame_head::what::data, k.number);
    frame.append(k.frame, frame_head::size);
    out_.send(frame, false);
  }
}

void node_link::take_acknowledgement(const frame_head& h, duration now) {
  if (h.acknowledged > sent_) return;
  while (!kept_.empty() && kept_.front().number <= h.acknowledged) {
    kept_.pop_front();
    progress_ = now;
    resend_wait_ = set_.resend_after;
  }
  credit_ = std::max(credit_, h.credit);
}

void node_link::take_data(const frame_head& h, std::string_view payload, duration now) {
  if (!owes_) owes_since_ = now;
  owes_ = true;
  seen_ = std::max(seen_, h.number);
  if (h.number != taken_ + 1) {
    if (h.number <= taken_) {
      if (mistake_ == link_mistake::duplicates_delivered) out_.deliver(payload);
      unanswered_bytes_ = frame_bytes * 2;  // its sender waits for the acknowledgement, it seems
    } else if (!std::exchange(told_gap_, true)) {
      put(frame_head::what::gap, {}, false);
    }
    return;
  }
  told_gap_ = false;
  ++taken_;
  unanswered_bytes_ += payload.size();
  out_.deliver(payload);
}

void node_link::received(std::string_view frame, duration now) {
  frame_head h;
  if (!h.read(frame)) return;
  if (mistake_ != link_mistake::epoch_ignored) {
    if (h.from_epoch < peer_) return;
    if (h.from_epoch > peer_) {
      if (open_) begin_epoch(h.from_epoch, now);
      peer_ = h.from_epoch;
    }
    if (h.to_epoch != epoch_) {
      // Each side may have an old guess of the other: what matters is that the newer epochs get across.
      put(frame_head::what::hello, {}, false);
      return;
    }
  } else if (!open_) {
    peer_ = h.from_epoch;
  }
  heard_ = now;
  refused_since_ = duration::max();
  if (!open_) {
    open_ = true;
    resend_wait_ = set_.resend_after;
    progress_ = now;
    owes_ = true;  // so that the peer hears that it is open here
    owes_since_ = now;
    credit_ = h.credit;
    const std::uint64_t before = epoch_;
    out_.opened();
    if (epoch_ != before) return;
    if (h.kind == frame_head::what::hello) put(frame_head::what::acknowledge, {}, false);
  }
  take_acknowledgement(h, now);
  if (h.kind == frame_head::what::data) {
    take_data(h, frame.substr(frame_head::size), now);
  } else if (h.kind == frame_head::what::gap) {
    resend(now);
  } else if (h.number > taken_ && !std::exchange(told_gap_, true)) {
    put(frame_head::what::gap, {}, false);  // all that came behind is lost, too
  }
}

void node_link::idle(duration now) {
  if (!open_ || !owes_) return;
  if (unanswered_bytes_ < 2 * frame_bytes && now - owes_since_ < set_.acknowledge_after) return;
  owes_ = false;
  unanswered_bytes_ = 0;
  put(frame_head::what::acknowledge, {}, false);
}

void node_link::refused(duration now) {
  if (now < refusals_count_from_) return;
  if (refused_since_ == duration::max()) refused_since_ = now;
  if (now - refused_since_ >= set_.refused_after) {
    end(now);
  } else {
    last_put_ = now - (open_ ? set_.heartbeat : set_.hello) + set_.refused_after / 3;
  }
}

void node_link::reconnected(duration now) {
  refusals_count_from_ = now + set_.refused_pause;
  refused_since_ = duration::max();
  put(open_ ? frame_head::what::heartbeat : frame_head::what::hello, {}, false);
  if (open_) resend(now);
}

void node_link::tick(duration now) {
  if (now - heard_ >= set_.lost_after) end(now);
  const duration every = open_ ? set_.heartbeat : set_.hello;
  if (last_put_ == duration::min() || now - last_put_ >= every) {
    last_put_ = now;
    told_gap_ = false;
    put(open_ ? frame_head::what::heartbeat : frame_head::what::hello, {}, true);
  }
  if (open_ && !kept_.empty() && now - progress_ >= resend_wait_) {
    resend(now);
    resend_wait_ = std::min(2 * resend_wait_, set_.lost_after / 2);  // the network may only be slow
  }
  idle(now);
}

node_link::duration node_link::next_tick() const noexcept {
  if (last_put_ == duration::min()) return duration::min();
  duration next = std::min(heard_ + set_.lost_after, last_put_ + (open_ ? set_.heartbeat : set_.hello));
  if (open_ && !kept_.empty()) next = std::min(next, progress_ + resend_wait_);
  if (open_ && owes_) next = std::min(next, owes_since_ + set_.acknowledge_after);
  return next;
}

void node_link::end(duration now) {
  heard_ = now;
  begin_epoch(0, now);
}

void node_link::begin_epoch(std::uint64_t peer, duration now) {
  open_ = false;
  ++epoch_;
  peer_ = std::max(peer, peer_);
  kept_.clear();
  sent_ = sent_bytes_ = credit_ = taken_ = seen_ = 0;
  taken_bytes_ = set_.window_bytes;
  unanswered_bytes_ = 0;
  owes_ = told_gap_ = false;
  refused_since_ = duration::max();
  last_put_ = duration::min();
  progress_ = now;
  resend_wait_ = set_.resend_after;
  out_.lost();
}

}  // namespace ramie::detail
