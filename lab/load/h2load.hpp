// A load over TLS, by nghttp2's h2load(1).
#pragma once

#include <lab/load/drive.hpp>

#include <chrono>
#include <string>

namespace ramie::lab {

/// Keeps `options.connections` connections to https://127.0.0.1 busy for `time`, one request at a time on each, by
/// HTTP/2 or HTTP/1.1. `times` of the outcome stays empty: h2load tells means alone. Throws lab_error if there is no
/// h2load, or a request fails. `rate` has to be 0.
load_outcome drive_by_h2load(const load_options& options, bool http2, std::chrono::milliseconds time);

}  // namespace ramie::lab
