// What brings frames from node to node: NATS, or a simulated network in tests.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ramie::detail {

/// A node, and which of its lives: a process that takes a name again has a larger number.
struct node_address {
  std::string name;
  std::uint64_t incarnation = 0;
  friend auto operator<=>(const node_address&, const node_address&) = default;
};

/// Called on threads of the carrier's, which must not wait.
struct carrier_events {
  std::function<void(const node_address& from, std::string frame)> received;
  std::function<void(const node_address& to)> refused;  // a probe: nobody is there
  std::function<void()> reconnected;
  std::function<void(const node_address& from, std::string word)> heard;  // a broadcast
};

class carrier {
 public:
  carrier() = default;
  carrier(const carrier&) = delete;
  carrier& operator=(const carrier&) = delete;
  virtual ~carrier() = default;

  /// From here on events may come.
  virtual void start(const node_address& me, carrier_events events) = 0;
  /// No event comes after it has returned.
  virtual void stop() noexcept = 0;
  /// Bytes of a frame that it takes.
  [[nodiscard]] virtual std::size_t frame_most() const noexcept { return std::size_t{1} << 20; }
  /// May lose it. `probe`: `refused` is told if nobody is there. Any thread; does not suspend.
  virtual void send(const node_address& to, std::string_view frame, bool probe) noexcept = 0;

  /// To all other nodes of the cluster; at most once. Any thread; does not suspend.
  virtual void broadcast(std::string_view word) noexcept = 0;

  // Names and nodes. These wait for the server: they suspend. Throw cluster_error if it does not answer.
  struct entry {
    std::string value;
    std::uint64_t revision = 0;
  };
  /// The revision; 0: somebody has the key.
  virtual std::uint64_t create(const std::string& bucket, const std::string& key, const std::string& value) = 0;
  /// 0: the revision is not the last any more.
  virtual std::uint64_t update(const std::string& bucket, const std::string& key, const std::string& value,
                               std::uint64_t last) = 0;
  virtual std::optional<entry> get(const std::string& bucket, const std::string& key) = 0;
  virtual void remove(const std::string& bucket, const std::string& key) = 0;
  /// False: the revision is not the last any more, and nothing is removed.
  virtual bool remove(const std::string& bucket, const std::string& key, std::uint64_t last) = 0;
  virtual std::vector<std::string> keys(const std::string& bucket) = 0;
  /// False: certainly not there, for the server says that nobody listens.
  virtual bool may_live(const node_address& who) = 0;
  /// The connection itself, which queues need; null on a network that is not NATS.
  virtual void* native() noexcept { return nullptr; }
};

}  // namespace ramie::detail
