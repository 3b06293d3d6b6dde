#include "server/router.hpp"

#include "wire/text.hpp"

#include <algorithm>
#include <utility>

namespace ramie::http {

std::vector<std::string> segments_of(std::string_view path) {
  std::vector<std::string> all;
  path.remove_prefix(path.starts_with('/') ? 1 : 0);
  for (;;) {
    const std::size_t end = path.find('/');
    std::optional<std::string> plain = percent_decoded(path.substr(0, end));
    if (!plain || plain->find('\0') != std::string::npos) throw status_error{400, "the path is broken"};
    all.push_back(std::move(*plain));
    if (end == std::string_view::npos) return all;
    path.remove_prefix(end + 1);
  }
}

bool has_dots(std::string_view path) {
  if (path.find("/.") == std::string_view::npos && path.find('%') == std::string_view::npos) return false;
  const std::vector<std::string> all = segments_of(path);
  return std::any_of(all.begin(), all.end(), [](const std::string& s) { return s == "." || s == ".."; });
}

std::string joined(std::span<const std::string> segments) {
  std::string path;
  for (const std::string& s : segments) {
    if (s.find('/') != std::string::npos) return {};
    path += '/' + s;
  }
  return path;
}

void router::add(std::string_view method, std::string_view pattern, std::size_t parameters, handler f,
                 std::function<void(request&, websocket&)> upgraded) {
  const std::string named = "ramie: http: route " + std::string{pattern};
  if (!pattern.starts_with('/')) throw invalid_argument{named + ": a pattern begins with '/'"};
  if (!is_token(method)) throw invalid_argument{named + ": \"" + std::string{method} + "\" is no method"};
  route r{std::string{method}, {}, false, std::move(f), std::move(upgraded)};
  std::size_t there = 0;
  for (std::string_view rest = pattern.substr(1);;) {
    const std::size_t end = rest.find('/');
    const std::string_view segment = rest.substr(0, end);
    if (segment.starts_with('{') && segment.ends_with('}')) {
      r.segments.emplace_back("{}");
      ++there;
    } else if (segment == "*" && end == std::string_view::npos) {
      r.takes_rest = true;
      ++there;
    } else {
      r.segments.emplace_back(segment);
    }
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  if (parameters != SIZE_MAX && parameters != there)
    throw invalid_argument{named + ": the handler takes " + std::to_string(parameters) +
                           " parameters, and the pattern has " + std::to_string(there)};
  if (there == 0) plain_[std::string{pattern}].push_back(std::move(r));
  else others_.push_back(std::move(r));
}

bool router::fits(const route& r, std::span<const std::string> path, std::vector<std::string>& parameters) {
  parameters.clear();
  if (r.takes_rest ? path.size() <= r.segments.size() : path.size() != r.segments.size()) return false;
  for (std::size_t i = 0; i < r.segments.size(); ++i) {
    if (r.segments[i] == "{}") {
      if (path[i].empty()) return false;
      parameters.push_back(path[i]);
    } else if (r.segments[i] != path[i]) {
      return false;
    }
  }
  if (r.takes_rest) {
    std::string rest;
    for (std::size_t i = r.segments.size(); i < path.size(); ++i) {
      // A '/' that was encoded is no separator.
      if (path[i].find('/') != std::string::npos) return false;
      rest += (rest.empty() && i == r.segments.size() ? "" : "/") + path[i];
    }
    parameters.push_back(std::move(rest));
  }
  return true;
}

}  // namespace ramie::http
