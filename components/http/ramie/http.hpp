// Servers of HTTP/1.1 and HTTP/2, a client of HTTP/1.1, WebSocket and server-sent events. An optional component, the
// library ramie::http.
#pragma once

#include <ramie/http/client.hpp>
#include <ramie/http/inspector.hpp>
#include <ramie/http/message.hpp>
#include <ramie/http/server.hpp>
#include <ramie/http/websocket.hpp>
