// Several actors of a class as one.
#pragma once

#include <ramie/base/atomic.hpp>
#include <ramie/base/random.hpp>
#include <ramie/patterns/first_answer.hpp>
#include <ramie/patterns/recipient.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace ramie {

/// Which member of a router gets a message.
enum class routing {
  round_robin,
  random,
  least_mail,       // the one with the fewest messages in its mailbox, of equals the next in turn
  consistent_hash,  // by a key: the same key goes to the same member, and few keys move when members come or go
};

/// Sends each message to one of several actors of class A, or to all. Members that have ended are dropped. A member
/// whose mailbox is full holds up nobody while another one has room; but by consistent hash a key's member is waited
/// for. Thread-safe.
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
  /// Those that live. Throws std::bad_alloc.
  [[nodiscard]] std::vector<actor_ref<A>> members() {
    std::lock_guard guard{lock_};
    std::erase_if(members_, [](const actor_ref<A>& m) { return !m.alive(); });
    return members_;
  }
  /// Makes them `n`: adds what make() returns, or takes out the latest and stops them, which lets them handle what they
  /// have been sent. One call at a time. Suspends, and throws, as `make` does.
  template <std::invocable Make>
    requires(std::convertible_to<std::invoke_result_t<Make&>, actor_ref<A>>)
  void resize(std::size_t n, Make make) {
    std::vector<actor_ref<A>> all = members();
    for (std::size_t i = all.size(); i < n; ++i) add(make());
    for (; all.size() > n; all.pop_back()) {
      remove(all.back());
      all.back().stop();
    }
  }

  /// Sends `m` to the member whose turn it is, or, if its mailbox is full, to the next one with room; if there is none,
  /// it waits as actor_ref::tell does. tell_status::down if there is no member. Throws usage_error for a router by
  /// consistent hash: it needs a key.
  template <class T>
  tell_status tell(T&& m) {
    using M = detail::message_for<A, T>;
    if constexpr (std::is_move_constructible_v<M> && std::is_move_assignable_v<M>) {
      M body(std::forward<T>(m));
      for (;;) {
        const choice to = pick(std::nullopt);
        if (!to.member) return tell_status::down;
        if (!to.has_room) return to.member->tell(std::move(body));
        const tell_status became = to.member->try_tell(std::move(body));
        if (became != tell_status::full || !to.member->cell()->blocks_senders()) return became;
      }
    } else {
      const choice to = pick(std::nullopt);
      return to.member ? to.member->tell(std::forward<T>(m)) : tell_status::down;
    }
  }
  /// To the member of `key`, which is hashed by std::hash, as actor_ref::tell. A router with another policy does not
  /// look at it.
  template <class Key, class T>
  tell_status tell(const Key& key, T&& m) {
    const choice to = pick(std::hash<Key>{}(key));
    return to.member ? to.member->tell(std::forward<T>(m)) : tell_status::down;
  }
  /// A copy to each member; those whose mailboxes are full do not get it. Does not suspend. Throws std::bad_alloc, and
  /// what copying throws.
  template <class T>
  published broadcast(const T& m) {
    published became;
    for (const actor_ref<A>& member : members()) {
      const tell_status status = member.try_tell(T(m));
      if (status == tell_status::ok) ++became.taken;
      else if (status != tell_status::down) ++became.refused;
    }
    return became;
  }

  /// Same as actor_ref::ask, of a member that is chosen as by `tell`; actor_down if there is none.
  template <class T>
  auto ask(T&& m) {
    return need(std::nullopt).ask(std::forward<T>(m));
  }
  template <class Key, class T>
  auto ask(const Key& key, T&& m) {
    return need(std::hash<Key>{}(key)).ask(std::forward<T>(m));
  }
  /// The same; timeout_error after `timeout`.
  template <class T>
  auto ask_for(std::chrono::nanoseconds timeout, T&& m) {
    return need(std::nullopt).ask_for(timeout, std::forward<T>(m));
  }
  /// Asks each member that has room, and returns the first answer; later ones are dropped. If none answers, throws what
  /// the last one failed with, as actor_ref::ask does. Throws what copying `m` throws.
  template <class T>
  auto ask_first(const T& m) {
    return ask_all(m).get();
  }
  /// The same; timeout_error after `timeout`.
  template <class T>
  auto ask_first_for(std::chrono::nanoseconds timeout, const T& m) {
    auto first = ask_all(m);
    if (first.wait_for(timeout) == std::future_status::timeout) detail::throw_ask_timeout();
    return first.get();
  }

 private:
  struct choice {
    std::optional<actor_ref<A>> member{};
    bool has_room = true;
  };

  actor_ref<A> need(std::optional<std::size_t> key) {
    choice to = pick(key);
    if (!to.member) throw actor_down{exit_reason{exit_kind::stopped}};
    return *std::move(to.member);
  }

  template <class T>
  auto ask_all(const T& m) {
    using M = detail::message_for<A, T>;
    const std::vector<actor_ref<A>> all = members();
    if (all.empty()) throw actor_down{exit_reason{exit_kind::stopped}};
    return detail::ask_each<A, M>(all, m);
  }

  choice pick(std::optional<std::size_t> key) {
    if (policy_ == routing::consistent_hash && !key)
      throw usage_error{"ramie: router: with consistent hashing a message needs a key: tell(key, message)"};
    std::lock_guard guard{lock_};
    while (!members_.empty()) {
      const std::size_t at = choose(key);
      if (members_[at].alive()) return policy_ == routing::consistent_hash ? choice{members_[at]} : with_room(at);
      members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(at));
    }
    return {};
  }

  /// The member there, or the next that has room; or that one, if none has.
  choice with_room(std::size_t at) const {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      const actor_ref<A>& m = members_[(at + i) % members_.size()];
      if (m.cell()->has_room() && (i == 0 || m.alive())) return {m};
    }
    return {members_[at], false};
  }

  std::size_t choose(std::optional<std::size_t> key) {
    if (policy_ == routing::consistent_hash) return highest(*key);
    if (policy_ == routing::random) return random_.below(static_cast<std::uint32_t>(members_.size()));
    const std::size_t turn = turn_++ % members_.size();
    return policy_ == routing::round_robin ? turn : least_mail(turn);
  }

  [[nodiscard]] std::size_t least_mail(std::size_t turn) const {
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
  detail::random_source random_{0x9e3779b97f4a7c15u};
};

}  // namespace ramie
