#include <lab/harness/runtime_facts.hpp>

#include <lab/harness/policies.hpp>

#include <array>
#include <cstddef>

namespace ramie::lab {
namespace {

template <class Value>
struct named {
  std::string_view name;
  Value value;
};

constexpr std::array placements{
    named<ramie::placement>{"work_stealing", ramie::placement::work_stealing},
    named<ramie::placement>{"stealing_no_affinity", ramie::placement::stealing_no_affinity},
    named<ramie::placement>{"dedicated", ramie::placement::dedicated},
};

constexpr std::array stacks{
    named<ramie::stack_guard>{"guarded", ramie::stack_guard::automatic},
    named<ramie::stack_guard>{"pooled", ramie::stack_guard::none},
};

template <class Table>
std::string names_of(const Table& table) {
  std::string names;
  for (const auto& entry : table) {
    if (!names.empty()) names += ", ";
    names += entry.name;
  }
  return names;
}

template <class Value, std::size_t n>
std::optional<Value> find_in(const std::array<named<Value>, n>& table, std::string_view name) {
  for (const named<Value>& entry : table)
    if (entry.name == name) return entry.value;
  return std::nullopt;
}

}  // namespace

std::string placement_names() { return names_of(placements) + ", shared_queue, round_robin"; }
std::string stacks_names() { return names_of(stacks); }

std::optional<ramie::stack_guard> find_stacks(std::string_view name) { return find_in(stacks, name); }

bool set_placement(ramie::runtime_options& options, std::string_view name) {
  if (name == "shared_queue") {
    options.policy = std::make_shared<shared_queue>();
  } else if (name == "round_robin") {
    options.workers = options.workers == 0 ? standard_worker_count() : options.workers;
    options.policy = std::make_shared<round_robin>(options.workers);
  } else {
    const auto found = find_in(placements, name);
    if (!found) return false;
    options.placement = *found;
  }
  return true;
}

std::string_view name_of(ramie::placement wanted) {
  for (const auto& p : placements) {
    if (p.value == wanted) return p.name;
  }
  return "unknown";
}

int standard_worker_count() { return ramie::runtime{}.workers(); }

std::map<std::string, std::int64_t> read_counters(ramie::runtime& rt) {
  const ramie::runtime_counters c = rt.counters();
  std::map<std::string, std::int64_t> named;
  auto add = [&](const char* name, std::uint64_t value) { named.emplace(name, static_cast<std::int64_t>(value)); };
  add("dispatches", c.dispatches);
  add("spawned", c.spawned);
  add("ended", c.ended);
  add("steals_tried", c.steals_tried);
  add("steals", c.steals);
  add("wakes", c.wakes);
  add("wakes_elsewhere", c.wakes_elsewhere);
  add("migrations", c.migrations);
  add("sleeps", c.sleeps);
  add("injected", c.injected);
  add("time_slices", c.time_slices);
  add("spares", c.threads - static_cast<std::uint64_t>(rt.workers()));  // started so far
  return named;
}

}  // namespace ramie::lab
