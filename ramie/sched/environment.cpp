#include <ramie/sched/environment.hpp>

#include <ramie/base/error.hpp>
#include <ramie/machine/cpu_count.hpp>
#include <ramie/stack/pool.hpp>

#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace ramie::detail {

namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& value, const std::string& range) {
  throw invalid_argument{"ramie: " + what + " is " + value + "; it must be " + range};
}

std::string quoted(std::string_view text) {
  std::string result{'"'};
  result += text;
  result += '"';
  return result;
}

void check_range(const char* what, long value, long least, long most) {
  if (value < least || value > most)
    refuse(what, std::to_string(value), "from " + std::to_string(least) + " to " + std::to_string(most));
}

/// A whole number with an optional suffix K or M, as `what` wants it; `range` for the message.
long parse(const char* what, std::string_view text, bool suffixes, const std::string& range) {
  long value = 0;
  const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view suffix{rest, static_cast<std::size_t>(text.data() + text.size() - rest)};
  long unit = 1;
  if (suffixes && (suffix == "K" || suffix == "k")) unit = 1024;
  else if (suffixes && (suffix == "M" || suffix == "m")) unit = 1024 * 1024;
  else if (!suffix.empty()) unit = 0;
  if (problem != std::errc{} || unit == 0 || value > (1L << 50) / unit || value < 0) refuse(what, quoted(text), range);
  return value * unit;
}

const char* set_variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

bool is_on(const char* name, bool unless_set = false) {
  const char* text = set_variable(name);
  if (text != nullptr && std::strcmp(text, "0") != 0 && std::strcmp(text, "1") != 0)
    refuse(name, quoted(text), "0 or 1");
  return text == nullptr ? unless_set : *text == '1';
}

constexpr const char* placement_names[] = {"work_stealing", "stealing_no_affinity", "dedicated"};
constexpr const char* spreading_names[] = {"automatic", "together", "at_home", "by_waker"};

/// The place among `names` of what the variable says; nothing if it is not set.
template <std::size_t n>
std::optional<int> one_of(const char* variable, const char* const (&names)[n]) {
  const char* text = set_variable(variable);
  if (text == nullptr) return std::nullopt;
  std::string listed = "one of ";
  for (std::size_t i = 0; i < n; ++i) {
    if (std::strcmp(text, names[i]) == 0) return static_cast<int>(i);
    listed.append(i == 0 ? "" : ", ").append(names[i]);
  }
  refuse(variable, quoted(text), listed);
}

}  // namespace

runtime_options resolve(runtime_options o) {
  const std::string workers_range = "a whole number from 1 to " + std::to_string(workers_most);
  if (o.workers != 0) {
    check_range("runtime_options::workers", o.workers, 1, workers_most);
  } else if (const char* text = set_variable("RAMIE_WORKERS")) {
    const long value = parse("RAMIE_WORKERS", text, false, workers_range);
    if (value < 1 || value > workers_most) refuse("RAMIE_WORKERS", std::to_string(value), workers_range);
    o.workers = static_cast<int>(value);
  } else {
    o.workers = std::min(usable_cpus(), workers_most);
  }

  const std::string stack_range =
      "from " + std::to_string(stack_size_min) + " to " + std::to_string(stack_size_max) + " bytes";
  if (o.stack_size == 0) {
    o.stack_size = stack_size_default;
    if (const char* text = set_variable("RAMIE_STACK_SIZE")) {
      const long value = parse("RAMIE_STACK_SIZE", text, true, stack_range);
      if (value < static_cast<long>(stack_size_min) || value > static_cast<long>(stack_size_max))
        refuse("RAMIE_STACK_SIZE", std::to_string(value), stack_range);
      o.stack_size = static_cast<std::size_t>(value);
    }
  } else if (o.stack_size < stack_size_min || o.stack_size > stack_size_max) {
    refuse("runtime_options::stack_size", std::to_string(o.stack_size), stack_range);
  }

  if (o.placement == placement::work_stealing) {
    const auto wanted = one_of("RAMIE_PLACEMENT", placement_names);
    if (wanted) o.placement = static_cast<placement>(*wanted);
  }
  if (o.placement < placement::work_stealing || o.placement > placement::dedicated)
    refuse("runtime_options::placement", std::to_string(static_cast<int>(o.placement)),
           "work_stealing, stealing_no_affinity or dedicated");

  if (!o.pin_threads) o.pin_threads = is_on("RAMIE_PIN_THREADS");
  if (!o.paint_stacks) o.paint_stacks = is_on("RAMIE_PAINT_STACKS");
  if (o.notices) o.notices = is_on("RAMIE_NOTICES", true);
  check_range("runtime_options::spare_workers", o.spare_workers, 0, spares_most);
  check_range("runtime_options::blocking_threads", o.blocking_threads, 1, blocking_threads_most);
  check_range("runtime_options::stall_after", o.stall_after.count(), 1, 3'600'000);
  return o;
}

test_options resolve(test_options o) {
  if (!o.migrate_always) o.migrate_always = is_on(migrate_always_variable);
  if (o.spreading == spreading::automatic)
    o.spreading = static_cast<spreading>(one_of(spreading_variable, spreading_names).value_or(0));
  return o;
}

}  // namespace ramie::detail
