// The counts of runtimes, for programs that serve metrics with prometheus-cpp. An optional component, the library
// ramie::prometheus; the text of ramie::to_prometheus needs neither.
#pragma once

#include <ramie/runtime.hpp>

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <memory>
#include <string>
#include <vector>

namespace ramie {

/// The current statistics of any number of runtimes, distinguished by the label `runtime`, whenever prometheus-cpp asks
/// for them. Give it to prometheus::Exposer::RegisterCollectable, or to your own registry, as a shared_ptr. One is
/// enough for a process: two would serve the same names twice, which Prometheus does not accept.
class prometheus_collectable final : public ::prometheus::Collectable {
  struct sources;

 public:
  /// While it lives, a runtime's statistics are served. It must end before the runtime: its destructor waits for a
  /// collection under way, and afterwards the runtime is not accessed. It may outlive the collectable.
  class registration {
   public:
    registration() noexcept = default;
    registration(registration&& from) noexcept = default;
    registration& operator=(registration&& from) noexcept;
    /// Blocks the thread for at most the time of one collection, some microseconds for each worker. Any thread.
    ~registration();

   private:
    friend class prometheus_collectable;
    registration(std::shared_ptr<sources> from, const runtime& rt) noexcept;
    void end() noexcept;

    std::shared_ptr<sources> sources_;
    const runtime* runtime_ = nullptr;
  };

  /// Throws std::bad_alloc.
  prometheus_collectable();
  prometheus_collectable(const prometheus_collectable&) = delete;
  prometheus_collectable& operator=(const prometheus_collectable&) = delete;
  ~prometheus_collectable() override;

  /// Also serves the statistics of `rt`, under the name in its options, or `name`. Throws usage_error if that name is
  /// already served: it would have every series twice. Throws std::bad_alloc. Any thread.
  [[nodiscard]] registration add(const runtime& rt);
  [[nodiscard]] registration add(const runtime& rt, const std::string& name);

  /// For prometheus-cpp. Throws std::bad_alloc. Any thread.
  [[nodiscard]] std::vector<::prometheus::MetricFamily> Collect() const override;

 private:
  std::shared_ptr<sources> sources_;
};

}  // namespace ramie
