// What runtimes count, for programs that serve metrics by prometheus-cpp. An optional component of its own, the library
// ramie::prometheus; the text of ramie::to_prometheus needs neither.
#pragma once

#include <ramie/fiber/runtime.hpp>

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <memory>
#include <string>
#include <vector>

namespace ramie {

namespace detail {
struct prometheus_sources;
}

/// The statistics of any number of runtimes, told apart by the label `runtime`, as they are whenever prometheus-cpp
/// asks for them. Give it to prometheus::Exposer::RegisterCollectable, or to a registry of one's own, as a shared_ptr.
/// One is enough for a process: two would serve the same names twice, which Prometheus does not accept.
class prometheus_collectable final : public ::prometheus::Collectable {
 public:
  /// While it lives, a runtime's statistics are served. It has to go before the runtime: its destructor waits for a
  /// collection under way, and after that the runtime is not looked at any more. It may outlive the collectable.
  class registration {
   public:
    registration() noexcept = default;
    registration(registration&& from) noexcept = default;
    registration& operator=(registration&& from) noexcept;
    /// Blocks the thread for at most the time of one collection, some microseconds for each worker. Any thread.
    ~registration();

   private:
    friend class prometheus_collectable;
    registration(std::shared_ptr<detail::prometheus_sources> sources, const runtime& rt) noexcept;
    void end() noexcept;

    std::shared_ptr<detail::prometheus_sources> sources_;
    const runtime* runtime_ = nullptr;
  };

  /// Throws std::bad_alloc.
  prometheus_collectable();
  prometheus_collectable(const prometheus_collectable&) = delete;
  prometheus_collectable& operator=(const prometheus_collectable&) = delete;
  ~prometheus_collectable() override;

  /// Serves the statistics of `rt` too, under the name in its options, or `name`. Throws usage_error if that name is
  /// being served: it would have every series twice. Throws std::bad_alloc. Any thread.
  [[nodiscard]] registration add(const runtime& rt);
  [[nodiscard]] registration add(const runtime& rt, const std::string& name);

  /// For prometheus-cpp. Throws std::bad_alloc. Any thread.
  [[nodiscard]] std::vector<::prometheus::MetricFamily> Collect() const override;

 private:
  std::shared_ptr<detail::prometheus_sources> sources_;
};

}  // namespace ramie
