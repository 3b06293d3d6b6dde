// Logs of events, one for each key, from which durable actors are made anew.
#pragma once

#include <ramie/cluster/remote.hpp>
#include <ramie/cluster/wire.hpp>

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace ramie {

/// Somebody else has stored events of this key since: another node has its shard. What was to be stored is not.
class fenced_out : public error {
 public:
  using error::error;
};

namespace detail {

class log_core;

struct log_calls {
  static std::uint64_t append(log_core& l, const std::string& key, std::string_view bytes, std::uint64_t last);
  /// Until `f` is called for none.
  static std::uint64_t replay(log_core& l, const std::string& key, std::uint64_t after,
                              const std::function<void(std::string_view bytes)>& f);
  static void save(log_core& l, const std::string& key, std::string_view bytes, std::uint64_t at);
  static std::optional<std::string> load(log_core& l, const std::string& key, std::uint64_t& at);
};

}  // namespace detail

/// The events of one key, on the server's disk. One that is stored is there for all who replay later, in the order of
/// storing. Of several that have a key's log at once one succeeds with each append: the others are fenced_out, whatever
/// became of their leases. Move-only; one fiber at a time; not to be used when the cluster is gone.
template <wire_message E>
class event_log {
 public:
  /// Calls f(event) for each that was stored since the last call, or since the snapshot that load() gave. To be called
  /// before `append`, for it also learns what is the last event. Suspends. Throws cluster_error; wire_error for events
  /// that are no Es: fields that came later keep their initialisers, as with all messages; what f throws.
  template <std::invocable<const E&> F>
  void replay(F f) {
    last_ = detail::log_calls::replay(*core_, key_, last_,
                                      [&](std::string_view bytes) { static_cast<void>(f(from_wire<E>(bytes))); });
  }
  /// Stored when it returns. Suspends while the server is away, for a minute at most. Throws fenced_out; cluster_error
  /// if it is not known whether it is stored: then, as after fenced_out, the state is to be made anew by replay.
  void append(const E& e) { last_ = detail::log_calls::append(*core_, key_, to_wire(e), last_); }

  /// Keeps a state which all events until now have led to, so that replay begins after them. Suspends. Throws
  /// cluster_error, wire_error. Events stay.
  template <wire_message S>
  void save(const S& state) {
    detail::log_calls::save(*core_, key_, to_wire(state), last_);
  }
  /// The last one that was saved, if any; before replay. Suspends. Throws cluster_error, wire_error.
  template <wire_message S>
  std::optional<S> load() {
    std::uint64_t at = 0;
    const auto bytes = detail::log_calls::load(*core_, key_, at);
    if (!bytes) return std::nullopt;
    last_ = at;
    return from_wire<S>(*bytes);
  }

  /// Internal.
  event_log(std::shared_ptr<detail::log_core> core, std::string key) noexcept
      : core_{std::move(core)}, key_{std::move(key)} {}

 private:
  std::shared_ptr<detail::log_core> core_;
  std::string key_;
  std::uint64_t last_ = 0;  // number of the last event that is known
};

/// Logs by key: from cluster::logs. Copies are the same.
template <wire_message E>
class cluster_logs {
 public:
  /// Does not suspend. Any text of at most 80 bytes. Throws invalid_argument.
  [[nodiscard]] event_log<E> of(std::string_view key) const { return {core_, detail_key(key)}; }

  /// Internal.
  explicit cluster_logs(std::shared_ptr<detail::log_core> core) noexcept : core_{std::move(core)} {}

 private:
  /// As a word of a subject.
  static std::string detail_key(std::string_view key) {
    if (key.empty() || key.size() > 80) throw invalid_argument{"ramie: cluster: logs: a key has 1 to 80 bytes"};
    static constexpr char digits[] = "0123456789abcdef";
    std::string hex;
    for (const char c : key) {
      hex += digits[static_cast<unsigned char>(c) >> 4];
      hex += digits[static_cast<unsigned char>(c) & 15];
    }
    return hex;
  }
  std::shared_ptr<detail::log_core> core_;
};

}  // namespace ramie
