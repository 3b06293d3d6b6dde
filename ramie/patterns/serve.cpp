#include <ramie/patterns/serve.hpp>

#include <ramie/base/error.hpp>
#include <ramie/fiber/options.hpp>
#include <ramie/task/current.hpp>

#include <algorithm>
#include <limits>

namespace ramie::net::detail {

namespace {

std::ptrdiff_t places(std::size_t connections) {
  constexpr std::size_t most = std::numeric_limits<std::ptrdiff_t>::max();
  return static_cast<std::ptrdiff_t>(connections == 0 ? most : std::min(connections, most));
}

}  // namespace

serving::serving(const serve_options& options) : options_{options}, places_{places(options.connections_most)} {
  const ramie::detail::worker_base* const w = ramie::detail::current_worker();
  if (w == nullptr || w->running_task() == nullptr) throw usage_error{"ramie: net::serve: called outside of a fiber"};
}

void serving::watch(body_scope& accepting) {
  if (options_.stop_on != nullptr)
    accepting.spawn(fiber_options{}, [this, &accepting] {
      options_.stop_on->wait();
      accepting.cancel();
    });
  if (options_.stop.stop_possible())
    accepting.spawn(fiber_options{}, [this, &accepting] {
      const std::stop_callback wake{options_.stop, [this]() noexcept { told_.set(); }};
      told_.wait();
      accepting.cancel();
    });
}

in_scope_options serving::of_connections() const {
  if (!options_.on_failure) return tolerant;
  return tolerant([this](const std::exception_ptr& failure, std::string_view) { options_.on_failure(failure); });
}

}  // namespace ramie::net::detail
