// Routes: finds the handler of a path.
#pragma once

#include <ramie/http/server.hpp>

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ramie::http {

struct route {
  std::string method;
  std::vector<std::string> segments;  // "{}" for a parameter
  bool takes_rest = false;
  handler f;
  std::function<void(request&, websocket&)> upgraded;
};

/// Finds who handles a path.
class router {
 public:
  void add(std::string_view method, std::string_view pattern, std::size_t parameters, handler f,
           std::function<void(request&, websocket&)> upgraded = {});
  /// Calls f(route, parameters) for all that fit, until one returns true. Returns the methods that there would be.
  template <class F>
  std::string match(std::string_view method, std::string_view path, F f) const;

 private:
  static bool fits(const route& r, std::span<const std::string> path, std::vector<std::string>& parameters);
  std::unordered_map<std::string, std::vector<route>> plain_;
  std::vector<route> others_;
};

/// "/a/b%20c" as "a", "b c"; throws status_error.
[[nodiscard]] std::vector<std::string> segments_of(std::string_view path);

/// Whether one of them is "." or "..": a client has resolved these, so they are tricks. Throws status_error.
[[nodiscard]] bool has_dots(std::string_view path);

/// The same as a path without encoding; "" if that would be another path, because a segment has a '/'.
[[nodiscard]] std::string joined(std::span<const std::string> segments);

template <class F>
std::string router::match(std::string_view method, std::string_view path, F f) const {
  std::string others;
  std::vector<std::string> parameters;
  const auto offer = [&](const route& r) {
    if (r.method != method && !(method == "HEAD" && r.method == "GET")) {
      if (others.find(r.method) == std::string::npos) others += (others.empty() ? "" : ", ") + r.method;
      return false;
    }
    return static_cast<bool>(f(r, parameters));
  };
  const bool encoded = path.find('%') != std::string_view::npos;
  std::vector<std::string> segments;
  if (encoded) segments = segments_of(path);
  if (const auto at = plain_.find(encoded ? joined(segments) : std::string{path}); at != plain_.end())
    for (const route& r : at->second)
      if (offer(r)) return {};
  if (others_.empty()) return others;
  if (!encoded) segments = segments_of(path);
  for (const route& r : others_)
    if (fits(r, segments, parameters) && offer(r)) return {};
  return others;
}

}  // namespace ramie::http
