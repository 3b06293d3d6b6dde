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

/// " (what this thread's last call said, which returned `status`)", or nothing. libnats keeps the text until another
/// call says something, and one that gets no answer does not.
inline std::string nats_detail(natsStatus status) {
  natsStatus about = NATS_OK;
  const char* detail = nats_GetLastError(&about);
  return about == status && detail != nullptr && *detail != '\0' ? std::string{" ("} + detail + ")" : std::string{};
}
[[noreturn]] inline void nats_fails(const std::string& what, natsStatus status) {
  throw cluster_error{"ramie: cluster: " + what + ": " + natsStatus_GetText(status) + nats_detail(status)};
}
inline void nats_check(const std::string& what, natsStatus status) {
  if (status != NATS_OK) nats_fails(what, status);
}

}  // namespace ramie::detail
