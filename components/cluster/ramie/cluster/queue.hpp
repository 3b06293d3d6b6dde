// Durable queues of jobs, on JetStream.
#pragma once

#include <ramie/cluster/remote.hpp>
#include <ramie/cluster/wire.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ramie {

/// All nodes that use a queue give the same ones.
struct queue_options {
  /// How often a job is tried before it goes to the dead ones. At least 1.
  std::uint64_t attempts = 5;
  /// After a handler threw, the next attempt comes so much later.
  std::chrono::milliseconds retry_after{1000};
  /// A node that handles a job says so again and again; when it is not heard of for so long, another one gets the job.
  /// At least 500 ms.
  std::chrono::milliseconds worker_lost_after{10'000};
};

struct serve_options {
  std::size_t in_flight = 64;  // jobs that are handled at once; 1 to 4096
};

/// A job that was given up.
template <class M>
struct dead_job {
  M job;
  std::string id;
  std::string reason;
};

namespace detail {

struct cluster_core;
class queue_core;
class queue_server;

struct dead_bytes {
  std::string bytes, id, reason;
};
using job_handler = std::function<void(std::string_view bytes)>;

/// What a queue does without the type of its jobs.
struct queue_calls {
  static void put(queue_core& q, std::string_view bytes, std::string_view id);
  static std::shared_ptr<queue_server> serve(const std::shared_ptr<queue_core>& q, job_handler handler,
                                             std::function<bool()> goes_on, const serve_options& o);
  static void stop(queue_server& s);
  static bool serves(queue_server& s) noexcept;
  static std::uint64_t size(queue_core& q);
  static std::vector<dead_bytes> dead(queue_core& q, std::size_t most);
  static bool begin_once(queue_core& q, std::string_view id);
  static void undo_once(queue_core& q, std::string_view id) noexcept;
};

}  // namespace detail

/// Takes jobs while it lives. Move-only.
class queue_worker {
 public:
  explicit queue_worker(std::shared_ptr<detail::queue_server> s) noexcept : server_{std::move(s)} {}
  queue_worker(queue_worker&&) noexcept = default;
  queue_worker& operator=(queue_worker&& other) noexcept {
    std::swap(server_, other.server_);
    return *this;
  }
  /// As stop().
  ~queue_worker() {
    if (server_ != nullptr) detail::queue_calls::stop(*server_);
  }
  /// Takes no more jobs, and suspends until those that are being handled have been.
  void stop() { detail::queue_calls::stop(*server_); }
  /// False after stop(), or when the actor that it serves has ended.
  [[nodiscard]] bool serves() const noexcept { return detail::queue_calls::serves(*server_); }

 private:
  std::shared_ptr<detail::queue_server> server_;
};

/// A queue that all nodes share: from cluster::queue. Each job is handled at least once, by one of those that serve; it
/// is acknowledged when its handler has returned. The server stores jobs on disk before `put` returns; whether they
/// survive a failure of power depends on its `sync_interval` (docs/design/cluster.md). Copies are the same queue. Not
/// to be used when the cluster is gone.
template <class M>
class cluster_queue {
 public:
  /// Stored when it returns. Jobs with the same id that come within two minutes are stored once; without an id each
  /// call is a job of its own. Suspends while the server is away, for a minute at most. Throws cluster_error if it
  /// cannot be stored, or if it is not known whether it was: to put it again under its id within the two minutes is
  /// safe. wire_error if it is larger than wire_limits::message_bytes, cluster_error if it is larger than the server
  /// takes; invalid_argument for an id that is longer than 200 or has other signs than letters, digits and -_=./
  void put(const M& job, std::string_view id = {}) { detail::queue_calls::put(*core_, to_wire(job), id); }

  /// Calls handler(job) in a fiber of its own for each job. If it throws, the job is tried again later, here or
  /// elsewhere, and given up after options.attempts. Suspends shortly. Throws cluster_error, invalid_argument.
  template <std::invocable<M> F>
  [[nodiscard]] queue_worker serve(F handler, const serve_options& o = {}) {
    return queue_worker{detail::queue_calls::serve(
        core_, [f = std::move(handler)](std::string_view bytes) { static_cast<void>(f(from_wire<M>(bytes))); },
        [] { return true; }, o)};
  }
  /// The same with an actor, local or not, that takes Ms: a job is done when its handler has returned, or its reply was
  /// given. When the actor has ended no more jobs are taken.
  template <class A>
  [[nodiscard]] queue_worker serve(const actor_ref<A>& worker, const serve_options& o = {}) {
    return queue_worker{detail::queue_calls::serve(
        core_, [worker](std::string_view bytes) { static_cast<void>(worker.ask(from_wire<M>(bytes))); },
        [worker] { return worker.alive(); }, o)};
  }

  /// Calls f() unless `once` was called with this id before, on any node: then it is false. For effects that are not to
  /// be repeated when a job is handled again. If f throws it can be called again; if its process ends within f, it
  /// is not called again, and nobody knows how far it came. Suspends. Throws what f throws; cluster_error.
  template <std::invocable F>
  bool once(std::string_view id, F f) {
    if (!detail::queue_calls::begin_once(*core_, id)) return false;
    try {
      f();
    } catch (...) {
      detail::queue_calls::undo_once(*core_, id);
      throw;
    }
    return true;
  }

  /// How many jobs are stored: those that wait, and those that are being handled. Suspends. Throws cluster_error.
  [[nodiscard]] std::uint64_t size() { return detail::queue_calls::size(*core_); }
  /// Jobs that were given up, the oldest first. They stay. Suspends. Throws cluster_error.
  [[nodiscard]] std::vector<dead_job<M>> dead(std::size_t most = 1000) {
    std::vector<dead_job<M>> all;
    for (detail::dead_bytes& d : detail::queue_calls::dead(*core_, most))
      all.push_back({from_wire<M>(d.bytes), std::move(d.id), std::move(d.reason)});
    return all;
  }

  /// Internal.
  explicit cluster_queue(std::shared_ptr<detail::queue_core> core) noexcept : core_{std::move(core)} {}

 private:
  std::shared_ptr<detail::queue_core> core_;
};

}  // namespace ramie
