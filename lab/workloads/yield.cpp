// The cost of a switch from one fiber to the next.
#include <lab/harness/session.hpp>
#include <lab/workloads/plain_calls.hpp>
#include <lab/workloads/registry.hpp>

#include <ramie/context/context.hpp>
#include <ramie/ramie.hpp>
#include <ramie/stack/pool.hpp>

#include <cstdint>
#include <vector>

namespace ramie::lab {
namespace {

run_result by_plain(session& s) { return run_plain_calls(s, s.parameter("fibers") * s.parameter("count")); }

std::int64_t yield_many(std::int64_t count) {
  std::int64_t yields = 0;
  for (; yields < count; ++yields) ramie::this_fiber::yield();
  return yields;
}

run_result by_fibers(session& s) {
  const std::int64_t fibers = s.parameter("fibers");
  const std::int64_t count = s.parameter("count");
  std::int64_t yields = 0;
  const double seconds = s.time([&] {
    std::vector<ramie::join_handle<std::int64_t>> handles;
    handles.reserve(static_cast<std::size_t>(fibers));
    for (std::int64_t i = 0; i < fibers; ++i) handles.push_back(ramie::spawn([count] { return yield_many(count); }));
    for (auto& handle : handles) yields += handle.join();
  });
  return {.seconds = seconds, .units = fibers * count, .ok = yields == fibers * count};
}

struct bare_pair {
  ramie::detail::context here;
  ramie::detail::context there;
};
bare_pair pair;  // of one measurement at a time

/// The other side: switches back at once, for ever.
void answer(std::uintptr_t word, void* worker) noexcept {
  ramie::detail::transfer t{word, worker};
  for (;;) t = ramie::detail::switch_context(pair.there, pair.here, {t.word + 1, t.worker});
}

/// The switch itself, with no scheduler around it.
run_result by_bare_switch(session& s) {
  const std::int64_t count = s.parameter("fibers") * s.parameter("count") / 2;
  ramie::detail::stack* other = ramie::detail::acquire_stack(ramie::detail::stack_class_of(64 * 1024));
  pair.there = ramie::detail::fresh_context(other->top, &answer);
  ramie::detail::transfer t{0, nullptr};
  const double seconds = s.time([&] {
    for (std::int64_t i = 0; i < count; ++i) t = ramie::detail::switch_context(pair.here, pair.there, t);
  });
  ramie::detail::release_stack(other);
  return {.seconds = seconds, .units = 2 * count, .ok = t.word == static_cast<std::uintptr_t>(count)};
}

}  // namespace

workload yield_workload() {
  return {
      .name = "yield",
      .summary = "fibers that do nothing but yield: the price of a switch",
      .unit = "switch",
      .parameters =
          {{.name = "fibers", .help = "fibers that take turns", .standard = 2, .min = 2, .max = 100'000},
           {.name = "count", .help = "yields of each", .standard = 5'000'000, .min = 1, .max = 1'000'000'000}},
      .styles =
          {
              {"plain", "a noinline function call in place of each switch, the yardstick", false, by_plain},
              {"bare", "the context switch alone, there and back, without a scheduler", false, by_bare_switch},
              {"fibers", "this_fiber::yield() in every fiber", true, by_fibers},
          },
      .standard_workers = "1",
  };
}

}  // namespace ramie::lab
