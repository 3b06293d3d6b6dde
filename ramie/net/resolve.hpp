// Names of hosts and services.
#pragma once

#include <ramie/net/endpoint.hpp>

#include <source_location>
#include <string>
#include <string_view>
#include <vector>

namespace ramie::net {

/// The addresses of `host` (a name, or a numeric address) with the port of `service` (a name, or a number), best first,
/// as getaddrinfo(3) has them for TCP. It runs on a helper thread, at most 16 calls at a time in the process; the
/// caller waits. Nothing is cached: getaddrinfo does not return a time to live. Suspends. Throws io_error, `cancelled`.
[[nodiscard]] std::vector<endpoint> resolve(std::string_view host, std::string_view service,
                                            std::source_location where = std::source_location::current());

}  // namespace ramie::net
