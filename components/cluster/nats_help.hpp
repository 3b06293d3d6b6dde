// What the parts that use libnats have in common.
#pragma once

#include <ramie/cluster/cluster.hpp>

#include <nats/nats.h>

#include <memory>
#include <string>

namespace ramie::detail {

template <class T, auto destroy>
struct destroyer {
  void operator()(T* what) const noexcept { static_cast<void>(destroy(what)); }
};
template <class T, auto destroy>
using owned = std::unique_ptr<T, destroyer<T, destroy>>;

/// " (what the last call of this thread said)", or nothing.
inline std::string nats_detail() {
  const char* detail = nats_GetLastError(nullptr);
  return detail != nullptr && *detail != '\0' ? std::string{" ("} + detail + ")" : std::string{};
}
[[noreturn]] inline void nats_fails(const std::string& what, natsStatus status) {
  throw cluster_error{"ramie: cluster: " + what + ": " + natsStatus_GetText(status) + nats_detail()};
}
inline void nats_check(const std::string& what, natsStatus status) {
  if (status != NATS_OK) nats_fails(what, status);
}

}  // namespace ramie::detail
