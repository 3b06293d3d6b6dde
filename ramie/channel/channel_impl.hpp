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
  if (size() == core_.capacity) return channel_status::full;
  append(value);
  return channel_status::ok;
}

template <class T>
RAMIE_ALWAYS_INLINE channel_status channel<T>::take(std::optional<T>& got, detail::operation*& served) {
  if (size() != 0) {
    got.emplace(std::move(ring_[core_.head]));
    drop_oldest();
    if (core_.senders.count() != 0) [[unlikely]]
      served = take_in();
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

/// A place became free: the sender who waits longest fills it. If its element throws, it may do that in its own call.
template <class T>
detail::operation* channel<T>::take_in() noexcept {
  detail::operation* o = core_.senders.claim_first();
  if (o == nullptr) return nullptr;
  o->result = detail::operation::outcome::done;
  if constexpr (std::is_nothrow_move_constructible_v<T>) {
    append(*static_cast<T*>(o->slot));
  } else {
    try {
      append(*static_cast<T*>(o->slot));
    } catch (...) {
      o->result = detail::operation::outcome::retry;
    }
  }
  return o;
}

template <class T>
template <class Suspend>
RAMIE_ALWAYS_INLINE channel_status channel<T>::send_with(T& value, const std::source_location& where, Suspend suspend) {
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
    switch (detail::wait_in_line(core_, core_.senders, mine, guard, pause, suspend)) {
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
    switch (detail::wait_in_line(core_, core_.receivers, mine, guard, pause, suspend)) {
      case channel_status::ok: return channel_status::ok;
      case channel_status::closed: return channel_status::closed;
      case channel_status::timeout: return channel_status::timeout;
      default: break;
    }
  }
}

}  // namespace ramie
