// The runtimes of the process, for an inspector; and what it shows of them, as JSON.
#pragma once

#include <ramie/inspect.hpp>
#include <ramie/runtime.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace ramie::http {

/// Calls visit(runtime) for `only`, or for all but inspectors' own if that is null. They do not end meanwhile. `visit`
/// does not suspend. Any thread.
void for_each_inspected(const runtime* only, const std::function<void(runtime&)>& visit);

/// While one exists, runtimes that its thread makes are not inspected.
class not_inspected {
 public:
  not_inspected() noexcept;
  ~not_inspected();
  not_inspected(const not_inspected&) = delete;
  not_inspected& operator=(const not_inspected&) = delete;
};

/// A string in quotes.
void add_json(std::string& to, std::string_view text);
/// As docs/inspector.md says.
[[nodiscard]] std::string to_json(const runtime_snapshot& s);
[[nodiscard]] std::string to_json(const std::vector<status_table>& all);

}  // namespace ramie::http
