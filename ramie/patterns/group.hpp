// Several actors as one: groups that publish to all members, routers that pick one.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/patterns/recipient.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace ramie {

/// Actors of any classes that take messages of type M. Thread-safe. Not copyable: share it by reference or
/// std::shared_ptr.
template <class M>
class group {
 public:
  group() = default;
  group(const group&) = delete;
  group& operator=(const group&) = delete;

  /// Adds `member`; adding it again has no effect. Does not suspend. Throws std::bad_alloc.
  void join(recipient<M> member) {
    std::lock_guard guard{lock_};
    if (std::find(members_.begin(), members_.end(), member) == members_.end()) members_.push_back(std::move(member));
  }
  /// False if it was no member. Does not suspend.
  bool leave(const any_actor& member) {
    std::lock_guard guard{lock_};
    return std::erase_if(members_, [&](const recipient<M>& m) { return m == member; }) != 0;
  }
  /// Sends a copy to each member; drops members that have ended. Returns how many took it. Suspends only where a
  /// member's bounded mailbox blocks senders. Throws std::bad_alloc, `cancelled`.
  std::size_t publish(const M& m) {
    std::vector<recipient<M>> now;
    {
      std::lock_guard guard{lock_};
      now = members_;
    }
    std::size_t taken = 0;
    for (const recipient<M>& member : now) {
      const tell_status status = member.tell(m);
      if (status == tell_status::ok) ++taken;
      else if (status == tell_status::down) leave(member);
    }
    return taken;
  }
  [[nodiscard]] std::size_t size() const {
    std::lock_guard guard{lock_};
    return members_.size();
  }

 private:
  mutable detail::os_mutex lock_;  // held for copying only
  std::vector<recipient<M>> members_;
};

/// Which member of a router gets a message.
enum class routing {
  round_robin,
  least_mail,       // the one with the fewest messages in its mailbox, of equals the next in turn
  consistent_hash,  // by a key: the same key goes to the same member, and few keys move when members come or go
};

/// Sends each message to one of several actors of class A. Thread-safe.
template <class A>
class router {
 public:
  explicit router(routing policy = routing::round_robin, std::vector<actor_ref<A>> members = {})
      : policy_{policy}, members_{std::move(members)} {}
  router(const router&) = delete;
  router& operator=(const router&) = delete;

  /// Adds `member`; one that is added twice gets two shares. Does not suspend. Throws std::bad_alloc.
  void add(actor_ref<A> member) {
    std::lock_guard guard{lock_};
    members_.push_back(std::move(member));
  }
  /// False if it was no member. Does not suspend.
  bool remove(const any_actor& member) {
    std::lock_guard guard{lock_};
    return std::erase_if(members_, [&](const actor_ref<A>& m) { return m == member; }) != 0;
  }
  [[nodiscard]] std::size_t size() const {
    std::lock_guard guard{lock_};
    return members_.size();
  }

  /// Sends `m` to the member whose turn it is; members that have ended are dropped. tell_status::down if there is none.
  /// Otherwise as actor_ref::tell. Throws usage_error for a router by consistent hash: it needs a key.
  template <class T>
  tell_status tell(T&& m) {
    const std::optional<actor_ref<A>> to = pick(std::nullopt);
    return to ? to->tell(std::forward<T>(m)) : tell_status::down;
  }
  /// The same by `key`, which is hashed by std::hash. A router with another policy does not look at it.
  template <class Key, class T>
  tell_status tell(const Key& key, T&& m) {
    const std::optional<actor_ref<A>> to = pick(std::hash<Key>{}(key));
    return to ? to->tell(std::forward<T>(m)) : tell_status::down;
  }
  /// Same as actor_ref::ask; actor_down if there is no member, usage_error as for `tell`.
  template <class T>
  auto ask(T&& m) {
    return need(pick(std::nullopt)).ask(std::forward<T>(m));
  }
  template <class Key, class T>
  auto ask(const Key& key, T&& m) {
    return need(pick(std::hash<Key>{}(key))).ask(std::forward<T>(m));
  }

 private:
  static actor_ref<A> need(std::optional<actor_ref<A>> to) {
    if (!to) throw actor_down{exit_reason{exit_kind::stopped}};
    return *std::move(to);
  }

  std::optional<actor_ref<A>> pick(std::optional<std::size_t> key) {
    if (policy_ == routing::consistent_hash && !key)
      throw usage_error{"ramie: router: with consistent hashing a message needs a key: tell(key, message)"};
    std::lock_guard guard{lock_};
    while (!members_.empty()) {
      const std::size_t at = choose(key);
      if (members_[at].alive()) return members_[at];
      members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(at));
    }
    return std::nullopt;
  }

  std::size_t choose(std::optional<std::size_t> key) {
    if (policy_ == routing::consistent_hash) return highest(*key);
    const std::size_t turn = turn_++ % members_.size();
    if (policy_ == routing::round_robin) return turn;
    std::size_t best = turn;
    std::size_t least = members_[turn].mail_count();
    for (std::size_t i = 1; i < members_.size() && least != 0; ++i) {
      const std::size_t at = (turn + i) % members_.size();
      if (const std::size_t n = members_[at].mail_count(); n < least) {
        best = at;
        least = n;
      }
    }
    return best;
  }

  /// Highest random weight (D. Thaler, C. Ravishankar, 1998): each member draws a number for the key, the highest wins.
  /// When a member goes, only its own keys move.
  [[nodiscard]] std::size_t highest(std::size_t key) const {
    std::size_t best = 0;
    std::uint64_t most = 0;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      const std::uint64_t drawn = mix(key ^ mix(reinterpret_cast<std::uintptr_t>(members_[i].cell())));
      if (drawn >= most) {
        best = i;
        most = drawn;
      }
    }
    return best;
  }
  static std::uint64_t mix(std::uint64_t x) noexcept {  // the finaliser of MurmurHash3; A. Appleby
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdu;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53u;
    return x ^ (x >> 33);
  }

  routing policy_;
  mutable detail::os_mutex lock_;  // held for picking only
  std::vector<actor_ref<A>> members_;
  std::size_t turn_ = 0;
};

}  // namespace ramie
