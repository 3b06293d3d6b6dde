// Keys, values and when they expire.
#pragma once

#include "protocol.hpp"

#include <ramie/ramie.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace redis {

/// Any fiber may call anything at any time. There are many shards with a lock each, so that fibers on different workers
/// seldom meet; nothing waits while it holds a lock.
class store {
 public:
  using clock = std::chrono::steady_clock;
  static constexpr clock::time_point never = clock::time_point::max();

  void set(std::string_view key, std::string_view value, clock::time_point expires = never) {
    shard& s = shard_of(key);
    const std::lock_guard guard{s.lock};
    auto at = s.entries.find(key);
    if (at == s.entries.end()) at = s.entries.emplace(key, entry{}).first;
    at->second.value = value;
    expire_at(s, *at, expires);
  }
  /// Copies the value of `key` to `value`, if there is one.
  bool get(std::string_view key, std::string& value) {
    shard& s = shard_of(key);
    const std::lock_guard guard{s.lock};
    const auto at = find(s, key);
    if (at == s.entries.end()) return false;
    value = at->second.value;
    return true;
  }
  bool erase(std::string_view key) {
    shard& s = shard_of(key);
    const std::lock_guard guard{s.lock};
    const auto at = find(s, key);
    if (at == s.entries.end()) return false;
    s.entries.erase(at);
    return true;
  }
  bool expire(std::string_view key, clock::time_point when) {
    shard& s = shard_of(key);
    const std::lock_guard guard{s.lock};
    const auto at = find(s, key);
    if (at == s.entries.end()) return false;
    expire_at(s, *at, when);
    return true;
  }
  /// When `key` expires; nullopt if there is no such key.
  std::optional<clock::time_point> expiry(std::string_view key) {
    shard& s = shard_of(key);
    const std::lock_guard guard{s.lock};
    const auto at = find(s, key);
    if (at == s.entries.end()) return std::nullopt;
    return at->second.expires;
  }
  /// Adds 1 to a value that is a number (0 if there is none), and returns it; nullopt if it is none, or too large.
  std::optional<std::int64_t> increment(std::string_view key) {
    shard& s = shard_of(key);
    const std::lock_guard guard{s.lock};
    auto at = find(s, key);
    if (at == s.entries.end()) at = s.entries.emplace(key, entry{"0"}).first;
    const std::optional<std::int64_t> n = to_number(at->second.value);
    if (!n || *n == std::numeric_limits<std::int64_t>::max()) return std::nullopt;
    at->second.value = std::to_string(*n + 1);
    return *n + 1;
  }
  /// Keys that have expired are not found, but take memory until this is called.
  void remove_expired() {
    for (shard& s : shards_) {
      const std::lock_guard guard{s.lock};
      const clock::time_point now = clock::now();
      while (!s.expiring.empty() && s.expiring.begin()->first <= now) {
        find(s, s.expiring.begin()->second);  // erases it, unless it has got more time
        s.expiring.erase(s.expiring.begin());
      }
      ramie::this_fiber::throw_if_stopped();
    }
  }

 private:
  struct entry {
    std::string value;
    clock::time_point expires = never;
  };
  struct hash : std::hash<std::string_view> {
    using is_transparent = void;  // looks a string_view up without making a string of it
  };
  using table = std::unordered_map<std::string, entry, hash, std::equal_to<>>;
  struct shard {
    ramie::mutex lock;
    table entries;
    std::multimap<clock::time_point, std::string> expiring;  // what each key was told; it may have changed since
  };

  shard& shard_of(std::string_view key) { return shards_[hash{}(key) % shards_.size()]; }
  static table::iterator find(shard& s, std::string_view key) {
    const auto at = s.entries.find(key);
    if (at == s.entries.end() || at->second.expires == never || at->second.expires > clock::now()) return at;
    s.entries.erase(at);
    return s.entries.end();
  }
  static void expire_at(shard& s, table::value_type& e, clock::time_point when) {
    e.second.expires = when;
    if (when != never) s.expiring.emplace(when, e.first);
  }

  std::array<shard, 64> shards_;
};

}  // namespace redis
