#include <ramie/cluster/wire.hpp>

#include <algorithm>
#include <map>
#include <utility>

namespace ramie {

namespace {

std::map<std::string_view, std::string_view> fields_of(std::string_view schema) {
  std::map<std::string_view, std::string_view> fields;
  while (!schema.empty()) {
    const std::size_t end = schema.find(' ');
    const std::string_view one = schema.substr(0, end);
    const std::size_t colon = one.find(':');
    if (colon != std::string_view::npos) fields.emplace(one.substr(0, colon), one.substr(colon + 1));
    if (end == std::string_view::npos) break;
    schema.remove_prefix(end + 1);
  }
  return fields;
}

}  // namespace

bool compatible_schemas(std::string_view a, std::string_view b) {
  if (a == b) return true;
  const auto theirs = fields_of(b);
  for (const auto& [number, kind] : fields_of(a)) {
    const auto same = theirs.find(number);
    if (same != theirs.end() && same->second != kind) return false;
  }
  return true;
}

namespace detail {

std::string join_schemas(std::string fields, const std::string& answer, const wire_schemas& nested) {
  std::string text = std::move(fields) + " = " + answer;
  for (const auto& [name, schema] : nested) text += "; " + name + " " + schema;
  return text;
}

bool joined_schemas_fit(std::string_view a, std::string_view b) {
  struct parts {
    std::string_view fields, answer;
    std::map<std::string_view, std::string_view> nested;
    explicit parts(std::string_view text) {
      const auto next = [&] {
        const std::size_t end = text.find("; ");
        const std::string_view one = text.substr(0, end);
        text = end == text.npos ? std::string_view{} : text.substr(end + 2);
        return one;
      };
      const std::string_view first = next();
      const std::size_t equals = first.find(" = ");
      if (equals == first.npos) return;
      fields = first.substr(0, equals);
      answer = first.substr(equals);
      while (!text.empty()) {
        const std::string_view one = next();
        const std::size_t space = std::min(one.find(' '), one.size());
        nested.emplace(one.substr(0, space), one.substr(std::min(space + 1, one.size())));
      }
    }
  };
  const parts mine{a}, theirs{b};
  if (mine.answer.empty() || mine.answer != theirs.answer || !compatible_schemas(mine.fields, theirs.fields))
    return false;
  for (const auto& [name, schema] : mine.nested) {
    const auto same = theirs.nested.find(name);
    if (same != theirs.nested.end() && !compatible_schemas(schema, same->second)) return false;
  }
  return true;
}

}  // namespace detail
}  // namespace ramie
