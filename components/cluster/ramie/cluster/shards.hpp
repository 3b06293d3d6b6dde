// Actors by key, on whichever node has their shard.
#pragma once

#include <ramie/cluster/remote.hpp>
#include <ramie/cluster/wire.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace ramie {

/// All nodes that use a set of shards give the same ones.
struct shard_options {
  /// Keys are spread over so many shards; 1 to 4096. It stays as it is for ever.
  std::uint32_t count = 256;
  /// A node that does not renew its lease for so long has lost its shards. At least 500 ms.
  std::chrono::milliseconds lease{5000};
  /// An actor that gets no message for so long is stopped; it is started anew by its next one. 0: never.
  std::chrono::milliseconds passivate_after{60'000};
};

/// The right to act for a shard. Copyable; any thread.
class shard_lease {
 public:
  /// Larger than that of any owner of this shard before. Who writes elsewhere hands it along, and what is written to
  /// refuses a token that is smaller than one that it has seen: this node may be frozen between the check and the
  /// write.
  [[nodiscard]] std::uint64_t token() const noexcept { return token_; }
  /// False: another node may have the shard. Asks the clock.
  [[nodiscard]] bool held() const noexcept {
    return std::chrono::steady_clock::now().time_since_epoch().count() < until_->load(std::memory_order_acquire);
  }

  /// Internal.
  shard_lease(std::uint64_t token, std::shared_ptr<const std::atomic<std::int64_t>> until) noexcept
      : token_{token}, until_{std::move(until)} {}

 private:
  std::uint64_t token_;
  std::shared_ptr<const std::atomic<std::int64_t>> until_;  // ns of the steady clock
};

/// What the constructor of an actor of a shard is given.
struct shard_key {
  std::string key;
  shard_lease lease;
};

/// It was not held any more when a message came: the actor ends with this.
class lease_lost : public error {
 public:
  using error::error;
};

struct shard_info {
  std::string node;  // empty: nobody's just now
  std::uint64_t token = 0;
};

namespace detail {

class shards_core;

/// In front of the handlers of an actor of a shard: no message of `remote` is handled without the lease.
template <class A, class List>
struct lease_guard;
template <class A, class M>
struct lease_guard_of : substitute<M, reply_of<A, M>> {
  reply_of<A, M> call(M& /*m*/) override {
    throw lease_lost{"ramie: cluster: the lease of this actor's shard is over; another node may have it"};
  }
};
template <class A, class... Ms>
struct lease_guard<A, messages<Ms...>> final : behaviour, private lease_guard_of<A, Ms>... {
  explicit lease_guard(shard_lease l) : lease{std::move(l)} {}
  void* find(const type_info& message) noexcept override {
    if (lease.held()) return nullptr;
    void* found = nullptr;
    static_cast<void>(
        ((message == type_of<Ms>()
              ? (found = static_cast<substitute<Ms, reply_of<A, Ms>>*>(static_cast<lease_guard_of<A, Ms>*>(this)), true)
              : false) ||
         ...));
    return found;
  }
  shard_lease lease;
};

template <class A>
any_actor start_in_shard(const shard_key& key) {
  const actor_options options{.name = key.key};
  return make_actor<A, A>(&options, [&](actor_cell& c) {
    ::new (c.state()) A(key);
    change_behaviour(c, std::make_shared<lease_guard<A, typename A::remote>>(key.lease));
  });
}

struct shard_calls {
  static void tell(shards_core& s, std::string_view key, std::string_view name, std::string_view bytes);
  static std::string ask(shards_core& s, std::string_view key, std::string_view name, std::string_view bytes,
                         std::chrono::nanoseconds timeout);
  static std::vector<shard_info> owners(shards_core& s);
  static std::uint32_t shard_of(const shards_core& s, std::string_view key) noexcept;
  static wire_refs& refs(shards_core& s) noexcept;
};

}  // namespace detail

/// An actor by its key. It is there when it is sent something. Copyable; by fibers.
template <class A>
class shard_ref {
 public:
  /// In order from here to there while the shard stays where it is. Suspends while the shard is nobody's, for two
  /// leases at most; then cluster_error. What is under way when its node is lost, or the shard moves, may or may not be
  /// handled; what is in the actor's mailbox when a handler throws is lost with the actor, and a new one takes what
  /// comes later. Throws wire_error; usage_error if the class has no such message in `remote`.
  template <class T>
  void tell(T&& m) const {
    using M = detail::message_for<A, T>;
    detail::shard_calls::tell(*core_, key_, wire_name<M>(),
                              to_wire<M>(std::forward<T>(m), &detail::shard_calls::refs(*core_)));
  }
  /// Suspends until there is an answer. Throws timeout_error; actor_down if the actor, or its node, ended meanwhile:
  /// then the message may or may not have been handled; remote_failure with the text of what the handler threw.
  template <class T>
  auto ask_for(std::chrono::nanoseconds timeout, T&& m) const {
    using M = detail::message_for<A, T>;
    using R = detail::answer_of<A, M>;
    wire_refs& refs = detail::shard_calls::refs(*core_);
    const std::string bytes =
        detail::shard_calls::ask(*core_, key_, wire_name<M>(), to_wire<M>(std::forward<T>(m), &refs), timeout);
    if constexpr (!std::is_void_v<R>) {
      R value{};
      detail::wire_reader r{bytes, &refs};
      detail::read_answer<R>(r, value);
      return value;
    }
  }
  [[nodiscard]] const std::string& key() const noexcept { return key_; }

  /// Internal.
  shard_ref(std::shared_ptr<detail::shards_core> core, std::string key) noexcept
      : core_{std::move(core)}, key_{std::move(key)} {}

 private:
  std::shared_ptr<detail::shards_core> core_;
  std::string key_;
};

/// Actors of class A by key, each on one node: from cluster::shards. Copies are the same. By fibers, and not when the
/// cluster is gone.
template <class A>
class cluster_shards {
 public:
  /// Does not suspend. Any text.
  [[nodiscard]] shard_ref<A> of(std::string_view key) const { return {core_, std::string{key}}; }
  [[nodiscard]] std::uint32_t shard_of(std::string_view key) const noexcept {
    return detail::shard_calls::shard_of(*core_, key);
  }
  /// The owner of each shard, as far as this node knows. Does not suspend.
  [[nodiscard]] std::vector<shard_info> owners() const { return detail::shard_calls::owners(*core_); }

  /// Internal.
  explicit cluster_shards(std::shared_ptr<detail::shards_core> core) noexcept : core_{std::move(core)} {}

 private:
  std::shared_ptr<detail::shards_core> core_;
};

}  // namespace ramie
