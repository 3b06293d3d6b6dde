// The members of channel that do the work; core.hpp has the protocol.
#pragma once

#include <ramie/channel/channel.hpp>

namespace ramie {

template <class T>
RAMIE_ALWAYS_INLINE channel_status channel<T>::give(T& value, detail::operation*& served) {
  if (core_.closed.load(std::memory_order_relaxed)) [[unlikely]]
    return channel_status::closed;
  if (detail::operation* o = core_.receivers.claim_first(); o != nullptr) {
    detail::hand_over(
        *o, [&]() RAMIE_LAMBDA_INLINE { static_cast<std::optional<T>*>(o->slot)->emplace(std::move(value)); },
        std::is_nothrow_move_constructible<T>{});
    served = o;
    return channel_status::ok;
  }
  // The first test spares a rendezvous the call.
  if (size() == core_.places && (core_.places == core_.capacity || !grow())) return channel_status::full;
  append(value);
  return channel_status::ok;
}

template <class T>
RAMIE_ALWAYS_INLINE channel_status channel<T>::take(std::optional<T>& got, detail::operation*& served) {
  if (size() != 0) {
    got.emplace(std::move(ring_[core_.head]));
    if (core_.senders.count() != 0) [[unlikely]]
      served = take_in();
    else drop_oldest();
    return channel_status::ok;
  }
  if (detail::operation* o = core_.senders.claim_first(); o != nullptr) {
    detail::hand_over(
        *o, [&]() RAMIE_LAMBDA_INLINE { got.emplace(std::move(*static_cast<T*>(o->slot))); },
        std::is_nothrow_move_constructible<T>{});
    served = o;
    return channel_status::ok;
  }
  return core_.closed.load(std::memory_order_relaxed) ? channel_status::closed : channel_status::empty;
}

/// All places are taken: makes more, in an unbounded channel. False if it is full.
template <class T>
bool channel<T>::grow() {
  if constexpr (std::is_nothrow_move_constructible_v<T>) {
    constexpr std::size_t first = 16;
    const std::size_t before = core_.places;
    if (before == core_.capacity) return false;
    const std::size_t after = std::min(before == 0 ? first : before * 2, core_.capacity);
    T* const larger = std::allocator<T>{}.allocate(after);
    for (std::size_t i = 0; i < before; ++i) {
      T& element = ring_[core_.head + i < before ? core_.head + i : core_.head + i - before];
      std::construct_at(larger + i, std::move(element));
      std::destroy_at(&element);
    }
    if (ring_ != nullptr) std::allocator<T>{}.deallocate(ring_, before);
    ring_ = larger;
    core_.head = 0;
    core_.places = after;
    return true;
  } else {
    return false;
  }
}

/// The oldest element was moved out: the sender that has waited longest fills a place before that one becomes free, so
/// the buffer never looks empty meanwhile (C8). If its element throws, it may throw in the sender's own call; then
/// there is room although other senders wait.
template <class T>
detail::operation* channel<T>::take_in() noexcept {
  detail::operation* o = core_.senders.claim_first();
  if (o == nullptr) {
    drop_oldest();
    return nullptr;
  }
  o->result = detail::operation::outcome::done;
  bool oldest_gone = false;
  const auto fill = [&] {
    T& element = *static_cast<T*>(o->slot);
    if (size() != core_.places) {
      append(element);
      drop_oldest();
      return;
    }
    T* const place = ring_ + core_.head;
    if (++core_.head == core_.places) core_.head = 0;
    std::destroy_at(place);
    oldest_gone = true;
    std::construct_at(place, std::move(element));
  };
  if constexpr (std::is_nothrow_move_constructible_v<T>) {
    fill();
  } else {
    try {
      fill();
    } catch (...) {
      if (oldest_gone) core_.size.decrease();
      else drop_oldest();
      o->result = detail::operation::outcome::retry;
    }
  }
  return o;
}

template <class T>
template <class Suspend>
RAMIE_ALWAYS_INLINE channel_status channel<T>::send_with(T& value, const std::source_location& where, Suspend suspend) {
  detail::ready_point();
  for (;;) {
    detail::operation* served = nullptr;
    detail::channel_guard guard{core_};
    const channel_status status = give(value, served);
    if (status != channel_status::full) [[likely]] {
      guard.unlock_and_release(served);
      return status;
    }
    detail::operation mine;
    mine.slot = std::addressof(value);
    const detail::wait_site site{"channel send", where};
    detail::wait pause{detail::wait::kind::cancellable, site, detail::wait::wakers::under_one_lock};
    switch (detail::wait_in_line(core_, core_.senders, mine, guard, pause, suspend,
                                 [this, &value, where, suspend] { return send_with(value, where, suspend); })) {
      case channel_status::ok: return channel_status::ok;
      case channel_status::closed: return channel_status::closed;
      case channel_status::timeout: return channel_status::timeout;
      default: break;
    }
  }
}

template <class T>
template <class Suspend>
RAMIE_ALWAYS_INLINE channel_status channel<T>::recv_with(std::optional<T>& got, const std::source_location& where,
                                                         Suspend suspend) {
  detail::ready_point();
  for (;;) {
    detail::operation* served = nullptr;
    detail::channel_guard guard{core_};
    const channel_status status = take(got, served);
    if (status != channel_status::empty) [[likely]] {
      guard.unlock_and_release(served);
      return status;
    }
    detail::operation mine;
    mine.slot = std::addressof(got);
    const detail::wait_site site{"channel receive", where};
    detail::wait pause{detail::wait::kind::cancellable, site, detail::wait::wakers::under_one_lock};
    switch (detail::wait_in_line(core_, core_.receivers, mine, guard, pause, suspend,
                                 [this, &got, where, suspend] { return recv_with(got, where, suspend); })) {
      case channel_status::ok: return channel_status::ok;
      case channel_status::closed: return channel_status::closed;
      case channel_status::timeout: return channel_status::timeout;
      default: break;
    }
  }
}

}  // namespace ramie
