#include "server/core.hpp"

#include <ramie/channel.hpp>
#include <ramie/runtime.hpp>

#include <chrono>
#include <mutex>
#include <utility>

namespace ramie::http {

namespace {

net::endpoint peer_of(const net::socket_stream* s) noexcept {
  try {
    if (s != nullptr) return s->peer();
  } catch (const net::io_error&) {
    // It is gone already.
  }
  return {};
}

}  // namespace

connection::connection(server_core& of, net::any_stream s, newcomer* from, bool is_encrypted)
    : wire{std::move(s), of.limits.header_most, of.limits.write_time},
      core{of},
      encrypted{is_encrypted},
      from_{from},
      takes_room_{from != nullptr},
      socket_{from != nullptr ? from : stream.socket()},
      peer_{peer_of(socket_)} {
  const std::lock_guard locked{core.lock};
  core.all.insert(this);
}

connection::~connection() {
  const std::lock_guard locked{core.lock};
  core.all.erase(this);
}

bool connection::end_for_room() noexcept {
  if (change(state::idle, state::ended)) stream.close();
  else if (change(state::resting, state::ended)) leaves.set();
  else return false;
  return true;
}

void newcomer::join_queue(server_core& of) {
  {
    const std::lock_guard locked{of.lock};
    place_ = of.unfinished.insert(of.unfinished.end(), this);
    queue_of_ = &of;
    came_at_ = of.requests.load(std::memory_order_relaxed);
  }
  of.displace_oldest(of.limits.unfinished_most);
}

void newcomer::leave_queue() noexcept {
  if (queue_of_ == nullptr) return;
  const std::lock_guard locked{queue_of_->lock};
  if (place_) queue_of_->unfinished.erase(*place_);
  place_.reset();
}

void server_core::close_oldest() noexcept {
  newcomer& oldest = *unfinished.front();
  unfinished.pop_front();
  oldest.place_.reset();
  displaced.fetch_add(1, std::memory_order_relaxed);
  oldest.close();  // under the lock, so that it is still there
}

void server_core::displace_oldest(std::size_t most) noexcept {
  const std::lock_guard locked{lock};
  if (unfinished.size() > most) close_oldest();
}

/// E3.
void server_core::make_room() noexcept {
  const std::lock_guard locked{lock};
  connection* idle = nullptr;
  for (connection* c : all)
    if (c->may_end_for_room() && (idle == nullptr || c->used_at() < idle->used_at())) idle = c;
  const bool are_many = unfinished.size() >= limits.unfinished_most / 2;
  if (!unfinished.empty() && (are_many || idle == nullptr || unfinished.front()->came_at_ <= idle->used_at()))
    close_oldest();
  else if (idle != nullptr && idle->end_for_room()) displaced.fetch_add(1, std::memory_order_relaxed);
}

bool server_core::wait_for_room() {
  constexpr std::chrono::milliseconds patience{20};  // what was ended needs a moment to be gone; a guess
  while (!room.try_acquire()) {
    make_room();
    bool has_room = false, stop = false;
    select(on_acquire(room, [&] { has_room = true; }), on_ready(stopped, [&] { stop = true; }),
           on_timeout(patience, [] {}));
    if (stop) return false;
    if (has_room) break;
  }
  return true;
}

namespace {

constexpr std::chrono::milliseconds look_interval{500};  // a guess
constexpr int ends_enough = 3;

}  // namespace

void server_core::look_round() {
  constexpr int look_most = 500;  // under one lock
  while (!stopped.wait_for(look_interval)) {
    const auto now = std::chrono::steady_clock::now();
    connection* last = nullptr;
    for (bool is_whole = false; !is_whole; this_fiber::yield()) {
      const std::lock_guard locked{lock};
      // Another listener has a fiber that looks, too.
      if (last == nullptr && now - std::exchange(looked_at_, now) < look_interval / 2) break;
      auto at = all.upper_bound(last);
      for (int n = 0; at != all.end() && n < look_most; ++at, ++n) (last = *at)->look_for_client(now);
      is_whole = at == all.end();
    }
  }
}

void connection::look_for_client(std::chrono::steady_clock::time_point now) noexcept {
  const std::uint64_t steps = steps_.load(std::memory_order_relaxed);
  if (!is_watched.load(std::memory_order_relaxed) || socket_ == nullptr || state_.load() != state::busy ||
      std::exchange(steps_seen_, steps) != steps) {
    ends_seen_ = 0;
    return;
  }
  switch (socket_->peer_is()) {
    case net::peer_state::sends: ends_seen_ = 0; break;
    case net::peer_state::is_gone: life.cancel(); break;
    case net::peer_state::ended:
      if (ends_seen_++ == 0) ended_at_ = now;
      if (ends_seen_ >= ends_enough && now - ended_at_ >= core.limits.half_close_grace) life.cancel();
      break;
  }
}

}  // namespace ramie::http
