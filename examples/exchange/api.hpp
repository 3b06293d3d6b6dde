// The exchange over HTTP: JSON, the WebSocket, the page, metrics.
#pragma once

#include "engine.hpp"

#include <ramie/http.hpp>

namespace exchange {

/// Adds the routes. `all` and `machine` stay as long as the site serves.
void add_routes(ramie::http::server& site, services& all, ramie::runtime& machine);

}  // namespace exchange
