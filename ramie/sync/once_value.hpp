// A value that is made once, at the first request.
#pragma once

#include <ramie/sync/once.hpp>

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace ramie {

/// `once_value config{[] { return load(); }};` calls the function at the first get(), and keeps its result. Any number
/// of fibers and plain threads may use it at once.
template <class F>
  requires std::is_object_v<std::invoke_result_t<F&>>
class once_value {
 public:
  using value_type = std::invoke_result_t<F&>;

  explicit once_value(F make) : make_(std::move(make)) {}
  once_value(const once_value&) = delete;
  once_value& operator=(const once_value&) = delete;

  /// The value. Suspends while another caller makes it. If making it throws, that is thrown here, and the next caller
  /// tries again; `cancelled` if the fiber is asked to stop while it waits; usage_error if the function calls get()
  /// itself.
  [[nodiscard]] value_type& get() {
    call_once(once_, [this] { value_.emplace(std::invoke(make_)); });
    return *value_;
  }
  [[nodiscard]] value_type& operator*() { return get(); }
  [[nodiscard]] value_type* operator->() { return std::addressof(get()); }

 private:
  once_flag once_;
  std::optional<value_type> value_;
  F make_;
};

}  // namespace ramie
